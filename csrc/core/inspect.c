/* Inspection of shared libraries: header, program headers, dynamic section, dynamic symbols, the plugin's note. */
#include "inspect.h"

#include <elf.h>
#include <string.h>

/* The machine that this very code was compiled for. */
#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#elif defined(__i386__)
#define HOST_MACHINE EM_386
#elif defined(__arm__)
#define HOST_MACHINE EM_ARM
#elif defined(__riscv)
#define HOST_MACHINE EM_RISCV
#elif defined(__powerpc64__)
#define HOST_MACHINE EM_PPC64
#elif defined(__s390x__)
#define HOST_MACHINE EM_S390
#else
#define HOST_MACHINE EM_NONE
#endif

#if UINTPTR_MAX == UINT64_MAX
#define HOST_CLASS ELFCLASS64
typedef Elf64_Ehdr header;
typedef Elf64_Phdr segment;
typedef Elf64_Dyn dynamic;
typedef Elf64_Sym symbol;
#else
#define HOST_CLASS ELFCLASS32
typedef Elf32_Ehdr header;
typedef Elf32_Phdr segment;
typedef Elf32_Dyn dynamic;
typedef Elf32_Sym symbol;
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HOST_ENDIAN ELFDATA2LSB
#else
#define HOST_ENDIAN ELFDATA2MSB
#endif

enum { MOST_SYMBOLS = 1 << 22 };
static const char note_owner[] = "dispatchlab";

/* Copies `length` bytes at `at`; false when they are not all inside the file. */
static bool get(const dl_elf *elf, uint64_t at, void *to, size_t length) {
  if (at > elf->size || length > elf->size - at) return false;
  memcpy(to, elf->bytes + at, length);
  return true;
}

static bool segment_at(const dl_elf *elf, uint16_t i, segment *out) {
  return get(elf, elf->segments + (uint64_t)i * sizeof *out, out, sizeof *out);
}

/* Where an address of the loaded library stands in the file; false when nothing of the file is loaded there. */
static bool offset_of(const dl_elf *elf, uint64_t address, uint64_t *offset) {
  segment s;
  for (uint16_t i = 0; i < elf->segment_count; ++i) {
    if (!segment_at(elf, i, &s)) return false;
    if (s.p_type != PT_LOAD || address < s.p_vaddr || address - s.p_vaddr >= s.p_filesz) continue;
    *offset = s.p_offset + (address - s.p_vaddr);
    return *offset < elf->size;
  }
  return false;
}

static bool dynamic_at(const dl_elf *elf, uint64_t i, dynamic *out) {
  return i < elf->dynamic_count && get(elf, elf->dynamic + i * sizeof *out, out, sizeof *out) && out->d_tag != DT_NULL;
}

/* The value of the first entry with this tag. */
static bool dynamic_value(const dl_elf *elf, int64_t tag, uint64_t *value) {
  dynamic d;
  for (uint64_t i = 0; dynamic_at(elf, i, &d); ++i) {
    if (d.d_tag != tag) continue;
    *value = d.d_un.d_val;
    return true;
  }
  return false;
}

/* Symbols up to the last that the GNU hash table leads to: it has no field for their number. */
static bool gnu_hash_count(const dl_elf *elf, uint64_t at, uint64_t *count) {
  uint32_t head[4]; /* buckets, first symbol, words of the filter, shift */
  if (!get(elf, at, head, sizeof head)) return false;
  const uint64_t buckets = at + sizeof head + (uint64_t)head[2] * sizeof(uintptr_t);
  uint32_t last = 0, bucket;
  for (uint32_t i = 0; i < head[0]; ++i) {
    if (!get(elf, buckets + (uint64_t)i * sizeof bucket, &bucket, sizeof bucket)) return false;
    if (bucket > last) last = bucket;
  }
  *count = head[1];
  if (last < head[1]) return true; /* nothing is exported */
  const uint64_t chains = buckets + (uint64_t)head[0] * sizeof bucket;
  for (uint32_t hash = 0; (hash & 1) == 0; ++last)
    if (last > MOST_SYMBOLS || !get(elf, chains + (uint64_t)(last - head[1]) * sizeof hash, &hash, sizeof hash)) return false;
  *count = last;
  return true;
}

static bool count_symbols(dl_elf *elf) {
  uint64_t address, at;
  uint32_t head[2]; /* buckets, chain entries: one for each symbol */
  if (dynamic_value(elf, DT_HASH, &address) && offset_of(elf, address, &at) && get(elf, at, head, sizeof head))
    elf->symbol_count = head[1];
  else if (!dynamic_value(elf, DT_GNU_HASH, &address) || !offset_of(elf, address, &at) ||
           !gnu_hash_count(elf, at, &elf->symbol_count))
    return false;
  return elf->symbol_count <= MOST_SYMBOLS && elf->symbols <= elf->size &&
         elf->symbol_count <= (elf->size - elf->symbols) / sizeof(symbol);
}

/* Notes are name size, description size, type, then both, each padded to four bytes. */
static void read_notes(dl_elf *elf, uint64_t at, uint64_t length) {
  uint32_t head[3], levels[2];
  char owner[sizeof note_owner];
  if (at > elf->size || length > elf->size - at) return;
  for (const uint64_t end = at + length; at + sizeof head <= end;) {
    if (!get(elf, at, head, sizeof head)) return;
    const uint64_t name = at + sizeof head, description = name + ((uint64_t)head[0] + 3) / 4 * 4;
    at = description + ((uint64_t)head[1] + 3) / 4 * 4;
    if (at > end || head[0] != sizeof note_owner || head[1] < sizeof levels || head[2] != 1) continue;
    if (!get(elf, name, owner, sizeof owner) || memcmp(owner, note_owner, sizeof owner) != 0) continue;
    if (!get(elf, description, levels, sizeof levels)) return;
    elf->note_level = levels[0];
    elf->note_oldest_host = levels[1];
  }
}

static dl_elf_status refuse(dl_elf *elf, uint16_t found, dl_elf_status why) {
  elf->found = found;
  return why;
}

static dl_elf_status check_header(dl_elf *elf, const header *h) {
  if (h->e_ident[EI_CLASS] != HOST_CLASS) return refuse(elf, h->e_ident[EI_CLASS], DL_ELF_CLASS);
  if (h->e_ident[EI_DATA] != HOST_ENDIAN) return refuse(elf, h->e_ident[EI_DATA], DL_ELF_ENDIAN);
  if (h->e_machine != HOST_MACHINE) return refuse(elf, h->e_machine, DL_ELF_MACHINE);
  if (h->e_type != ET_DYN) return refuse(elf, h->e_type, DL_ELF_TYPE);
  if (h->e_phentsize != sizeof(segment) || h->e_phnum == 0 || h->e_phnum == PN_XNUM) return DL_ELF_MALFORMED;
  if (h->e_phoff > elf->size || (elf->size - h->e_phoff) / sizeof(segment) < h->e_phnum) return DL_ELF_TRUNCATED;
  elf->segments = h->e_phoff;
  elf->segment_count = h->e_phnum;
  return DL_ELF_OK;
}

/* Every segment must be in the file, or dlopen would map what is not there: a fault at first touch. */
static dl_elf_status read_segments(dl_elf *elf) {
  segment s;
  for (uint16_t i = 0; i < elf->segment_count && segment_at(elf, i, &s); ++i) {
    if (s.p_type == PT_LOAD && (s.p_offset > elf->size || s.p_filesz > elf->size - s.p_offset)) return DL_ELF_TRUNCATED;
    if (s.p_type == PT_LOAD && s.p_filesz > s.p_memsz) return DL_ELF_MALFORMED;
    if (s.p_type == PT_NOTE) read_notes(elf, s.p_offset, s.p_filesz);
    if (s.p_type != PT_DYNAMIC) continue;
    if (s.p_offset > elf->size || s.p_filesz > elf->size - s.p_offset) return DL_ELF_TRUNCATED;
    elf->dynamic = s.p_offset;
    elf->dynamic_count = s.p_filesz / sizeof(dynamic);
  }
  return elf->dynamic_count > 0 ? DL_ELF_OK : DL_ELF_MALFORMED;
}

dl_elf_status dl_elf_open(const uint8_t *bytes, size_t size, dl_elf *out) {
  header h;
  uint64_t address;
  *out = (dl_elf){.bytes = bytes, .size = size};
  if (size < SELFMAG || memcmp(bytes, ELFMAG, SELFMAG) != 0) return DL_ELF_NOT_ELF;
  if (size > EI_CLASS && bytes[EI_CLASS] != HOST_CLASS) return refuse(out, bytes[EI_CLASS], DL_ELF_CLASS);
  if (!get(out, 0, &h, sizeof h)) return DL_ELF_TRUNCATED;
  dl_elf_status status = check_header(out, &h);
  if (status == DL_ELF_OK) status = read_segments(out);
  if (status != DL_ELF_OK) return status;
  if (!dynamic_value(out, DT_STRSZ, &out->strings_size) || !dynamic_value(out, DT_STRTAB, &address) ||
      !offset_of(out, address, &out->strings) || !dynamic_value(out, DT_SYMTAB, &address) ||
      !offset_of(out, address, &out->symbols))
    return DL_ELF_MALFORMED;
  if (out->strings_size > size - out->strings) return DL_ELF_TRUNCATED;
  return count_symbols(out) ? DL_ELF_OK : DL_ELF_MALFORMED;
}

/* A string of the dynamic string table; NULL when it does not end inside of it. */
static const char *string_at(const dl_elf *elf, uint64_t index) {
  if (index >= elf->strings_size) return NULL;
  const char *text = (const char *)elf->bytes + elf->strings + index;
  return memchr(text, '\0', elf->strings_size - index) != NULL ? text : NULL;
}

const char *dl_elf_string(const dl_elf *elf, int64_t tag, size_t i) {
  dynamic d;
  for (uint64_t entry = 0; dynamic_at(elf, entry, &d); ++entry)
    if (d.d_tag == tag && i-- == 0) return string_at(elf, d.d_un.d_val);
  return NULL;
}

bool dl_elf_symbol_at(const dl_elf *elf, uint64_t i, dl_elf_symbol *out) {
  symbol s;
  if (i >= elf->symbol_count || !get(elf, elf->symbols + i * sizeof s, &s, sizeof s) || s.st_name == 0) return false;
  const unsigned bind = s.st_info >> 4, visibility = s.st_other & 3;
  if (bind != STB_GLOBAL && bind != STB_WEAK && bind != STB_GNU_UNIQUE) return false;
  out->name = string_at(elf, s.st_name);
  out->defined = s.st_shndx != SHN_UNDEF;
  out->weak = bind == STB_WEAK;
  out->visible = visibility == STV_DEFAULT || visibility == STV_PROTECTED;
  return out->name != NULL;
}
