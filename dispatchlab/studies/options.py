"""What every study can be told, and how it shows that it is alive."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from ..measure import Progress, choose_cpu


@dataclass(frozen=True)
class Options:
    """quick: a tenth of the time. traffic: names or files instead of the study's own. handlers: how many.
    rounds: so many of each measurement instead of a time, where a study can. threads, oversubscribe: of the study `lock`: so many
    threads instead of 1, 2, 4..., and whether they may be more than there are CPUs."""

    quick: bool = False
    cpu: int | None = None
    seed: int = 0
    traffic: tuple[str, ...] = ()
    handlers: int = 100
    budget: float | None = None
    bar: bool = False
    rounds: int | None = None
    threads: int | None = None
    oversubscribe: bool = False

    @property
    def pinned(self) -> int:
        """The CPU to measure on."""
        return choose_cpu(self.cpu)

    def seconds(self, full: float, quick: float) -> float:
        """How long a measurement may take: as asked for, or as the study plans."""
        if self.budget is not None:
            return self.budget
        return quick if self.quick else full

    @contextlib.contextmanager
    def progress(self, name: str) -> Iterator[Progress | None]:
        """A progress bar for one measurement where one is wanted; it moves outside of everything timed."""
        if not self.bar:
            yield None
            return
        from tqdm import tqdm

        with tqdm(desc=name, unit=" rounds", leave=False, dynamic_ncols=True) as bar:

            def report(done: int, planned: int) -> None:
                bar.total = planned
                bar.update(done - bar.n)

            yield report
