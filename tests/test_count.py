"""Counting under a simulated CPU: the same numbers every time, and the ones the arms' shapes demand."""

import json
import shutil
import subprocess
from collections.abc import Callable

import numpy as np
import pytest

from dispatchlab import counting, strictjson
from dispatchlab.cli import main
from dispatchlab.commands.count import COLUMNS
from dispatchlab.counting import Counted, count, document
from dispatchlab.errors import ChecksumError, ToolError, UsageError
from dispatchlab.handlers import HandlerSet, handlers
from dispatchlab.probes import expected_probes
from dispatchlab.traffic import Traffic, uniform

simulator = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
ARMS = ("null", "direct-call", "scan", "table-compact", "table-compact-copy")


@pytest.fixture(scope="module")
def tiny() -> tuple[HandlerSet, Traffic]:
    hs = handlers(100, size="tiny")
    return hs, uniform(hs, pool=counting.PACKETS)


@pytest.fixture(scope="module")
def counted(tiny: tuple[HandlerSet, Traffic]) -> dict[str, Counted]:
    return {c.arm: c for c in count(ARMS, *tiny)}


@simulator
def test_counting_again_counts_the_same(
    tiny: tuple[HandlerSet, Traffic],
    counted: dict[str, Counted],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the last event: also from another folder and with another environment."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere with a longer name"))
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setenv("SOMETHING", "x" * 1000)
    assert count(ARMS, *tiny) == list(counted.values())


@simulator
def test_instructions_per_packet_are_recorded(counted: dict[str, Counted], record_property: Callable[[str, object], None]) -> None:
    """The numbers themselves depend on the compiler: they are printed (pytest -s) and kept with the report's properties."""
    for arm, c in counted.items():
        print(f"{arm:<20} {c.instructions:8.2f} instructions per packet")
        record_property(arm, round(c.instructions, 3))
    assert all(c.instructions >= counted["null"].instructions > 1 for c in counted.values())
    assert counted["table-compact"].instructions == counted["table-compact-copy"].instructions


@simulator
def test_the_loop_floor_is_a_few_instructions_and_one_branch(counted: dict[str, Counted]) -> None:
    null = counted["null"]
    assert 4 <= null.instructions <= 20
    assert abs(null.conditional - 1) <= 0.01
    assert null.indirect == 0
    assert abs(null.l1i_misses) <= 0.01
    assert 0.5 <= null.l1d_misses <= 0.55, "two packets share a line of 64 bytes, and nothing else is read"


@simulator
def test_every_probe_of_the_scan_is_an_indirect_call(tiny: tuple[HandlerSet, Traffic], counted: dict[str, Counted]) -> None:
    """One for each predicate asked, one for the handler: nothing inlined, nothing folded."""
    for arm in ("scan", "table-compact"):
        probes = float(expected_probes(arm, *tiny).mean())
        calls = probes + float(np.mean(tiny[0].select(tiny[1].packets) >= 0))
        assert counted[arm].indirect == pytest.approx(calls, abs=0.01)


@simulator
def test_the_scan_executes_several_times_what_the_table_does(counted: dict[str, Counted]) -> None:
    assert counted["scan"].instructions > 4 * counted["table-compact"].instructions
    assert counted["table-compact"].instructions > counted["direct-call"].instructions > counted["null"].instructions


@simulator
def test_uniform_traffic_surprises_a_predictor_of_the_last_target_once_a_packet(counted: dict[str, Counted]) -> None:
    assert 0.9 <= counted["table-compact"].indirect_mispredicted <= 1.3
    assert counted["direct-call"].indirect_mispredicted <= 0.01
    assert counted["scan"].indirect_mispredicted > 20


@simulator
def test_fat_handlers_miss_the_instruction_cache_line_by_line(tiny: tuple[HandlerSet, Traffic], counted: dict[str, Counted]) -> None:
    """100 fat bodies are several times the simulated 32 KiB: most of the lines of a body have to come in again."""
    fat = handlers(100)
    (seen,) = count(["table-compact"], fat, uniform(fat, pool=counting.PACKETS))
    assert 10 < seen.l1i_misses < 40
    assert counted["table-compact"].l1i_misses < seen.l1i_misses / 4


@simulator
def test_counts_are_strict_json_with_the_cpu_they_are_of(counted: dict[str, Counted]) -> None:
    found = document([counted["scan"]])
    assert found["simulator"].startswith("valgrind-") and found["caches"] == counting.CACHES
    assert json.loads(strictjson.dumps(strictjson.plain(found)))["cells"][0]["instructions"] == counted["scan"].instructions


@simulator
def test_the_command_prints_a_table_or_json(
    counted: dict[str, Counted], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dispatchlab.commands.count.count", lambda arms, hs, tr: [counted[a] for a in arms])
    assert main(["count", "scan", "table-compact", "--size", "tiny"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    row = next(r for r in rows if r and r[0] == "scan")
    assert [float(n) for n in row[1:]] == pytest.approx(
        [getattr(counted["scan"], f) for f in COLUMNS], abs=0.006
    )
    assert main(["count", "scan", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"][0]["arm"] == "scan"


@simulator
def test_a_wrong_answer_is_not_counted(tiny: tuple[HandlerSet, Traffic], monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated program is handed packets of which one was changed behind its back."""
    write = counting._write

    def spoil(folder: counting.Path, *rest: object) -> None:
        write(folder, *rest)  # type: ignore[arg-type]
        packets = bytearray((folder / "packets").read_bytes())
        packets[-23] ^= 1  # the second payload byte: even a tiny body reads it
        (folder / "packets").write_bytes(packets)

    monkeypatch.setattr(counting, "_write", spoil)
    with pytest.raises(ChecksumError, match="table-compact"):
        count(["table-compact"], *tiny)


def test_without_valgrind_the_command_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(["count", "scan"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "dispatchlab: count: valgrind is not installed: expected its cachegrind to simulate the CPU; "
        "install your system's valgrind package"
    ]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo no such tool >&2; exit 3", "3: no such tool"),
        ("exit 0", "0: nothing on its standard error"),
        ("echo 12 0", "left no totals"),
    ],
)
def test_a_simulator_that_fails_is_one_line(
    script: str, said: str, tiny: tuple[HandlerSet, Traffic], fake_valgrind: Callable[[str], None]
) -> None:
    fake_valgrind(script)
    with pytest.raises(ToolError, match="valgrind") as caught:
        count(["scan"], *tiny)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.fixture
def fake_valgrind(tmp_path: counting.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def install(script: str) -> None:
        path = tmp_path / "valgrind"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setattr(counting, "_tool", lambda: str(path))

    return install


def test_unknown_arms_are_named_before_anything_starts(tiny: tuple[HandlerSet, Traffic], monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("started")

    monkeypatch.setattr(subprocess, "Popen", never)
    with pytest.raises(UsageError, match="did you mean scan"):
        count(["scann"], *tiny)
    with pytest.raises(UsageError, match="one arm or more"):
        count([], *tiny)
