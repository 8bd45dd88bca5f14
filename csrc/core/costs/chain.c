/* Pointer chase: each load's address is what the load before brought. */
#include <stdlib.h>
#include <sys/mman.h>

#include "clock.h"
#include "costs.h"

enum { LINE = 64, PAGE = 4096, HUGE_PAGE = 2 << 20 };

typedef struct link {
  struct link *next;
  uint64_t turn; /* how many loads after the first line this one comes */
} link;

static link *line_at(char *base, size_t i, size_t stride) {
  const size_t offset = stride < PAGE ? 0 : i % (PAGE / LINE) * LINE;
  return (link *)(void *)(base + i * stride + offset);
}

static dl_status join_lines(dl_chain *chain, char *base, size_t stride, uint64_t seed) {
  uint32_t *order = malloc(chain->lines * sizeof *order);
  if (order == NULL) return DL_NO_MEMORY;
  for (size_t i = 0; i < chain->lines; ++i) order[i] = (uint32_t)i;
  for (size_t i = chain->lines - 1; i > 0; --i) {
    const size_t j = (size_t)(dl_cost_random(&seed) % (i + 1));
    const uint32_t swap = order[i];
    order[i] = order[j], order[j] = swap;
  }
  for (size_t i = 0; i < chain->lines; ++i) {
    link *at = line_at(base, order[i], stride);
    at->next = line_at(base, order[i + 1 == chain->lines ? 0 : i + 1], stride);
    at->turn = i;
  }
  chain->first = line_at(base, order[0], stride);
  free(order);
  return DL_OK;
}

dl_status dl_chain_open(dl_chain *chain, size_t lines, size_t stride, bool huge, uint64_t seed) {
  *chain = (dl_chain){.lines = lines};
  if (lines < 1 || lines > UINT32_MAX / 2 || stride < LINE || stride % LINE != 0 || stride > HUGE_PAGE) return DL_BAD_ARGUMENT;
  if (lines > (SIZE_MAX / 4) / stride) return DL_BAD_ARGUMENT;
  chain->bytes = lines * stride + HUGE_PAGE;
  void *memory = mmap(NULL, chain->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return DL_NO_MEMORY;
  chain->memory = memory;
  madvise(memory, chain->bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE); /* a kernel without them has the usual pages only */
  char *base = memory;
  base += (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE) % HUGE_PAGE;
  const dl_status status = join_lines(chain, base, stride, seed);
  if (status != DL_OK) dl_chain_close(chain);
  return status;
}

void dl_chain_close(dl_chain *chain) {
  if (chain->memory != NULL) munmap(chain->memory, chain->bytes);
  chain->memory = NULL;
}

static DL_NOINLINE link *chase(link *at, uint64_t steps) {
  for (; steps >= 8; steps -= 8) {
    at = at->next->next->next->next;
    at = at->next->next->next->next;
  }
  for (; steps > 0; --steps) at = at->next;
  return at;
}

void dl_chain_run(const dl_chain *chain, uint64_t warm, uint64_t steps, dl_cost *out) {
  link *at = chase(chain->first, warm);
  const uint64_t turn = at->turn;
  const uint64_t begin = dl_ticks_begin();
  at = chase(at, steps);
  DL_OPAQUE(at);
  out->ticks = (int64_t)(dl_ticks_end() - begin);
  out->count = steps;
  out->checksum = at->turn;
  out->expected = (turn + steps) % chain->lines;
}
