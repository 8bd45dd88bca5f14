"""Tables about code out of a recording: bytes of handlers and arms, and what became of a virtual call. Pure."""

from __future__ import annotations

from . import wording
from .recording import Recording
from .tables import Table


def code_tables(recording: Recording) -> list[Table]:
    """Those that the recording holds the facts for."""
    found = [_bodies(recording), _text(recording), _devirtualization(recording)]
    return [table for table in found if table is not None]


def _bodies(recording: Recording) -> Table | None:
    code = recording.extra.get("code")
    if not code:
        return None
    rows = tuple(
        (name, f"{c['bytes']:.0f}", f"{c['least']:.0f} to {c['most']:.0f}", f"{c['handlers']}", wording.size(100 * c["bytes"]))
        for name, c in code.items()
    )
    notes = ("Bytes of each handler's function, read from the symbols of the built library.",)
    return Table("code-bodies", "The code of one handler", ("body", "bytes", "least to most", "handlers", "100 of them"), rows, notes)


def _text(recording: Recording) -> Table | None:
    text, arms = recording.extra.get("text"), recording.extra.get("arms")
    if not text or not arms:
        return None
    parts = ("bodies", "predicates", "loops", "rest")
    functions = sum(text[part] for part in parts)
    rows = [(f"all {part}", f"{text[part]}", f"{100 * text[part] / functions:.1f} %") for part in parts]
    rows += [(f"one loop of {arm}", f"{size}", f"{100 * size / functions:.3f} %") for arm, size in arms.items() if size is not None]
    notes = (
        f"Functions only; the .text section has {text['section']} bytes with the padding between them. No rodata, no unwind tables.",
        "A loop of an arm: one of its timed loops, over fat chain bodies where it has one for each body.",
    )
    return Table("code-text", "What the library's text is made of", ("part", "bytes", "of all functions"), tuple(rows), notes)


def _devirtualization(recording: Recording) -> Table | None:
    built = recording.extra.get("devirtualization")
    if not built:
        return None
    rows = tuple((b["way"], b["compiler"], b["became"], str(b["loads"]), str(b["bytes"])) for b in built)
    notes = (
        "The same call site in C++, built at -O2; what became of the call is read from the machine code.",
        *(recording.extra.get("devirtualization_missing") or ()),
    )
    heads = ("way", "compiler", "the call became", "loads", "bytes")
    return Table("devirtualization", "What the compiler made of one virtual call", heads, rows, notes)
