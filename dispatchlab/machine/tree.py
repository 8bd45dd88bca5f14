"""The kernel's small files below one root: the machine's own, or a recorded tree's. Everything that is read goes through here.

What was read, and what refused to be, is kept: a text is read once, and record.py can write down exactly what an answer came from.
"""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

UNREADABLE = "unreadable"
"""In a recorded tree: the files that were there and could not be read, each with its error's name."""
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_T = TypeVar("_T")




class Tree:
    """root: the folder that stands for /; load: what reads a file, raising OSError.

    unread: why facts could not be told. kept: texts by the path that a recording gives them. refused: errno by path of files that are
    there and cannot be read.
    """

    def __init__(self, root: Path = Path("/"), load: Callable[[Path], bytes] = Path.read_bytes) -> None:
        self.root = root
        self.unread: dict[str, str] = {}
        self.kept: dict[str, str] = {}
        self.refused: dict[str, int] = {}
        self._load = load
        self._texts: dict[str, str | OSError] = {}
        self._replayed = {} if root == Path("/") else _refusals(root)

    def read(self, name: str, alias: str | None = None) -> str:
        """The text of a file, stripped. alias: its path in a recording. OSError."""
        if name not in self._texts:
            self._texts[name] = self._first(name, name if alias is None else alias)
        text = self._texts[name]
        if isinstance(text, OSError):
            raise text
        return text

    def optional(self, name: str, alias: str | None = None) -> str | None:
        """The text of a file, None where there is none. OSError where there is one that cannot be read."""
        try:
            return self.read(name, alias)
        except OSError as error:
            if error.errno in _MISSING:
                return None
            raise

    def names(self, folder: str, pattern: str) -> list[str]:
        """The entries of a folder that match, numbers in order; none where the folder cannot be listed."""
        try:
            found = set(os.listdir(self.root / folder))
        except OSError:
            found = set()
        found |= {name[len(folder) + 1 :].split("/")[0] for name in self._replayed if name.startswith(folder + "/")}
        return sorted((n for n in found if re.fullmatch(pattern, n)), key=_natural)

    def fact(self, name: str, read: Callable[[], _T]) -> _T | None:
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

    def _first(self, name: str, alias: str) -> str | OSError:
        try:
            if name in self._replayed:
                raise OSError(self._replayed[name], os.strerror(self._replayed[name]), str(self.root / name))
            text = self._load(self.root / name).decode("utf-8", "replace").strip()
        except OSError as error:
            if error.filename is None:
                error.filename = str(self.root / name)
            if error.errno not in _MISSING and alias:
                self.refused[alias] = error.errno or errno.EIO
            return error
        if alias:
            self.kept[alias] = text
        return text


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _refusals(root: Path) -> dict[str, int]:
    """What a recorded tree says could not be read; a line that names no error of this system is skipped."""
    try:
        lines = (root / UNREADABLE).read_bytes().decode("ascii", "replace").splitlines()
    except OSError:
        return {}
    parted = (line.partition(" ") for line in lines)
    return {name: getattr(errno, code) for code, _, name in parted if code in errno.errorcode.values() and name}
