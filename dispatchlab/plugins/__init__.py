"""Handlers out of shared libraries: inspected before they are loaded, rehearsed in a child process, and never unmapped unless
asked to. The boundary itself is csrc/include/dispatchlab/plugin.h."""

from .adapter import Foreign
from .inspection import Inspection, inspect
from .loading import HOST_LEVEL, Plugin, load, load_all, unload

__all__ = ["HOST_LEVEL", "Foreign", "Inspection", "Plugin", "inspect", "load", "load_all", "unload"]
