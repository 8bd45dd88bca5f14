"""Which CPUs a process may run on, by its own mask and by its control group, and which of them the kernel leaves alone."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .cpulist import cpus_of, cpus_of_mask
from .settings import CPU
from .topology import Cpus
from .tree import Tree

STATUS = "proc/self/status"
GROUPS = "proc/self/cgroup"


@dataclass(frozen=True)
class Allowed:
    """cpus: what is left of all of it; affinity: the process's mask; group: its cpuset; version: "cgroup v1" or "cgroup v2". None:
    not told, with the reason in the tree's `unread`."""

    cpus: Cpus
    affinity: Cpus | None
    group: Cpus | None
    version: str | None


def allowed(tree: Tree, running: Cpus) -> Allowed:
    """The set, out of what can be read. A mask is not cut where nothing would be left: some containers are shown other numbers of
    CPUs than those that their masks hold."""
    mask = tree.fact("affinity", lambda: affinity(tree))
    found = tree.fact("cpuset", lambda: cpuset(tree))
    version, group = found or (None, None)
    cpus = mask or group or running
    for other in (group, running):
        cpus = cpus & (other or cpus) or cpus
    return Allowed(cpus, mask, group, version)


def affinity(tree: Tree) -> Cpus:
    """The process's own mask. LookupError, OSError, ValueError."""
    text = tree.read(STATUS)
    if match := re.search(r"^Cpus_allowed_list:[ \t]*(\S*)", text, re.MULTILINE):
        return cpus_of(match[1])
    if match := re.search(r"^Cpus_allowed:[ \t]*(\S+)", text, re.MULTILINE):
        return cpus_of_mask(match[1])
    raise LookupError(f"{STATUS} has no Cpus_allowed_list")



def cpuset(tree: Tree) -> tuple[str, Cpus]:
    """The cpuset of the process's control group, or of the nearest one above that has one, and whose it is: "cgroup v1" or
    "cgroup v2". LookupError, OSError, ValueError."""
    for version, bases, path, files in _groups(tree.read(GROUPS)):
        for base in bases:
            for above in _upwards(path):
                for file in files:
                    if text := _of_group(tree, f"{base}{above}/{file}", f"{base}/{file}"):
                        return version, cpus_of(text)
    raise LookupError(f"not available here: no cpuset for the group in {GROUPS}")


def _of_group(tree: Tree, name: str, alias: str) -> str | None:
    """A file of a group. Groups are named after users and containers: neither a recording nor an error tells the name."""
    try:
        return tree.optional(name, alias=alias)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(tree.root / alias)) from error


def _groups(text: str) -> Iterator[tuple[str, tuple[str, ...], str, tuple[str, ...]]]:
    """Version, mount points, path and files for each hierarchy that may hold a cpuset, v1 first: where it has the controller, v2 does
    not."""
    rows = [row for line in text.splitlines() if len(row := line.split(":", 2)) == 3]
    for _, controllers, path in rows:
        if "cpuset" in controllers.split(","):
            bases = ("sys/fs/cgroup/cpuset", f"sys/fs/cgroup/{controllers}")
            yield "cgroup v1", bases, path, ("cpuset.effective_cpus", "cpuset.cpus")
    for number, controllers, path in rows:
        if number == "0" and not controllers:
            yield "cgroup v2", ("sys/fs/cgroup", "sys/fs/cgroup/unified"), path, ("cpuset.cpus.effective",)


def _upwards(path: str) -> Iterator[str]:
    """A group's path and those above it, "" last. A path seen from inside a namespace may begin with /.. and is then the root."""
    parts = [] if ".." in path.split("/") else [part for part in path.split("/") if part]
    for length in range(len(parts), -1, -1):
        yield "".join(f"/{part}" for part in parts[:length])



def isolated(tree: Tree) -> Cpus:
    """CPUs that the scheduler keeps other work away from. OSError, ValueError."""
    return cpus_of(tree.read(f"{CPU}/isolated"))


def nohz_full(tree: Tree) -> Cpus:
    """CPUs that get no timer tick while one task runs there. OSError, ValueError."""
    return cpus_of(tree.read(f"{CPU}/nohz_full"))


