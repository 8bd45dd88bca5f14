"""Study `boundary`: what it costs that a handler was compiled elsewhere, packet by packet and in batches.

The plugin is compiled here and now, with the system's compiler, and computes exactly what built-in handler 0 does: chain bodies,
tiny and fat. So the checksums of all slots are equal, and what differs is the boundary: the view that is lent, the status that is
checked, the call into another library.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..handlers import HandlerSet, bodies, handlers, multiplier
from ..measure import Cell, measure_cells, record
from ..plugins import load
from ..plugins.building import build
from ..recording import Measurement, Recording
from ..traffic import uniform
from .options import Options

SIZES = ("tiny", "fat")
BATCHES = (1, 8, 64, 256)


def run(options: Options) -> Recording:
    """Built-in and plugged-in, tiny and fat, in one interleaved set."""
    with tempfile.TemporaryDirectory() as folder:
        sets = {size: plugged(size, Path(folder)) for size in SIZES}
        measurement = measure(options, sets)
    used = [sets[size].foreign.plugins[0].described() for size in SIZES]
    return record("boundary", [measurement], seed=options.seed, cpu=options.pinned, plugins=used)


def measure(options: Options, plugged_in: dict[str, HandlerSet]) -> Measurement:
    """The same packets for all: every one goes to handler 0."""
    built_in = {size: handlers(1, size=size, residual=0) for size in SIZES}
    tr = uniform(built_in["tiny"], seed=options.seed)
    cells = []
    for size in SIZES:
        cells.append(Cell("direct-call", built_in[size], tr, f"direct {size}"))
        cells.append(Cell("indirect-call", built_in[size], tr, f"built-in {size}"))
        cells.append(Cell("indirect-call", plugged_in[size], tr, f"plugin {size}"))
        cells += [Cell(f"batched-call-{b}", built_in[size], tr, f"built-in {size}, batch {b}") for b in BATCHES]
        cells += [Cell(f"batched-call-{b}", plugged_in[size], tr, f"plugin {size}, batch {b}") for b in BATCHES]
    with options.progress("boundary") as progress:
        return measure_cells(
            "boundary",
            cells,
            budget=options.seconds(30, 3),
            cpu=options.pinned,
            seed=options.seed,
            reference=1,
            progress=progress,
        )


def plugged(size: str, folder: Path) -> HandlerSet:
    """A set of one handler, that of a plugin which computes what built-in handler 0 of this size does."""
    source_file = folder / f"boundary_{size}.c"
    source_file.write_text(source(size), encoding="utf-8")
    return handlers(0, size=size, residual=0, plugins=[load(build(source_file, flags=("-O3",)))])


def source(size: str) -> str:
    """The plugin: the chain body of handler 0 with its constants written out, as it is stamped into the engine."""
    rounds = next(n for body, s, n in bodies() if (body, s) == ("chain", size))
    steps = "".join(
        f"  h = (h ^ p[{r % 24}]) * UINT64_C({multiplier(0, r)});\n  h ^= h >> 29;\n  h = (h << 17) | (h >> 47);\n"
        for r in range(rounds)
    )
    return SOURCE.replace("SIZE", size).replace("SEED", str(multiplier(0, 63))).replace("STEPS", steps)


SOURCE = """\
#include <dispatchlab/plugin.h>

static uint32_t claimed_keys(uint16_t *keys, uint32_t capacity) {
  if (capacity > 0) keys[0] = 257;
  return 1;
}

static int32_t create(void **instance) {
  *instance = 0;
  return DISPATCHLAB_OK;
}

static void destroy(void *instance) { (void)instance; }

/* The work, behind a call, as a built-in handler's is: what is compared is the boundary and not what inlining saves. */
static __attribute__((noinline)) uint32_t work(const uint8_t *p) {
  uint64_t h = UINT64_C(SEED);
STEPS  return (uint32_t)(h ^ (h >> 32));
}

static int32_t process(void *instance, const dispatchlab_view *packet, uint32_t *result) {
  (void)instance;
  if (packet->size < 24) return DISPATCHLAB_FAILED;
  *result = work(packet->bytes);
  return DISPATCHLAB_OK;
}

static int32_t process_batch(void *instance, const dispatchlab_batch *batch) {
  (void)instance;
  for (uint64_t i = 0; i < batch->count; ++i) {
    const dispatchlab_view *view = (const dispatchlab_view *)((const char *)batch->views + i * batch->view_stride);
    uint32_t *result = (uint32_t *)((char *)batch->results + i * batch->result_stride);
    *result = view->size < 24 ? 0 : work(view->bytes);
  }
  return DISPATCHLAB_OK;
}

static const dispatchlab_plugin table = {
    .magic = DISPATCHLAB_PLUGIN_MAGIC,
    .abi_version = DISPATCHLAB_PLUGIN_LEVEL,
    .struct_size = sizeof(dispatchlab_plugin),
    .oldest_host = 1,
    .name = "boundary SIZE",
    .claimed_keys = claimed_keys,
    .create = create,
    .destroy = destroy,
    .process = process,
    .process_batch = process_batch,
};

DISPATCHLAB_PLUGIN_DEFINE(table)
"""
