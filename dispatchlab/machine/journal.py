"""The tuner's journal: what every knob was, on the disk before the first of them is touched.

One JSON value a line: a header with the boot, then one line per old value, then the count. All of it is flushed, file and folder,
before anything is written to the machine. For root it is /run/dispatchlab-tune.journal, for others
$XDG_STATE_HOME/dispatchlab/tune.journal (~/.local/state without it), and for a tree read with --root it lies beside the tree.
The journal is also the lock: who holds its flock tunes, and nobody else does.
"""

import fcntl
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import strictjson
from ..errors import Error, ToolError, explain
from ..files import flush_folder

FORMAT = "dispatchlab tune journal 1"
_UNWRITTEN = "the journal cannot be written, nothing was tuned"


@dataclass(frozen=True)
class Entry:
    """One thing to undo. kind: "write" (put `old` back into `path`) or "group" (remove the control group at `path`).
    path: below the root, no leading slash. old: the file's text as it was; undo: what to write to a kernel to get it back."""

    kind: str
    path: str
    old: str = ""
    undo: str = ""


@dataclass(frozen=True)
class Found:
    """What a journal holds. boot: id of the boot it was written in, "" when the header is cut. whole: it ends as it should."""

    boot: str
    entries: tuple[Entry, ...]
    whole: bool


def place(root: Path) -> Path:
    """Where the journal of the machine at `root` lies."""
    if root != Path("/"):
        return root.with_name(root.name + ".journal")
    if os.geteuid() == 0:
        return Path("/run/dispatchlab-tune.journal")
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state) / "dispatchlab" / "tune.journal"


class Journal:
    """An open, locked journal. Error when it cannot be made, ToolError when another tuner holds it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = _locked(path)
        except OSError as error:
            raise Error(explain(_UNWRITTEN, str(path), got=error.strerror or "")) from error

    def found(self) -> Found | None:
        """What an earlier tuner left, None when there is nothing."""
        data = b""
        while piece := os.pread(self._fd, 1 << 16, len(data)):
            data += piece
        if not data:
            return None
        found = parse(data)
        if not found.boot and b"\n" in data:
            raise Error(explain("is not a journal of the tuner", str(self.path), FORMAT, remedy="look at it, then remove it"))
        return found

    def record(self, boot: str, entries: Sequence[Entry]) -> None:
        """Write header, entries and count, and flush file and folder. Only for an empty journal: old values are never overwritten."""
        if os.fstat(self._fd).st_size:
            raise Error(explain("holds values that were not put back", str(self.path), remedy="run dispatchlab tune --restore"))
        rows: list[object] = [{"format": FORMAT, "boot": boot}, *(vars(e) for e in entries), {"entries": len(entries)}]
        data = "".join(strictjson.dumps(row) + "\n" for row in rows).encode("ascii")
        try:
            while data:
                data = data[os.write(self._fd, data) :]
            os.fsync(self._fd)
            flush_folder(self.path.parent)
        except OSError as error:
            os.ftruncate(self._fd, 0)
            raise Error(explain(_UNWRITTEN, str(self.path), got=error.strerror or "")) from error

    def clear(self) -> None:
        """Nothing is left to put back."""
        os.ftruncate(self._fd, 0)
        os.fsync(self._fd)

    def close(self) -> None:
        """Let go of the lock; an empty journal is removed."""
        if os.fstat(self._fd).st_size == 0:
            self.path.unlink(missing_ok=True)
            flush_folder(self.path.parent)
        os.close(self._fd)


def parse(data: bytes) -> Found:
    """The journal in `data`, as far as its lines are whole."""
    lines = data.split(b"\n")[:-1]  # what follows the last line end was cut
    rows: list[dict[str, object]] = []
    for line in lines:
        try:
            row = strictjson.parse(line.decode("ascii"))
        except ValueError:
            break
        if not isinstance(row, dict):
            break
        rows.append(row)
    if not rows or rows[0].get("format") != FORMAT:
        return Found("", (), False)
    entries = [Entry(**{k: str(v) for k, v in row.items()}) for row in rows[1:] if set(row) == {"kind", "path", "old", "undo"}]
    whole = rows[-1].get("entries") == len(entries) == len(rows) - 2 and data.endswith(b"\n")
    return Found(str(rows[0].get("boot", "")), tuple(entries), whole)


def _locked(path: Path) -> int:
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_APPEND, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.exists(path) and os.path.samestat(os.fstat(fd), os.stat(path)):
                return fd
        except BlockingIOError as error:
            os.close(fd)
            raise ToolError(explain("another tuner is at work", str(path), remedy="wait until it has ended")) from error
        os.close(fd)  # it was removed between opening and locking: take the new one
