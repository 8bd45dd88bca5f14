"""Files on disk: written whole or not at all, and known to be writable before anything is measured."""

import os
import secrets
import stat
from pathlib import Path

from .errors import Error, UsageError, explain


def write_atomic(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path` so that a reader sees the old file or the new one, never a part of either.

    A temporary file in the same folder is written, flushed to the disk, and renamed over `path`. When
    anything fails the old file is untouched, the temporary one is removed, and `Error` says why. A device,
    pipe or folder at `path` is refused: renaming over it would take it away.
    """
    target = Path(path)
    try:
        target = Path(os.path.realpath(target))  # through a link to the file it names
        mode = _mode_of(target)
        temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
        try:
            _write_through(temporary, data, mode)
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        flush_folder(target.parent)
    except (OSError, ValueError) as error:
        raise Error(explain("cannot be written", str(path), got=_reason(error), remedy=_REMEDY)) from error


def check_writable(folder: str | os.PathLike[str]) -> Path:
    """Create `folder` where it is missing and prove, with a real file, that it takes one.

    Called before measuring, so that an unusable --out costs a line and not a measurement. Raises UsageError.
    """
    out = Path(folder)
    probe = out / f".{secrets.token_hex(8)}.tmp"
    try:
        out.mkdir(parents=True, exist_ok=True)
        try:
            _write_through(probe, b"dispatchlab\n", None)
        finally:
            probe.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise UsageError(
            explain("cannot write there", str(folder), "a folder that takes files", _reason(error), _REMEDY)
        ) from error
    return out


_REMEDY = "choose another place or make room there"


def _mode_of(target: Path) -> int | None:
    """Permission bits of the file that will be replaced, None when there is none yet."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise OSError("there is something there that is not a regular file")
    return stat.S_IMODE(found.st_mode)


def _write_through(path: Path, data: bytes, mode: int | None) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        if mode is not None:
            os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def flush_folder(folder: Path) -> None:
    """Make the rename itself durable; without it a power cut may bring the old name back."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
