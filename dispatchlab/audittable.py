"""The table of handlers that `dispatchlab audit` reads: a CSV file with the columns name, key, residual, share."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path

from .audit import Handler
from .errors import UsageError, explain

COLUMNS = ("name", "key", "residual", "share")
ANSWERS = {"yes": True, "no": False}


def read(path: str | os.PathLike[str]) -> list[Handler]:
    """The handlers of a file, in its order, which is that of registration.

    key: 0..65535, decimal or 0x..., or empty for none; residual: yes or no; share: a number, 0 or more. Columns may stand in any
    order beside others; lines that begin with # are comments. Raises UsageError that names file and line.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(explain("not text", f"{path}, line {line}", "UTF-8", f"byte {error.object[error.start]:#04x}")) from None
    except (OSError, ValueError) as error:
        raise UsageError(explain("cannot read the handlers", str(path), got=getattr(error, "strerror", None) or str(error))) from None
    rows = _rows(str(path), text)
    at, heads = next(rows, (1, []))
    if not heads:
        raise UsageError(explain("no handlers", f"{path}, line 1", f"the columns {','.join(COLUMNS)}", "an empty file"))
    if missing := [column for column in COLUMNS if column not in heads]:
        what = f"no column {', '.join(missing)}"
        raise UsageError(explain(what, f"{path}, line {at}", ",".join(COLUMNS), ",".join(heads)[:80]))
    found: dict[str, Handler] = {}
    for line, cells in rows:
        where = f"{path}, line {line}"
        if len(cells) != len(heads):
            raise UsageError(explain("not a row of the table", where, f"{len(heads)} cells", str(len(cells))))
        h = _handler(where, dict(zip(heads, cells, strict=True)))
        if h.name in found:
            raise UsageError(explain(f"handler {h.name!r} twice", where, "every name once", f"also in {found[h.name].where}"))
        found[h.name] = h
    if not found:
        raise UsageError(explain("no handlers", f"{path}, line {at}", "a row for each handler", "the columns' names alone"))
    if not any(h.share for h in found.values()):
        raise UsageError(explain("no traffic: all shares are 0", f"{path}, line {at}", "a share above 0"))
    return list(found.values())


def _rows(path: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of what is neither empty nor a comment; the line is that where the row begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    begins = 1
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped) and not stripped[0].startswith("#"):
                yield begins, stripped
            begins = reader.line_num + 1
    except csv.Error as error:
        raise UsageError(explain("not CSV", f"{path}, line {begins}", got=str(error))) from None


def _handler(where: str, row: dict[str, str]) -> Handler:
    if not row["name"]:
        raise UsageError(explain("a handler without a name", where, "a name", "an empty cell"))
    if row["residual"].lower() not in ANSWERS:
        raise UsageError(explain("residual cannot be read", where, "yes or no", repr(row["residual"][:40])))
    return Handler(row["name"], _key(where, row["key"]), ANSWERS[row["residual"].lower()], _share(where, row["share"]), where)


def _key(where: str, cell: str) -> int | None:
    if not cell:
        return None
    try:
        key = int(cell, 16 if cell.lower().startswith("0x") else 10)
    except ValueError:
        key = -1
    if not 0 <= key <= 0xFFFF:
        raise UsageError(explain("key cannot be used", where, "0..65535, decimal or 0x..., or an empty cell", repr(cell[:40])))
    return key


def _share(where: str, cell: str) -> float:
    try:
        share = float(cell)
    except ValueError:
        share = -1.0
    if not 0 <= share < float("inf"):
        raise UsageError(explain("share cannot be used", where, "a number, 0 or more", repr(cell[:40])))
    return share
