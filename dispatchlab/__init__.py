"""dispatchlab: which way of finding and calling a handler pays on this machine, with this traffic, and how sure that is."""

from importlib import import_module
from typing import Any

try:
    from . import _engine as _engine
except ImportError as error:
    raise ImportError(
        "dispatchlab's engine is not built in this folder: `pip install .` and start Python elsewhere, or `pip install -e .`"
    ) from error

from . import machine, traffic
from .arms import Arm, arms
from .errors import ChecksumError, Error, PluginError, RecordingError, TrafficError, UsageError
from .handlers import HandlerSet, bodies, handlers
from .measure import measure
from .probes import count_probes, expected_probes
from .recording import Recording, load

__all__ = [
    "Arm",
    "ChecksumError",
    "Error",
    "HandlerSet",
    "PluginError",
    "Recording",
    "RecordingError",
    "TrafficError",
    "UsageError",
    "arms",
    "bodies",
    "count_probes",
    "expected_probes",
    "get_include",
    "handlers",
    "load",
    "machine",
    "measure",
    "reproduce",
    "traffic",
    "tuned",
]

_ON_DEMAND = ("advise", "claims", "figures", "plugins", "report", "studies")


def __getattr__(name: str) -> Any:
    """Modules that load when first used: drawing costs a second of imports that measuring does not need."""
    if name in _ON_DEMAND:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_include() -> str:
    """The folder to compile plugins with: -I of what holds dispatchlab/plugin.h."""
    from .data import include_folder

    return str(include_folder())


def tuned(**wanted: Any) -> Any:
    """A context in which the machine is tuned, and after which it is as it was: see `dispatchlab.machine.process.tuned`."""
    return import_module(f"{__name__}.machine.process").tuned(**wanted)


def reproduce(quick: bool = False, **settings: Any) -> Recording:
    """The whole study as one Recording. `settings` are fields of `studies.Options`: cpu, seed, traffic, handlers, budget."""
    recording: Recording = import_module(f"{__name__}.studies").run("reproduce", quick=quick, **settings)
    return recording
