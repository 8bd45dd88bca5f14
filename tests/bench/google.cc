// The subject under Google Benchmark, twice: one function against itself.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>

extern "C" {
std::uint64_t subject_run(void);
int subject_open(const char *folder, const char *arm, std::uint32_t count, std::size_t packets);
}

static void subject(benchmark::State &state) {
  for (auto _ : state) benchmark::DoNotOptimize(subject_run());
}
BENCHMARK(subject)->Name("a");
BENCHMARK(subject)->Name("b");

int main(int argc, char **argv) {
  if (argc < 5 || !subject_open(argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]))) return 2;
  argc -= 4;
  argv += 4;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
