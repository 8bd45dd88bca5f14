"""README's generated parts: tables made from a recording, put between their marks.

    <!-- generated:NAME -->
    ... replaced as a whole ...
    <!-- end -->

NAME/PART is the part of the recording data/NAME.json (or .json.gz); PART alone is of the whole study's.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from .claims import claims_table
from .errors import UsageError, explain
from .evidence import calibration_table, resolution_table
from .instrument import instrument_lines
from .recording import Recording, load
from .report import as_markdown, facts, study_tables
from .scenes import scenes
from .tables import SPLIT, costs, wins

_BLOCK = re.compile(r"(<!-- generated:(?P<name>[\w/-]+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)


def evidence_blocks(folder: Path) -> dict[str, str]:
    """Markdown out of what lies beside the recordings: "calibration" and "resolution" where they have been stored."""
    blocks = {}
    for name, table in (("calibration", calibration_table), ("resolution", resolution_table)):
        path = folder / f"{name}.json"
        if path.is_file():
            blocks[name] = as_markdown(table(json.loads(path.read_text(encoding="utf-8"))))
    return blocks


def _stored(folder: Path, study: str) -> Path:
    plain = folder / f"{study}.json"
    return plain if plain.is_file() else plain.with_suffix(".json.gz")


def readme_blocks(recording: Recording) -> dict[str, str]:
    """Markdown by name: "facts", one for each measurement ("scan", "traffic", ...: its name with dashes for all that is no
    letter or digit), "win", "instrument-facts" and "claims" where the recording holds them."""
    blocks = {"facts": "\n".join(f"* {name}: {value}" for name, value in facts(recording))}
    for m in recording.measurements:
        blocks[re.sub(r"[^0-9A-Za-z]+", "-", m.name)] = as_markdown(costs(m))
    if split := [m for m in recording.measurements if any(s.has(*SPLIT) for s in scenes(m))]:
        blocks["win"] = as_markdown(wins(split))
    blocks |= {table.name: as_markdown(table) for table in study_tables(recording)}
    if lines := list(instrument_lines(recording)):
        blocks["instrument-facts"] = "\n".join(f"* {' '.join(line.split())}" for line in lines)
    if claims := claims_table(recording):
        blocks["claims"] = as_markdown(claims)
    return blocks


def rewrite(text: str, recording: Recording, folder: Path | None = None) -> str:
    """The text with every generated part made anew from the recording and from what lies in `folder`.

    UsageError for a part that it cannot make, and for a beginning without an end.
    """
    blocks = readme_blocks(recording)
    if folder is not None:
        blocks |= evidence_blocks(folder)

    def part(name: str) -> str:
        if "/" in name and name not in blocks and folder is not None:
            study = name.split("/", 1)[0]
            blocks.update({f"{study}/{k}": v for k, v in readme_blocks(load(_stored(folder, study))).items()})
        if name not in blocks:
            raise UsageError(explain("the recording does not make this part", expected=", ".join(blocks), got=name))
        return blocks[name]

    begins = re.findall(r"<!-- generated:([\w/-]+) -->", text)
    if len(begins) != len(_BLOCK.findall(text)):
        raise UsageError(explain("a generated part has no end", expected="<!-- end --> after each", got=", ".join(begins)))

    def fill(match: re.Match[str]) -> str:
        name = match["name"]
        if "<!-- generated:" in match["body"]:
            raise UsageError(explain("a generated part has no end", name, "<!-- end -->", "the beginning of another"))
        return f"{match[1]}\n{part(name)}\n\n{match[4]}"

    return _BLOCK.sub(fill, text)
