"""Where a measurement was made: the facts that move its numbers, none that names machine or user."""

import os
import platform
import subprocess
import sysconfig
from collections.abc import Callable, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from .machine.allowed import affinity
from .machine.conditions import CLOCK, about, hypervisor, known, model
from .machine.cpulist import list_of
from .machine.settings import CPU, Judge, aslr, governor, judged, smt, thp, turbo
from .machine.topology import cache_size
from .machine.tree import Tree

CACHES = ("L1d", "L1i", "L2", "L3")


def environment(
    root: Path = Path("/"), cpu: int | None = None, build: Callable[[], Mapping[str, str]] | None = None
) -> dict[str, Any]:
    """What this machine, its settings and the engine's build are, ready for a recording.

    root   where the kernel's files are (another root reads a recorded tree)
    cpu    whose caches are told; the first allowed one unless given
    build  tells the engine's "compiler", "flags" and "abi"; the engine itself unless given

    governor, turbo, smt, thp and aslr are {"state": "ok" | "bad" | "unknown", "value": ..., "why": ...}: ok
    is what repeats best. A fact that cannot be read is None and its reason stands under "unread".
    """
    tree = Tree(root)
    info = tree.fact("cpuinfo", lambda: about(tree)) or {}
    allowed = tree.fact("cpus_allowed", lambda: affinity(tree))
    chosen = cpu if cpu is not None else min(allowed or {0})
    found = {
        "cpu_model": tree.fact("cpu_model", lambda: model(info)),
        "microcode": tree.fact("microcode", lambda: known(info, "microcode")),
        "caches": _caches(tree, chosen),
        "cpus_allowed": list_of(allowed) if allowed else None,
        "kernel": tree.fact("kernel", lambda: tree.read("proc/sys/kernel/osrelease")),
        "machine": platform.machine(),
        "platform": f"{sysconfig.get_platform()} {' '.join(platform.libc_ver())}".strip(),
        "hypervisor": tree.fact("hypervisor", lambda: hypervisor(tree, info)),
        "clocksource": tree.fact("clocksource", lambda: tree.read(f"{CLOCK}/current_clocksource")),
        "governor": _setting(tree, governor),
        "turbo": _setting(tree, turbo),
        "smt": _setting(tree, smt),
        "thp": _setting(tree, thp),
        "aslr": _setting(tree, aslr),
        "python": platform.python_version(),
        "numpy": np.__version__,
        **_build(build),
    }
    return {**found, "unread": dict(sorted(tree.unread.items()))}


def package(folder: Path = Path(__file__).parent) -> dict[str, str | None]:
    """Version of this package and the commit it was made from: of the checkout around `folder`, else the one
    written to `_commit` when it was built, else None. A checkout with changes gets "-dirty"."""
    try:
        version = metadata.version("dispatchlab")
    except metadata.PackageNotFoundError:
        version = "unknown"
    return {"version": version, "commit": _checkout(folder.parent) or _baked(folder / "_commit")}


def _build(build: Callable[[], Mapping[str, str]] | None) -> dict[str, str]:
    if build is None:
        from . import _engine

        build = _engine.build_info
    told = build()
    return {name: str(told[name]) for name in ("compiler", "flags", "abi")}


def _setting(tree: Tree, judge: Judge) -> dict[str, str | None]:
    return vars(judged(tree, judge))


def _caches(tree: Tree, cpu: int) -> dict[str, int | None]:
    """Bytes of each cache of one CPU; None where the kernel does not tell."""
    found: dict[str, int | None] = dict.fromkeys(CACHES)
    base = f"{CPU}/cpu{cpu}/cache"
    for index in tree.names(base, r"index\d+"):
        entry = f"{base}/{index}"
        cache = tree.fact(f"caches/{index}", partial(_cache, tree, entry))
        if cache and cache[0] in found:
            found[cache[0]] = cache[1]
    for name in CACHES:
        if found[name] is None:
            tree.unread[f"caches/{name}"] = f"not told by {base}"
    return found


def _cache(tree: Tree, entry: str) -> tuple[str, int]:
    kind = {"Data": "d", "Instruction": "i"}.get(tree.read(f"{entry}/type"), "")
    return f"L{tree.read(f'{entry}/level')}{kind}", cache_size(entry, tree.read(f"{entry}/size"))


def _checkout(folder: Path) -> str | None:
    """The commit of the checkout whose top is `folder`; None when there is none or git will not say."""
    if not (folder / ".git").exists():
        return None
    # GIT_DIR and its kin, set inside hooks, would make git answer for another repository.
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
            env=clean,
        )
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}-dirty" if changed else commit


def _baked(file: Path) -> str | None:
    try:
        return file.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None
