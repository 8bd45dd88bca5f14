"""Where a measurement was made: the facts that move its numbers, none that names machine or user."""

import os
import platform
import re
import subprocess
import sysconfig
from collections.abc import Callable, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

CPU = "sys/devices/system/cpu"
CACHES = ("L1d", "L1i", "L2", "L3")
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class _Tree:
    """Small kernel files below one root; what cannot be read is remembered with its reason."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.unread: dict[str, str] = {}

    def read(self, name: str) -> str:
        """The text of a file, stripped. Raises OSError."""
        return (self.root / name).read_bytes().decode("utf-8", "replace").strip()

    def fact(self, name: str, read: Callable[[], Any]) -> Any:
        """What `read` finds; None, and the reason in `unread`, when it cannot."""
        try:
            return read()
        except (OSError, LookupError, ValueError) as error:
            self.unread[name] = self.reason(error)
            return None

    def reason(self, error: Exception) -> str:
        """Why a read failed, with the file named from the root on, so that no folder of the machine shows."""
        if not isinstance(error, OSError):
            return str(error.args[0] if error.args else error)
        name = os.path.relpath(error.filename, self.root) if error.filename else ""
        return f"{name}: {error.strerror or error}".strip(": ")


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
    tree = _Tree(root)
    cpuinfo = tree.fact("cpuinfo", lambda: _pairs(tree.read("proc/cpuinfo"))) or {}
    allowed = tree.fact("cpus_allowed", lambda: _allowed(tree))
    chosen = cpu if cpu is not None else _first(allowed)
    found = {
        "cpu_model": tree.fact("cpu_model", lambda: _model(cpuinfo)),
        "microcode": tree.fact("microcode", lambda: _known(cpuinfo, "microcode")),
        "caches": _caches(tree, chosen),
        "cpus_allowed": allowed,
        "kernel": tree.fact("kernel", lambda: tree.read("proc/sys/kernel/osrelease")),
        "machine": platform.machine(),
        "platform": f"{sysconfig.get_platform()} {' '.join(platform.libc_ver())}".strip(),
        "hypervisor": tree.fact("hypervisor", lambda: _hypervisor(tree, cpuinfo)),
        "clocksource": tree.fact("clocksource", lambda: tree.read(f"{CLOCK}/current_clocksource")),
        "governor": _setting(tree, _governor),
        "turbo": _setting(tree, _turbo),
        "smt": _setting(tree, _smt),
        "thp": _setting(tree, _thp),
        "aslr": _setting(tree, _aslr),
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


CLOCK = "sys/devices/system/clocksource/clocksource0"


def _build(build: Callable[[], Mapping[str, str]] | None) -> dict[str, str]:
    if build is None:
        from . import _engine

        build = _engine.build_info
    told = build()
    return {name: str(told[name]) for name in ("compiler", "flags", "abi")}


def _pairs(text: str) -> dict[str, str]:
    """The "key : value" lines of the first processor in /proc/cpuinfo."""
    first = text.split("\n\n")[0]
    return {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())
    }


def _known(cpuinfo: Mapping[str, str], key: str) -> str:
    if not cpuinfo.get(key):
        raise LookupError(f"proc/cpuinfo has no {key}")
    return cpuinfo[key]


def _model(cpuinfo: Mapping[str, str]) -> str:
    """x86 says a name; arm says who designed the core and which part it is."""
    if "CPU part" in cpuinfo:
        return f"implementer {_known(cpuinfo, 'CPU implementer')} part {cpuinfo['CPU part']}"
    return _known(cpuinfo, "model name")


def _allowed(tree: _Tree) -> str:
    match = re.search(r"^Cpus_allowed_list:\s*(\S+)", tree.read("proc/self/status"), re.MULTILINE)
    if match is None:
        raise LookupError("proc/self/status has no Cpus_allowed_list")
    return match[1]


def _first(allowed: str | None) -> int:
    match = re.match(r"\d+", allowed or "")
    return int(match[0]) if match else 0


def _caches(tree: _Tree, cpu: int) -> dict[str, int | None]:
    """Bytes of each cache of one CPU; None where the kernel does not tell."""
    found: dict[str, int | None] = dict.fromkeys(CACHES)
    base = f"{CPU}/cpu{cpu}/cache"
    for folder in sorted((tree.root / base).glob("index[0-9]*")):
        entry = f"{base}/{folder.name}"
        cache = tree.fact(f"caches/{folder.name}", partial(_cache, tree, entry))
        if cache and cache[0] in found:
            found[cache[0]] = cache[1]
    for name in CACHES:
        if found[name] is None:
            tree.unread[f"caches/{name}"] = f"not told by {base}"
    return found


def _cache(tree: _Tree, entry: str) -> tuple[str, int]:
    kind = {"Data": "d", "Instruction": "i"}.get(tree.read(f"{entry}/type"), "")
    size = re.fullmatch(r"(\d+)([KMG]?)", text := tree.read(f"{entry}/size"))
    if size is None:
        raise ValueError(f"{entry}/size: {text[:20]!r} is no size")
    return f"L{tree.read(f'{entry}/level')}{kind}", int(size[1]) * UNITS[size[2]]


def _hypervisor(tree: _Tree, cpuinfo: Mapping[str, str]) -> str | None:
    """Which hypervisor this runs on, None on bare metal. A guest's clock sources often give it away."""
    if not cpuinfo:
        raise LookupError("proc/cpuinfo tells nothing")
    for name in ("sys/hypervisor/type", "proc/device-tree/hypervisor/compatible"):
        if (tree.root / name).is_file():
            return tree.read(name).rstrip("\0")
    clocks = tree.read(f"{CLOCK}/available_clocksource") if (tree.root / CLOCK).is_dir() else ""
    for clock, kind in (("kvm-clock", "kvm"), ("hyperv_clocksource", "hyper-v"), ("xen", "xen")):
        if clock in clocks:
            return kind
    if "hypervisor" not in cpuinfo.get("flags", "").split():
        return None
    vendor = "sys/class/dmi/id/sys_vendor"
    return tree.read(vendor) if (tree.root / vendor).is_file() else "of unknown kind"


State = tuple[bool, str, str]


def _setting(tree: _Tree, judge: Callable[[_Tree], State | str]) -> dict[str, str | None]:
    """One setting judged: (is it good, value, why), or a text that says why it cannot be known."""
    try:
        verdict = judge(tree)
    except (OSError, ValueError) as error:
        verdict = tree.reason(error)
    if isinstance(verdict, str):
        return {"state": "unknown", "value": None, "why": verdict}
    good, value, why = verdict
    return {"state": "ok" if good else "bad", "value": value, "why": why}


def _governor(tree: _Tree) -> State | str:
    files = sorted((tree.root / CPU).glob("cpu[0-9]*/cpufreq/scaling_governor"))
    if not files:
        return "the kernel scales no frequency here (no cpufreq)"
    names = sorted({tree.read(str(file.relative_to(tree.root))) for file in files})
    good = names == ["performance"]
    return good, ",".join(names), "fixed high" if good else "the clock follows the load"


def _turbo(tree: _Tree) -> State | str:
    for name, on in ((f"{CPU}/intel_pstate/no_turbo", "0"), (f"{CPU}/cpufreq/boost", "1")):
        if (tree.root / name).exists():
            value = tree.read(name)
            if value not in ("0", "1"):
                return f"{name}: {value[:20]!r} is neither 0 nor 1"
            if value == on:
                return False, "on", "the clock depends on heat and on the other cores"
            return True, "off", "the clock does not depend on the other cores"
    return "the kernel shows no switch for it"


def _smt(tree: _Tree) -> State | str:
    value = tree.read(f"{CPU}/smt/active")
    if value == "0":
        return True, "off", "no other thread shares a core, as far as this kernel sees"
    if value == "1":
        return False, "on", "another thread may share the core's caches and ports"
    return f"{CPU}/smt/active: {value[:20]!r} is neither 0 nor 1"


def _thp(tree: _Tree) -> State | str:
    text = tree.read("sys/kernel/mm/transparent_hugepage/enabled")
    match = re.search(r"\[(\w+)\]", text)
    if match is None:
        return f"no choice is marked in {text[:40]!r}"
    if match[1] == "always":
        return False, "always", "page size depends on what memory is free"
    return True, match[1], "pages are small, since the engine does not ask for huge ones"


def _aslr(tree: _Tree) -> State | str:
    value = tree.read("proc/sys/kernel/randomize_va_space")
    if value not in ("0", "1", "2"):
        return f"{value[:20]!r} is none of 0, 1, 2"
    if value == "0":
        return True, value, "the same addresses in every run"
    return False, value, "other addresses in every run"


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
