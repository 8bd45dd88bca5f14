/* Reads what a shared library is out of its bytes, without loading it. Source: System V ABI, chapters 4 and 5; gABI notes.
 *
 * Every offset comes from the file and is believed only after it has been checked against the file's size. */
#ifndef DL_ELF_H
#define DL_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dl_elf_status {
  DL_ELF_OK,
  DL_ELF_NOT_ELF,   /* no magic number, or shorter than a header */
  DL_ELF_CLASS,     /* not of this machine's word size */
  DL_ELF_ENDIAN,    /* not in this machine's byte order */
  DL_ELF_MACHINE,   /* for another processor */
  DL_ELF_TYPE,      /* not a shared library */
  DL_ELF_TRUNCATED, /* something lies beyond the end of the file */
  DL_ELF_MALFORMED  /* sizes or counts that cannot be */
} dl_elf_status;

typedef struct dl_elf_symbol {
  const char *name; /* inside the file, ended by NUL */
  bool defined;
  bool weak;
  bool visible; /* default or protected visibility: others can see it */
} dl_elf_symbol;

typedef struct dl_elf {
  const uint8_t *bytes;
  size_t size;
  uint16_t found;    /* what stands in the field that was refused: class, byte order, machine or type */
  uint64_t segments; /* offset of the program headers */
  uint16_t segment_count;
  uint64_t dynamic; /* offset and entries of the dynamic section */
  uint64_t dynamic_count;
  uint64_t strings; /* offset and size of the dynamic string table */
  uint64_t strings_size;
  uint64_t symbols; /* offset and number of dynamic symbols */
  uint64_t symbol_count;
  uint32_t note_level; /* of the plugin's note; 0: none */
  uint32_t note_oldest_host;
} dl_elf;

/* Inspects `size` bytes. On anything but DL_ELF_OK only `found` means something. */
dl_elf_status dl_elf_open(const uint8_t *bytes, size_t size, dl_elf *out);

/* The i-th library that this one needs, its run path, or NULL after the last. tag: DL_ELF_NEEDED, DL_ELF_RUNPATH ... */
enum { DL_ELF_NEEDED = 1, DL_ELF_SONAME = 14, DL_ELF_RPATH = 15, DL_ELF_RUNPATH = 29 };
const char *dl_elf_string(const dl_elf *elf, int64_t tag, size_t i);

/* Symbol i, 0 <= i < symbol_count; false when it has no name. */
bool dl_elf_symbol_at(const dl_elf *elf, uint64_t i, dl_elf_symbol *out);

#endif
