"""Strict JSON, as recordings use it: finite numbers, no key twice, one way to write a value."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

_COMPACT = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class Malformed(ValueError):
    """Text that is not strict JSON. `cut` tells that the text simply ends too early."""

    def __init__(self, what: str, cut: bool = False) -> None:
        super().__init__(what)
        self.cut = cut


def parse(text: str) -> object:
    """The value written in `text`. Malformed also for NaN, infinities (1e999 too), repeated keys."""
    try:
        return json.loads(
            text, object_pairs_hook=_no_repeats, parse_constant=_no_constant, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        raise Malformed(f"line {error.lineno} column {error.colno}: {error.msg}", cut) from error
    except RecursionError as error:
        raise Malformed("values nested too deeply") from error
    except Malformed:
        raise
    except ValueError as error:  # an integer with more digits than Python converts
        raise Malformed(str(error)) from error


def plain(value: Any) -> Any:
    """`value` out of JSON's own types: NumPy scalars and arrays, mappings and tuples are turned into them."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def digest(document: Mapping[str, object]) -> str:
    """sha256, in hex, over everything in `document` but its own "digest": keys sorted, no blanks, ASCII."""
    signed = {key: value for key, value in document.items() if key != "digest"}
    return hashlib.sha256(dumps(signed).encode("ascii")).hexdigest()


def dumps(value: object) -> str:
    """The one compact spelling of `value`. ValueError for NaN, TypeError for what JSON cannot hold."""
    return _COMPACT.encode(value)


def render(value: object, indent: int = 0) -> str:
    """`value` for people and their diff: keys sorted, one a line; a list of numbers or a row is a line."""
    inner, pad = " " * (indent + 1), " " * indent
    if isinstance(value, dict) and value:
        rows = [f"{inner}{dumps(key)}: {render(value[key], indent + 1)}" for key in sorted(value)]
        return "{\n" + ",\n".join(rows) + f"\n{pad}}}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        rows = [inner + (dumps(item) if _flat(item) else render(item, indent + 1)) for item in value]
        return "[\n" + ",\n".join(rows) + f"\n{pad}]"
    return dumps(value)


def short(value: object, limit: int = 40) -> str:
    """`value` in at most `limit` printable characters, for an error line."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = ascii(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _flat(value: object) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return not any(isinstance(item, (dict, list)) for item in items)


def _no_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise Malformed(f"key {short(next(k for k in keys if keys.count(k) > 1))} is there twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is not a number JSON knows")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Malformed(f"{short(text)} does not fit a finite number")
    return value
