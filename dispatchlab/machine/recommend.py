"""Which CPU to pin a measurement to, and why: a chain of preferences, each kept where it leaves any CPU at all."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from .allowed import isolated, nohz_full
from .cpulist import list_of
from .interrupts import interrupts
from .kinds import kinds
from .settings import number
from .topology import Cpus, cores, outside_l3, siblings
from .tree import Tree


@dataclass(frozen=True)
class Choice:
    """cpu: the one to pin to, None where no CPU is known; why: one clause for each step that narrowed the choice."""

    cpu: int | None
    why: tuple[str, ...]


def recommend(tree: Tree, allowed: Cpus) -> Choice:
    """The CPU of the allowed ones on which a measurement is disturbed least. A step whose facts cannot be read decides nothing; where
    none can, the last allowed CPU is left."""
    if not allowed:
        return Choice(None, ("no CPU is known here",))
    left, why = allowed, [f"allowed: {list_of(allowed)}"]
    for step in STEPS:
        if len(left) == 1:
            break
        better, reason = _taken(step, tree, left, allowed)
        if better and better != left:
            left = better
            why.append(reason)
    if len(left) > 1:
        why.append(f"the last of {list_of(left)}, between which nothing here decides")
    return Choice(max(left), (*why, *_company(tree, max(left), allowed)))


def _company(tree: Tree, cpu: int, allowed: Cpus) -> tuple[str, ...]:
    """Who else runs on the core, where it is known and somebody does."""
    try:
        others = siblings(tree, cpu) - {cpu}
    except (OSError, ValueError):
        return ()
    if not others:
        return ()
    theirs = others - allowed
    return (f"it shares its core with {list_of(others)}" + (", where others may run" if theirs else ": keep that idle"),)


@cache
def best_of(allowed: tuple[int, ...]) -> int:
    """The recommended one of these CPUs of this machine. Asked once per set: counts move, and a study must stay where it is."""
    choice = recommend(Tree(), frozenset(allowed)).cpu
    return max(allowed) if choice is None else choice


def _taken(step: "Step", tree: Tree, left: Cpus, allowed: Cpus) -> "Narrowed":
    try:
        return step(tree, left, allowed)
    except (OSError, LookupError, ValueError):  # the report tells why, under the facts' own names
        return left, ""


Narrowed = tuple[Cpus, str]
Step = Callable[[Tree, Cpus, Cpus], Narrowed]


def _not_first(tree: Tree, left: Cpus, allowed: Cpus) -> Narrowed:
    return left - {0}, "not CPU 0, which the kernel gives work of its own"


def _left_alone(tree: Tree, left: Cpus, allowed: Cpus) -> Narrowed:
    alone, tickless = _isolated(tree), tree.fact("nohz_full", lambda: nohz_full(tree)) or frozenset()
    for wanted, what in (
        (alone & tickless, "isolated and without a timer tick"),
        (alone, "isolated"),
        (tickless, "without a timer tick"),
    ):
        if left & wanted:
            return left & wanted, f"{what}: {list_of(wanted)}"
    return left, ""


def _isolated(tree: Tree) -> Cpus:
    return tree.fact("isolated", lambda: isolated(tree)) or frozenset()


def _fastest(tree: Tree, left: Cpus, allowed: Cpus) -> Narrowed:
    kind = kinds(tree, left)[0]
    return kind.cpus, f"{kind.name} core: {kind.why}"


def _inside_l3(tree: Tree, left: Cpus, allowed: Cpus) -> Narrowed:
    return left - outside_l3(tree, left), "inside the L3"


def _cores(tree: Tree, left: Cpus) -> dict[int, Cpus]:
    """The core of each of these CPUs, as its threads."""
    return {cpu: core for core in cores(tree, left) for cpu in core & left}


SHARING = (
    "no other thread on its core",
    "the other threads of its core are isolated too",
    "the other threads of its core are in the allowed set",
)


def _alone(tree: Tree, left: Cpus, allowed: Cpus) -> Narrowed:
    alone = _isolated(tree)

    def rank(cpu: int, core: Cpus) -> int:
        others = core - {cpu}
        return next((i for i, free in enumerate((frozenset(), alone, allowed)) if others <= free), len(SHARING))

    ranks = {cpu: rank(cpu, core) for cpu, core in _cores(tree, left).items()}
    best = min(ranks.values())
    return frozenset(cpu for cpu in ranks if ranks[cpu] == best), SHARING[min(best, len(SHARING) - 1)]


def _apart(tree: Tree, left: Cpus, allowed: Cpus) -> Narrowed:
    return frozenset(cpu for cpu, core in _cores(tree, left).items() if 0 not in core), "its core is not that of CPU 0"


def _first_thread(tree: Tree, left: Cpus, allowed: Cpus) -> Narrowed:
    first = frozenset(cpu for cpu, core in _cores(tree, left).items() if cpu == min(core))
    return first, "first thread of its core, which stays when SMT is turned off"


def _beside_idle(tree: Tree, left: Cpus, allowed: Cpus) -> Narrowed:
    """The siblings that were busy least since boot, in tenths: finer differences come and go."""
    busy = _busy(tree)
    tenths = {cpu: round(10 * max((busy[o] for o in core - {cpu}), default=0.0)) for cpu, core in _cores(tree, left).items()}
    least = min(tenths.values())
    return frozenset(c for c in tenths if tenths[c] == least), f"its sibling was busy for about {10 * least} % of the time since boot"


def _busy(tree: Tree) -> dict[int, float]:
    """The share of the time since boot that each CPU was not idle, of those that were up. OSError, ValueError."""
    found = {}
    for line in tree.read("proc/stat").splitlines():
        name, *fields = line.split() or [""]
        if name.startswith("cpu") and name[3:].isdigit() and len(fields) >= 5:
            times = [number("proc/stat", field) for field in fields[:8]]
            found[int(name[3:])] = 1 - (times[3] + times[4]) / (sum(times) or 1.0)
    return found


def _quiet(tree: Tree, left: Cpus, allowed: Cpus) -> Narrowed:
    counts = interrupts(tree)
    try:
        of_core = {cpu: sum(counts.get(thread, 0) for thread in core) for cpu, core in _cores(tree, left).items()}
        where = "its core"
    except (OSError, LookupError, ValueError):
        of_core, where = {cpu: counts[cpu] for cpu in left}, "it"
    least = min(of_core.values())
    return frozenset(c for c in of_core if of_core[c] == least), f"{where} took the fewest interrupts of devices: {least} since boot"


STEPS: tuple[Step, ...] = (
    _not_first, _left_alone, _fastest, _inside_l3, _alone, _apart, _first_thread, _beside_idle, _quiet,
)  # fmt: skip
