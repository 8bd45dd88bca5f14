"""A machine as nested boxes, before anything is drawn: which box holds which, how large each is and where. Lengths are inches."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from .. import wording
from .cpulist import list_of
from .report import Machine
from .topology import Cpus

DETAILED = 96
"""Threads up to which every box is drawn; beyond, one of those that are alike."""
ALIKE = 4
"""How many boxes in a row, alike, are drawn as one and a count."""
GAP, PAD, LINE, LETTER = 0.06, 0.08, 0.135, 0.062
THREAD = (0.60, 0.27)


@dataclass
class Box:
    """role: machine, package, node, cache, core, thread, offline or more; label: lines; kind: of core, "" where all are alike;
    mark: chosen, barred (not allowed) or ""."""

    role: str
    label: str
    cpus: Cpus
    kind: str = ""
    mark: str = ""
    children: list["Box"] = field(default_factory=list)


@dataclass(frozen=True)
class Laid:
    """A box with the least size it needs and its children in rows."""

    box: Box
    width: float
    height: float
    head: float
    rows: tuple[tuple["Laid", ...], ...] = ()


@dataclass(frozen=True)
class Placed:
    """Where a box goes: x and y of its upper left corner, y downwards; head: the height of its label's band."""

    box: Box
    x: float
    y: float
    width: float
    height: float
    head: float


def boxes(m: Machine) -> Box:
    """The machine's boxes, alike ones condensed where there are too many to see."""
    whole = Box("machine", "", m.online or m.allowed.cpus)
    owner: dict[int, tuple[Box, ...]] = dict.fromkeys(whole.cpus, (whole,))
    for box in sorted(_sets(m), key=lambda b: -len(b.cpus)):  # stable: of equal sets the outer one comes first
        cpus = box.cpus & whole.cpus
        if not cpus:
            continue
        above = next(chain for chain in _upwards(owner[min(cpus)]) if cpus <= chain[-1].cpus)
        above[-1].children.append(box)
        owner.update(dict.fromkeys(cpus, (*above, box)))
    _in_order(whole)
    if len(whole.cpus) > DETAILED:
        _condense(whole)
    if m.offline:
        whole.children.append(_offline(m.offline))
    return whole


def _upwards(chain: tuple[Box, ...]) -> Iterator[tuple[Box, ...]]:
    for length in range(len(chain), 0, -1):
        yield chain[:length]


def _sets(m: Machine) -> Iterator[Box]:
    """Every box but the outermost, the outer before the inner where both hold the same CPUs."""
    several = m.kinds is not None and len(m.kinds) > 1
    kind_of = {cpu: kind.name for kind in m.kinds or () for cpu in kind.cpus} if several else {}
    for number, cpus in (m.packages or {}).items():
        yield Box("package", f"package {number}", cpus)
    for number, cpus in (m.nodes or {}).items():
        yield Box("node", f"NUMA node {number}", cpus)
    yield from _caches(m)
    for cpus in m.cores or ():
        yield Box("core", "", cpus, kind_of.get(min(cpus), ""))
    for cpu in sorted(m.online or m.allowed.cpus):
        mark = "chosen" if cpu == m.choice.cpu else "" if cpu in m.allowed.cpus else "barred"
        yield Box("thread", f"CPU {cpu}", frozenset({cpu}), kind_of.get(cpu, ""), mark)


def _caches(m: Machine) -> Iterator[Box]:
    """One box for caches of a level that the same CPUs share, as data and instructions usually are; the largest level first."""
    shared: dict[tuple[int, Cpus], list[str]] = {}
    for cache in m.caches or ():
        letter = {"data": "d", "instruction": "i"}.get(cache.kind, "")
        size = "" if cache.size is None else f" {wording.size(cache.size)}"
        shared.setdefault((cache.level, cache.cpus), []).append(f"L{cache.level}{letter}{size}")
    for (_, cpus), labels in sorted(shared.items(), key=lambda item: (-item[0][0], min(item[0][1]))):
        yield Box("cache", "\n".join(labels), cpus)


def _offline(cpus: Cpus) -> Box:
    single = [Box("offline", f"CPU {cpu}", frozenset({cpu})) for cpu in sorted(cpus)]
    if len(single) > DETAILED // 4:
        single = [Box("offline", f"{len(cpus)} CPUs: {_short(cpus)}", cpus)]
    return Box("package", "offline", cpus, children=single)


def _short(cpus: Iterable[int]) -> str:
    text = list_of(cpus)
    return text if len(text) <= 24 else text[:20] + " ..."


def _in_order(box: Box) -> None:
    """By first CPU, the fastest kinds of cores first by the way they are numbered."""
    box.children.sort(key=lambda child: min(child.cpus))
    for child in box.children:
        _in_order(child)


def _condense(box: Box) -> None:
    """Of boxes in a row that are alike, keep one and tell how many more there are."""
    kept: list[Box] = []
    run: list[Box] = []
    for child in [*box.children, None]:
        if run and (child is None or _shape(child) != _shape(run[0])):
            kept += run if len(run) < ALIKE else [run[0], _more(run[1:])]
            run = []
        if child is not None:
            run.append(child)
    box.children = kept
    for child in kept:
        _condense(child)


def _more(run: Sequence[Box]) -> Box:
    cpus = frozenset().union(*(box.cpus for box in run))
    return Box("more", f"{len(run)} more alike\nCPUs {_short(cpus)}", cpus)


def _shape(box: Box) -> object:
    """What makes boxes alike: all but the numbers."""
    label = box.label if box.role == "cache" else ""
    return box.role, label, box.kind, box.mark, tuple(_shape(child) for child in box.children)


def arrange(box: Box, width: float) -> Laid:
    """The least size of a box, its children flowing into rows of at most `width`."""
    if box.role in ("thread", "offline", "more"):
        lines = box.label.split("\n")
        return Laid(box, max(THREAD[0], _text(lines) + 2 * PAD), max(THREAD[1], (len(lines) + 1) * LINE), 0.0)
    pad = _pad(box)
    laid = [arrange(child, width - 2 * pad) for child in box.children]
    rows = _rows(laid, width - 2 * pad)
    inner = max((sum(c.width for c in row) + GAP * (len(row) - 1) for row in rows), default=0.0)
    lines = _label(box, inner).split("\n") if box.label or box.kind else []
    head = len(lines) * LINE + 0.07 if lines else 0.0
    body = sum(max(c.height for c in row) for row in rows) + GAP * max(len(rows) - 1, 0)
    shown = replace(box, label="\n".join(lines))
    return Laid(shown, max(inner, _text(lines)) + 2 * pad, head + _below(box, head) + body + 2 * pad, head, rows)


def _label(box: Box, width: float) -> str:
    """A core says its kind, over several lines where it is narrow."""
    if box.role != "core":
        return box.label
    lines = [""]
    for word in box.kind.split():
        if lines[-1] and _text([f"{lines[-1]} {word}"]) > max(width, 0.7):
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def _pad(box: Box) -> float:
    if box.role == "cache":
        return PAD / 2 if framed(box) else 0.0
    return 0.0 if box.role == "machine" else PAD


def framed(box: Box) -> bool:
    """A cache is a bar above what it serves; where that is several boxes a frame holds them together."""
    return box.role == "cache" and len(box.children) > 1


def _below(box: Box, head: float) -> float:
    """Room between a label and the first row; a label on a frame's own ground needs none."""
    return GAP if head and box.role == "cache" else 0.0


def _text(lines: Sequence[str]) -> float:
    return max(map(len, lines), default=0) * LETTER


def _rows(laid: Sequence[Laid], width: float) -> tuple[tuple[Laid, ...], ...]:
    """Rows that fit; as even as can be where all are of one width."""
    if not laid:
        return ()
    if len({round(c.width, 3) for c in laid}) == 1:
        most = max(1, int((width + GAP) / (laid[0].width + GAP)))
        lines = -(-len(laid) // most)
        each = -(-len(laid) // lines)
        return tuple(tuple(laid[i : i + each]) for i in range(0, len(laid), each))
    rows: list[list[Laid]] = [[]]
    for child in laid:
        if rows[-1] and sum(c.width + GAP for c in rows[-1]) + child.width > width:
            rows.append([])
        rows[-1].append(child)
    return tuple(map(tuple, rows))


def place(laid: Laid, x: float = 0.0, y: float = 0.0, width: float = 0.0, height: float = 0.0) -> Iterator[Placed]:
    """Where everything goes, the outer box before those in it. A full row is stretched to the box, and what stands for
    many boxes to their height."""
    width = max(width, laid.width)
    yield Placed(laid.box, x, y, width, height if laid.box.role == "more" else laid.height, laid.head)
    pad = _pad(laid.box)
    top = y + pad + laid.head + _below(laid.box, laid.head)
    longest = max((len(row) for row in laid.rows), default=0)
    for row in laid.rows:
        spare = width - 2 * pad - sum(c.width for c in row) - GAP * (len(row) - 1)
        more = spare / len(row) if len(row) == longest and laid.box.role != "machine" else 0.0
        left = x + pad
        high = max(child.height for child in row)
        for child in row:
            yield from place(child, left, top, child.width + more, high)
            left += child.width + more + GAP
        top += high + GAP
