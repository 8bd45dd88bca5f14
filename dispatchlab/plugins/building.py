"""Compiling a plugin with the system's compiler, and the source of one to start from."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from ..data import include_folder
from ..errors import ToolError, UsageError, explain
from ..files import check_writable

CPP = (".cpp", ".cc", ".cxx")
FLAGS = ("-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wl,-z,defs", "-Wl,-z,noexecstack")


def build(source: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, flags: tuple[str, ...] = ()) -> Path:
    """Compile FILE.c or FILE.cpp into a plugin; the path of the library. CC and CXX name other compilers.

    Symbols are hidden but for the entry point, and whatever nothing supplies is an error now instead of at the first call.
    Raises UsageError for a file that is neither, ToolError where no compiler is or where it refuses the source.
    """
    path = Path(source)
    if path.suffix not in (".c", *CPP):
        raise UsageError(explain("cannot be built", str(path), "FILE.c or FILE.cpp", path.suffix or "a name without an ending"))
    if not path.is_file():
        raise UsageError(explain("there is no such file", str(path), "a source file"))
    target = Path(out) if out is not None else path.with_suffix(".so")
    if target.is_dir() or (target.exists() and target.samefile(path)):
        got = "a folder" if target.is_dir() else "the source itself"
        raise UsageError(explain("the library cannot go there", str(target), "the name of a file", got, "choose another with -o"))
    check_writable(target.parent)
    compiler = _compiler("CXX", "c++") if path.suffix in CPP else _compiler("CC", "cc")
    language = ["-std=c++17", "-fno-gnu-unique"] if path.suffix in CPP and "clang" not in compiler[0] else []
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    command = [*compiler, *language, *FLAGS, f"-I{include_folder()}", str(path), "-o", str(partial), *flags]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode:
            told = done.stderr[:200] or f"exit code {done.returncode}"
            first = next((line for line in done.stderr.splitlines() if "error" in line or "undefined" in line), told)
            raise ToolError(explain("the compiler refuses it", str(path), got=first, remedy=f"run {shlex.join(command)}"))
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def _compiler(variable: str, usual: str) -> list[str]:
    """The compiler that the environment names, with its own options; the usual one where it names none."""
    named = os.environ.get(variable, "")
    try:
        command = shlex.split(named) or [usual]
    except ValueError as error:
        raise ToolError(explain("names no compiler", variable, "a command", f"{named} ({error})", f"set {variable}")) from error
    if shutil.which(command[0]) is None:
        raise ToolError(explain("no compiler", command[0], "a C or C++ compiler", "none of that name", "set CC or CXX"))
    return command


TEMPLATE = """\
/* NAME: a dispatchlab plugin. Build, judge, measure:
 *   dispatchlab plugin build NAME.c
 *   dispatchlab plugin validate NAME.so
 *   dispatchlab plugin measure NAME.so
 * Every rule is in dispatchlab/plugin.h. */
#include <dispatchlab/plugin.h>

static const uint16_t keys[] = {60001, 60002};

static uint32_t claimed_keys(uint16_t *out, uint32_t capacity) {
  const uint32_t count = sizeof keys / sizeof *keys;
  for (uint32_t i = 0; i < count && i < capacity; ++i) out[i] = keys[i];
  return count;
}

/* No state: nothing to make, nothing to free. */
static int32_t create(void **instance) {
  *instance = 0;
  return DISPATCHLAB_OK;
}

static void destroy(void *instance) { (void)instance; }

static int32_t process(void *instance, const dispatchlab_view *packet, uint32_t *result) {
  uint32_t h = UINT32_C(2166136261);
  (void)instance;
  for (uint64_t i = 0; i < packet->size; ++i) h = (h ^ packet->bytes[i]) * UINT32_C(16777619);
  *result = h;
  return DISPATCHLAB_OK;
}

static const dispatchlab_plugin table = {
    .magic = DISPATCHLAB_PLUGIN_MAGIC,
    .abi_version = DISPATCHLAB_PLUGIN_LEVEL,
    .struct_size = sizeof(dispatchlab_plugin),
    .oldest_host = 1,
    .name = "NAME",
    .claimed_keys = claimed_keys,
    .create = create,
    .destroy = destroy,
    .process = process,
};

DISPATCHLAB_PLUGIN_DEFINE(table)
"""


def template(name: str) -> str:
    """The source of a plugin that does something small and does it right. Raises UsageError for a name that C cannot quote."""
    if not re.fullmatch(r"[A-Za-z0-9._+-]{1,63}", name):
        raise UsageError(explain("not a name for a plugin", name, "1 to 63 letters, digits, or any of . _ + -"))
    return TEMPLATE.replace("NAME", name)
