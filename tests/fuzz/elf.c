/* Fuzz target: the inspection of shared libraries (csrc/core/inspect.c) over damaged files.
 *
 * With libFuzzer:  clang -g -fsanitize=fuzzer,address,undefined -DLIBFUZZER -Icsrc/core tests/fuzz/elf.c csrc/core/inspect.c -o elf
 *                  ./elf tests/fuzz/elf
 * Without:         cc -g -fsanitize=address,undefined -Icsrc/core tests/fuzz/elf.c csrc/core/inspect.c -o elf
 *                  ./elf COUNT SEED tests/fuzz/elf/x ...
 * which mutates the files COUNT times, the same way for the same seed, and prints how often each status was answered. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long answered[DL_ELF_MALFORMED + 1];
static unsigned long read_bytes; /* of names, so that every one is really touched */

/* A name must end inside of the string table that it is from, and not only inside of the file. */
static void read_name(const dl_elf *elf, const char *text) {
  const char *end = (const char *)elf->bytes + elf->strings + elf->strings_size;
  if (text >= end || memchr(text, '\0', (size_t)(end - text)) == NULL) {
    fputs("a name runs out of its string table\n", stderr);
    abort();
  }
  read_bytes += strlen(text);
}

static void read_strings(const dl_elf *elf, int64_t tag) {
  const char *text;
  for (size_t i = 0; i < 64 && (text = dl_elf_string(elf, tag, i)) != NULL; ++i) read_name(elf, text);
}

/* The bytes are copied to a block of their very size, so that one read beyond is seen. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *exact = malloc(size > 0 ? size : 1);
  dl_elf elf;
  dl_elf_symbol symbol;
  if (exact == NULL) abort();
  if (size > 0) memcpy(exact, data, size);
  const dl_elf_status status = dl_elf_open(exact, size, &elf);
  ++answered[status];
  if (status == DL_ELF_OK) {
    read_strings(&elf, DL_ELF_NEEDED);
    read_strings(&elf, DL_ELF_SONAME);
    read_strings(&elf, DL_ELF_RPATH);
    read_strings(&elf, DL_ELF_RUNPATH);
    for (uint64_t i = 0; i < elf.symbol_count + 2; ++i)
      if (dl_elf_symbol_at(&elf, i, &symbol)) read_name(&elf, symbol.name);
  }
  free(exact);
  return 0;
}

#ifndef LIBFUZZER
static uint64_t state;

/* splitmix64 */
static uint64_t next(void) {
  uint64_t z = (state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5BA);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

/* Values at which sizes and offsets break. */
static uint64_t telling(size_t size) {
  const uint64_t values[] = {0, 1, size, size - 1, size + 1, UINT64_MAX, UINT64_MAX - 7, INT64_MAX, UINT32_MAX, 1u << 31, next() % (size + 1), next()};
  return values[next() % (sizeof values / sizeof *values)];
}

/* A few edits: a bit, a byte, a whole field of any width, a copied stretch, a shorter file. */
static size_t mutate(uint8_t *data, size_t size) {
  for (uint64_t edits = 1 + next() % 4; edits > 0 && size >= 16; --edits) {
    const size_t width = (size_t)1 << next() % 4, near = next() % 2 ? size : size < 512 ? size : 512;
    const size_t at = next() % (near - 8) / width * width;
    const uint64_t value = telling(size);
    switch (next() % 6) {
      case 0: data[at] ^= (uint8_t)(1u << next() % 8); break;
      case 1: data[at] = (uint8_t)next(); break;
      case 2:
      case 3: memcpy(data + at, &value, width); break;
      case 4: memmove(data + at, data + next() % (size - 8), 8); break;
      default: size = next() % 4 == 0 ? next() % size : size; break;
    }
  }
  return size;
}

static uint8_t *load(const char *path, size_t *size) {
  enum { MOST = 1 << 16 };
  uint8_t *data = malloc(MOST);
  FILE *file = fopen(path, "rb");
  if (file == NULL || data == NULL) {
    perror(path);
    exit(2);
  }
  *size = fread(data, 1, MOST, file);
  fclose(file);
  return data;
}

int main(int argc, char **argv) {
  const int files = argc - 3;
  if (files < 1) return fprintf(stderr, "elf COUNT SEED FILE...\n"), 2;
  const unsigned long count = strtoul(argv[1], NULL, 10);
  uint8_t **seeds = calloc((size_t)files, sizeof *seeds), *work = malloc(1 << 16);
  size_t *sizes = calloc((size_t)files, sizeof *sizes);
  if (seeds == NULL || work == NULL || sizes == NULL) return 2;
  state = strtoull(argv[2], NULL, 10);
  for (int i = 0; i < files; ++i) seeds[i] = load(argv[3 + i], &sizes[i]);
  for (int i = 0; i < files; ++i) LLVMFuzzerTestOneInput(seeds[i], sizes[i]);
  for (unsigned long n = 0; n < count; ++n) {
    const size_t which = n % (size_t)files;
    memcpy(work, seeds[which], sizes[which]);
    LLVMFuzzerTestOneInput(work, mutate(work, sizes[which]));
  }
  for (int s = 0; s <= DL_ELF_MALFORMED; ++s) printf("%lu ", answered[s]);
  printf("%lu\n", read_bytes);
  for (int i = 0; i < files; ++i) free(seeds[i]);
  free(seeds), free(work), free(sizes);
  return 0;
}
#endif
