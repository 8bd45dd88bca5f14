"""Study `reproduce`: the whole of the study in one recording."""

from __future__ import annotations

from ..data import data_files
from ..measure import record
from ..recording import Recording
from . import instrument, pool, scan, traffic
from .options import Options


def run(options: Options) -> Recording:
    """Instrument first, as the first work of a fresh process; then scan, traffic with the counts files, pool."""
    facts = instrument.run(options)
    files = options.traffic or tuple(str(path) for path in data_files("traffic", "*.csv"))
    generated = [scan.measure(options), traffic.measure_generated(options)]
    read = [traffic.measure_file(options, file) for file in files]
    measurements = [
        *facts.measurements,
        *generated,
        *(m for m, _ in read),
        pool.measure(options),
    ]
    sources = {m.name: source for m, source in read}
    return record("reproduce", measurements, seed=options.seed, cpu=options.pinned, sources=sources, **facts.extra)
