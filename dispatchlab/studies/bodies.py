"""Study `bodies`: what each kind of handler costs by itself, and how much of the library is handlers and how much arms."""

from __future__ import annotations

from typing import Any

from ..arms import arms
from ..errors import ToolError
from ..handlers import bodies, handlers
from ..machinecode import arm_bytes, code_sizes, text_bytes
from ..measure import Cell, measure_cells, record
from ..recording import Measurement, Recording
from ..traffic import uniform
from .options import Options


def run(options: Options) -> Recording:
    """Every body at every size, called by name."""
    return record("bodies", [measure(options)], seed=options.seed, cpu=options.pinned, **code())


def code() -> dict[str, Any]:
    """Bytes of text: of one handler, by part of the library, and of each arm's loop; or why they are unknown."""
    try:
        text = text_bytes()
    except (ToolError, OSError) as error:
        return {"text_missing": str(error)}
    return {"code": code_sizes(), "text": text, "arms": {arm.name: arm_bytes(arm.name) for arm in arms()}}


def measure(options: Options) -> Measurement:
    """One handler, called for every packet: the body's own work."""
    cells = []
    for body, size, _ in bodies():
        hs = handlers(1, body=body, size=size, residual=0)
        cells.append(Cell("direct-call", hs, uniform(hs, seed=options.seed, unmatched=0), f"{body} {size}"))
    with options.progress("bodies") as progress:
        return measure_cells(
            "bodies",
            cells,
            budget=options.seconds(10, 2),
            rounds=options.rounds,
            cpu=options.pinned,
            seed=options.seed,
            reference=0,
            progress=progress,
        )
