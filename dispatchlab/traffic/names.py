"""Traffic by name, as the command line takes it: "zipf:1.3", "hot:0.95,2", "counts.csv", "a.pcapng"."""

import difflib
import inspect
import os.path
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from dispatchlab.errors import UsageError, explain
from dispatchlab.traffic.generate import bursts, hot, uniform, worst, zipf
from dispatchlab.traffic.hostile import flood, mixture, shift
from dispatchlab.traffic.packets import Handlers, Traffic
from dispatchlab.traffic.source import from_counts, from_pcap

NAMES: tuple[str, ...] = ("uniform", "zipf", "hot", "worst")
"""The generators that the study shows, in its order."""

_GENERATORS: dict[str, tuple[Callable[..., Traffic], tuple[type, ...]]] = {
    "uniform": (uniform, ()),
    "zipf": (zipf, (float,)),
    "hot": (hot, (float, int)),
    "worst": (worst, ()),
    "bursts": (bursts, (float,)),
    "shift": (shift, (int, float)),
    "flood": (flood, (str,)),
}
MIX = "mix"
_CAPTURES = {".pcap", ".pcapng", ".cap", ".dmp"}


def make(spec: str | PathLike[str], hs: Handlers, **options: Any) -> Traffic:
    """Traffic from its name, with parameters behind a colon, or from a counts (.csv) or capture file.

    `options` are those of the generator or of `from_counts` and `from_pcap`; one that this traffic has no use
    for (`shuffle` of "uniform") is left out. Raises UsageError with the nearest names, or TrafficError.
    """
    text = str(spec)
    name, _, tail = text.partition(":")
    if name == MIX:
        return _mixed(text, tail, hs, options)
    if name in _GENERATORS:
        function, kinds = _GENERATORS[name]
        return _call(function, hs, _parameters(text, tail, kinds), options)
    suffix = Path(text).suffix.lower()
    if suffix == ".csv":
        return _call(from_counts, hs, [text], options)
    if suffix in _CAPTURES or os.path.isfile(text):
        return _call(from_pcap, hs, [text], options)
    near = difflib.get_close_matches(name, _GENERATORS, 2, 0.5)
    remedy = f"did you mean {' or '.join(near)}?" if near else ""
    raise UsageError(
        explain(f"unknown traffic {text!r}", expected=f"{', '.join(_GENERATORS)}, or a file", remedy=remedy)
    )


def _mixed(text: str, tail: str, hs: Handlers, options: dict[str, Any]) -> Traffic:
    """A mixture by its name: "mix:0.8*zipf+0.2*flood:unmatched", equal shares where none are said."""
    parts = []
    for part in tail.split("+"):
        share, star, spec = part.rpartition("*")
        try:
            number = float(share) if star else 1.0
        except ValueError:
            number = 0.0
        if not spec or spec.partition(":")[0] == MIX or not number > 0:
            raise UsageError(explain("bad mixture", text, "mix:SHARE*TRAFFIC+SHARE*TRAFFIC..., shares above 0", repr(part)))
        parts.append((make(spec, hs, **options), number))
    return mixture(parts, hs, seed=options.get("seed", 0), name=text)


def _parameters(text: str, tail: str, kinds: tuple[type, ...]) -> list[Any]:
    """The numbers behind the colon."""
    parts = tail.split(",") if tail else []
    try:
        if len(parts) > len(kinds):
            raise ValueError
        return [kind(part) for kind, part in zip(kinds, parts, strict=False)]
    except ValueError:
        forms = {0: "no parameters", 1: "one number", 2: "two numbers"}
        raise UsageError(explain("bad traffic parameters", text, forms[len(kinds)], repr(tail))) from None


def _call(
    function: Callable[..., Traffic], hs: Handlers, parameters: list[Any], options: dict[str, Any]
) -> Traffic:
    known = inspect.signature(function).parameters
    everywhere = {"seed", "pool", "shuffle", "unmatched", "key", "replay"}
    if unknown := sorted(set(options) - set(known) - everywhere):
        raise UsageError(
            explain(f"unknown traffic option {unknown[0]!r}", function.__name__, ", ".join(list(known)[1:]))
        )
    return function(hs, *parameters, **{name: value for name, value in options.items() if name in known})
