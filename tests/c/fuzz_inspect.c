/* Mutates the files it is given, so many times in all, and inspects every mutant: no input may make the inspection read outside of
 * the file. Built with sanitizers, which is what finds it. With LLVMFuzzerTestOneInput it is a target for libFuzzer and AFL++ too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Everything that the loader asks of a file. The bytes stand in an allocation of their own size: one more is out of bounds. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  dl_elf elf;
  dl_elf_symbol symbol;
  size_t seen = 0;
  uint8_t *copy = malloc(size == 0 ? 1 : size);
  if (copy == NULL) return 0;
  memcpy(copy, data, size);
  if (dl_elf_open(copy, size, &elf) == DL_ELF_OK) {
    const int64_t tags[] = {DL_ELF_NEEDED, DL_ELF_SONAME, DL_ELF_RPATH, DL_ELF_RUNPATH};
    for (size_t t = 0; t < 4; ++t)
      for (size_t i = 0; i < 64; ++i) {
        const char *text = dl_elf_string(&elf, tags[t], i);
        if (text != NULL) seen += strlen(text);
      }
    for (uint64_t i = 0; i < elf.symbol_count; ++i)
      if (dl_elf_symbol_at(&elf, i, &symbol)) seen += strlen(symbol.name);
  }
  free(copy);
  return seen == (size_t)-1;
}

#ifndef FUZZER_ONLY
static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % below;
}

/* One to eight edits: a bit, a byte, a number that is at home in no field, a block copied, the end cut off. */
static size_t mutate(uint8_t *bytes, size_t size) {
  static const uint64_t numbers[] = {0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, 0x8000000000000000u, UINT64_MAX, 0x1000};
  for (uint64_t edits = 1 + draw(8); edits > 0; --edits) {
    const size_t region = draw(3) == 0 ? size : (size < 4096 ? size : 4096);
    const size_t at = draw(region);
    switch (draw(5)) {
      case 0: bytes[at] ^= (uint8_t)(1u << draw(8)); break;
      case 1: bytes[at] = (uint8_t)draw(256); break;
      case 2: {
        const size_t width = (size_t)1 << draw(4), place = at / width * width;
        if (place + width <= size) memcpy(bytes + place, &numbers[draw(10)], width);
        break;
      }
      case 3: {
        const size_t from = draw(region), length = draw(64);
        if (at + length <= size && from + length <= size) memmove(bytes + at, bytes + from, length);
        break;
      }
      default:
        if (draw(4) == 0) size = 1 + draw(size);
    }
  }
  return size;
}

int main(int argc, char **argv) {
  const long times = argc > 2 ? atol(argv[1]) : 0;
  long done = 0, whole = 0;
  for (int file = 2; file < argc; ++file) {
    static uint8_t seed[1 << 20], mutant[1 << 20];
    FILE *in = fopen(argv[file], "rb");
    if (in == NULL) return 2;
    const size_t size = fread(seed, 1, sizeof seed, in);
    fclose(in);
    for (long i = 0; i < times / (argc - 2); ++i, ++done) {
      dl_elf elf;
      memcpy(mutant, seed, size);
      const size_t length = mutate(mutant, size);
      LLVMFuzzerTestOneInput(mutant, length);
      whole += dl_elf_open(mutant, length, &elf) == DL_ELF_OK;
    }
  }
  printf("%ld mutants, %ld still whole\n", done, whole);
  return 0;
}
#endif
