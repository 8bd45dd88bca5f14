/* Division, atomics, the kernel; and the burst that shows how evenly a machine runs. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "costs.h"

#define DIVIDEND 0xFEDCBA9876543210u

dl_status dl_cost_divide(int kind, uint64_t count, dl_cost *out) {
  if (kind < 0 || kind > 1 || count < 1) return DL_BAD_ARGUMENT;
  uint64_t x = 12345, dividend = DIVIDEND;
  DL_OPAQUE(dividend);
  const uint64_t begin = dl_ticks_begin();
  for (uint64_t i = 0; i < count; ++i) {
    x = kind ? dividend / (x | 1) : dividend ^ (x | 1);
    x &= 0xFFFFFFF;
    DL_OPAQUE(x);
  }
  out->ticks = (int64_t)(dl_ticks_end() - begin);
  out->count = count;
  out->checksum = x;
  uint64_t y = 12345;
  for (uint64_t i = 0; i < count; ++i) { /* by hand: the quotient is the largest q with q * d <= n */
    const uint64_t d = y | 1;
    uint64_t q = kind ? (uint64_t)((long double)DIVIDEND / (long double)d) : DIVIDEND ^ d;
    while (kind && (unsigned __int128)q * d > DIVIDEND) --q;
    while (kind && (unsigned __int128)(q + 1) * d <= DIVIDEND) ++q;
    y = q & 0xFFFFFFF;
  }
  out->expected = y;
  return DL_OK;
}

dl_status dl_cost_add(int kind, uint64_t count, dl_cost *out) {
  if (kind < 0 || kind > 1 || count < 1) return DL_BAD_ARGUMENT;
  _Alignas(DL_APART) _Atomic uint64_t shared = 0;
  _Alignas(DL_APART) volatile uint64_t plain = 0;
  const uint64_t begin = dl_ticks_begin();
  if (kind)
    for (uint64_t i = 0; i < count; ++i) atomic_fetch_add_explicit(&shared, 1, memory_order_seq_cst);
  else
    for (uint64_t i = 0; i < count; ++i) plain = plain + 1;
  out->ticks = (int64_t)(dl_ticks_end() - begin);
  out->count = out->expected = count;
  out->checksum = kind ? atomic_load(&shared) : plain;
  return DL_OK;
}

void dl_adds_body(dl_lab *lab, size_t who) {
  dl_adds *task = lab->task;
  _Atomic uint64_t *counter = &task->counters[task->apart ? who : 0].n;
  for (uint64_t i = 0; i < task->each; ++i) {
    atomic_fetch_add_explicit(counter, 1, memory_order_seq_cst);
    if ((i & 4095) == 4095 && dl_lab_stopped(lab)) return;
  }
}

static inline uint64_t mixed(uint64_t count) {
  uint64_t sum = 1;
  for (uint64_t i = 0; i < count; ++i) sum = (sum ^ i) * 0x9E3779B97F4A7C15u;
  return sum;
}

dl_status dl_cost_empty(int kind, uint64_t count, dl_cost *out) {
  if (kind < 0 || kind > 1 || count < 1) return DL_BAD_ARGUMENT;
  *out = (dl_cost){.count = count};
  const uint64_t begin = dl_ticks_begin();
  if (kind == 0) {
    out->checksum = mixed(count);
    DL_OPAQUE(out->checksum);
  } else {
    (void)mixed(count);
  }
  out->ticks = (int64_t)(dl_ticks_end() - begin);
  DL_OPAQUE(count);
  if (kind == 0) out->expected = mixed(count);
  return DL_OK;
}

dl_status dl_cost_syscall(uint64_t count, dl_cost *out) {
  if (count < 1) return DL_BAD_ARGUMENT;
  uint64_t sum = 0;
  const uint64_t begin = dl_ticks_begin();
  for (uint64_t i = 0; i < count; ++i) sum += (uint64_t)syscall(SYS_getpid);
  out->ticks = (int64_t)(dl_ticks_end() - begin);
  out->count = count;
  out->checksum = sum;
  out->expected = count * (uint64_t)getpid();
  return DL_OK;
}

dl_status dl_cost_fault(uint64_t count, dl_cost *out) {
  if (count < 1 || count > 1u << 20) return DL_BAD_ARGUMENT;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = count * page;
  volatile char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if ((void *)memory == MAP_FAILED) return DL_NO_MEMORY;
  madvise((void *)memory, bytes, MADV_NOHUGEPAGE);
  const uint64_t begin = dl_ticks_begin();
  for (uint64_t i = 0; i < count; ++i) memory[i * page] = (char)(memory[i * page] + 1);
  out->ticks = (int64_t)(dl_ticks_end() - begin);
  out->count = out->expected = count;
  out->checksum = 0;
  for (uint64_t i = 0; i < count; ++i) out->checksum += (uint64_t)memory[i * page];
  munmap((void *)memory, bytes);
  return DL_OK;
}

static DL_NOINLINE double sum_in_order(const double *data, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += data[i];
  return sum;
}

static DL_NOINLINE double sum_in_lanes(const double *data, size_t n) {
  double lane[16] = {0}, sum = 0;
  for (size_t i = 0; i + 16 <= n; i += 16)
    for (size_t j = 0; j < 16; ++j) lane[j] += data[i + j];
  for (size_t j = 0; j < 16; ++j) sum += lane[j];
  for (size_t i = n / 16 * 16; i < n; ++i) sum += data[i];
  return sum;
}

double dl_burst(const double *data, size_t n, uint64_t sums, bool lanes) {
  double sum = 0;
  for (uint64_t i = 0; i < sums; ++i) {
    const double *from = data;
    DL_OPAQUE(from);
    sum = lanes ? sum_in_lanes(from, n) : sum_in_order(from, n);
    __asm__ volatile("" : : "m"(sum));
  }
  return sum;
}

dl_status dl_bursts(uint64_t bursts, uint64_t sums, uint64_t idle_ns, bool lanes, int64_t *ticks) {
  enum { N = 4096 };
  if (bursts < 1 || sums < 1 || idle_ns > 1000000000u) return DL_BAD_ARGUMENT;
  double *data = aligned_alloc(64, N * sizeof *data);
  if (data == NULL) return DL_NO_MEMORY;
  for (size_t i = 0; i < N; ++i) data[i] = (double)i;
  bool right = true;
  for (uint64_t i = 0; i < bursts; ++i) {
    const struct timespec idle = {(time_t)(idle_ns / 1000000000u), (long)(idle_ns % 1000000000u)};
    nanosleep(&idle, NULL);
    const uint64_t begin = dl_ticks_begin();
    const double sum = dl_burst(data, N, sums, lanes);
    ticks[i] = (int64_t)(dl_ticks_end() - begin);
    right = right && sum == (double)N * (N - 1) / 2; /* whole numbers: exact in any order */
  }
  free(data);
  return right ? DL_OK : DL_STOPPED;
}
