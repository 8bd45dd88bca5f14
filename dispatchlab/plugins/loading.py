"""Loading: inspect, rehearse in a child process, open, agree. All or none of several."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _engine
from ..errors import PluginError
from .inspection import Inspection, inspect

HOST_LEVEL = 2
"""The level of the plugin ABI that this host speaks: DISPATCHLAB_PLUGIN_LATEST."""

TIME_LIMIT = 5.0
"""Seconds that a plugin's rehearsal may take."""

LEAVES_CODE = frozenset(
    ("pthread_key_create", "tss_create", "pthread_create", "thrd_create", "signal", "sigaction", "timer_create", "on_exit")
)
"""Functions by which a library gives others an address in its code that dlclose() does not take back: destructors of thread keys,
threads, signal handlers. What it gives to atexit(), pthread_atfork() and C++ thread_local the C library does take back."""

_mapped: dict[Path | tuple[int, int], str] = {}
"""What this process has mapped, by path and by device and inode: the SHA-256 of the file when it was. The dynamic linker knows a
library again by either. Libraries are never unmapped, so what is in here is true of the process and not of the module alone."""


@dataclass(frozen=True)
class Plugin:
    """An opened plugin: the file it came from, what it claims and what it offers.

    keys     uint16[n], in the plugin's own order
    level    of the ABI that it was compiled for; table_size: bytes of its table
    matches  it tests more than the key; batch: it has process_batch
    """

    path: Path
    sha256: str
    name: str
    level: int
    table_size: int
    keys: NDArray[np.uint16]
    matches: bool
    batch: bool
    inspection: Inspection = field(repr=False)
    engine: Any = field(repr=False)

    def instance(self) -> Any:
        """A new instance, destroyed with its last reference. Raises PluginError of stage "create"."""
        made = self.engine.create()
        if isinstance(made, dict):
            raise _fault(self.path, made)
        return made

    def described(self) -> dict[str, Any]:
        """What a recording keeps of it."""
        return {
            "name": self.name, "file": self.path.name, "sha256": self.sha256, "level": self.level, "keys": len(self.keys),
            "matches": self.matches, "batch": self.batch,
        }  # fmt: skip


def load(path: str | os.PathLike[str], *, host_level: int = HOST_LEVEL, allow_writable: bool = False,
         time_limit: float = TIME_LIMIT) -> Plugin:  # fmt: skip
    """Load one plugin. The path may be relative or a link: what is loaded is the file behind it.

    allow_writable   load although others may write the file or its folder
    time_limit       seconds for the rehearsal; host_level: how new a host to be

    Raises PluginError(path, stage, what, expected, got, remedy); the interpreter survives whatever the plugin does up to here.
    """
    return load_all([path], host_level=host_level, allow_writable=allow_writable, time_limit=time_limit)[0]


def load_all(paths: Iterable[str | os.PathLike[str]], *, host_level: int = HOST_LEVEL, allow_writable: bool = False,
             time_limit: float = TIME_LIMIT) -> list[Plugin]:  # fmt: skip
    """Load several, all or none: nothing is opened before every one has been inspected and rehearsed. See `load`."""
    seen = [inspect(path, host_level=host_level, allow_writable=allow_writable) for path in paths]
    for found in seen:
        _unchanged(found)
        if (fault := _engine.plugin_rehearse(str(found.path), host_level, int(time_limit * 1000))) is not None:
            raise _fault(found.path, fault)
    return [_open(found, host_level) for found in seen]


def _open(found: Inspection, host_level: int) -> Plugin:
    opened = _engine.plugin_open(str(found.path), host_level)
    _mapped[_identity(found.path)] = _mapped[found.path] = found.sha256
    if isinstance(opened, dict):
        raise _fault(found.path, opened)
    facts = opened.facts()
    keys = np.frombuffer(facts["keys"], np.uint16)
    return Plugin(
        found.path, found.sha256, facts["name"], facts["level"], facts["table_size"], keys, facts["matches"], facts["batch"],
        found, opened,
    )  # fmt: skip


def _identity(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_dev, facts.st_ino


def _unchanged(found: Inspection) -> None:
    """A file that was written over while its code was mapped is neither the old plugin nor the new one; of one that took its place
    under the same name, the dynamic linker would give the old code once more."""
    before = _mapped.get(_identity(found.path)) or _mapped.get(found.path)
    if before is not None and before != found.sha256:
        raise PluginError(
            found.path, "file", "the file was changed while it was loaded", f"SHA-256 {before[:16]}", found.sha256[:16],
            "start the process again, or give a new version a name of its own",
        )  # fmt: skip


def unload(plugin: Plugin) -> str:
    """Unmap a plugin; refused while instances of it live. Returns why it is still mapped, or the empty string when it is gone.

    Nothing needs this: a library that stays mapped costs address space, and one that goes takes with it the code of destructors
    that threads will still run, and of objects that somebody may still hold. Raises PluginError of stage "unload": while instances
    live, and for a plugin that uses a function of LEAVES_CODE, since nobody can tell what it has left behind.
    """
    if left := sorted(LEAVES_CODE.intersection(plugin.inspection.undefined)):
        wanted, remedy = "a plugin that leaves nothing behind", "leave it mapped: it costs address space, and is safe"
        what = "the process may still call into it after it has gone"
        raise PluginError(plugin.path, "unload", what, wanted, f"a use of {', '.join(left)}", remedy)
    try:
        plugin.engine.unload()
    except ValueError as error:
        remedy = "drop the handler sets and instances that use it"
        raise PluginError(plugin.path, "unload", "the plugin is in use", "no live instance", str(error), remedy) from None
    if not is_mapped(plugin.path):
        _mapped.pop(_identity(plugin.path), None)
        _mapped.pop(plugin.path, None)
        return ""
    return (
        "still mapped: another opener has it, or the dynamic linker keeps it for its unique symbols (STB_GNU_UNIQUE), its "
        "thread-local storage or -z nodelete"
    )


def is_mapped(path: Path) -> bool:
    """Whether any mapping of this process is of the file, by /proc/self/maps."""
    try:
        maps = Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        return True  # nobody can tell
    return any(line.split(maxsplit=5)[5:] == [str(path)] for line in maps.splitlines())


def _fault(path: Path, fault: dict[str, str]) -> PluginError:
    return PluginError(path, fault["stage"], fault["what"], fault["expected"], fault["got"])
