"""Advice is one verdict for one service, made of numbers that are in its JSON; it refuses what would change behaviour."""

import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab import figures
from dispatchlab.advise import Case, advise, measure, measuring, page, parse_rate
from dispatchlab.advise.legal import reordered, witness
from dispatchlab.arms import results
from dispatchlab.cli import main
from dispatchlab.plugins.building import build
from dispatchlab.recording import Recording
from dispatchlab.studies import Options
from dispatchlab.tails import tails

CAPTURES = sorted((Path(__file__).parent / "data").rglob("*.pcap"))
KINDS = {"keep the loop", "ship the sorted loop", "build the table", "unresolved"}
QUESTIONS = [
    "budget", "probes", "distribution", "sorting", "legal", "table", "residual", "mechanism", "code", "tail", "grouped", "controls",
]  # fmt: skip


def short(traffic: str = "zipf:1.1", **changes: object) -> Case:
    return Case(**{"traffic": traffic, "options": Options(rounds=8, quick=True), **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def plain() -> Recording:
    return measure(short())


@pytest.fixture(scope="module")
def overlapping() -> Recording:
    return measure(short(overlap=True, residual=0.2))


def retimed(recording: Recording, ns: dict[str, float], daily: dict[str, float] | None = None) -> Recording:
    """The same recording with other times: calm rounds of so many ns for each arm, and for each arm on bad days."""
    rng, usual = np.random.default_rng(1), recording.extra["advise"]["traffic"]["name"]

    def ticks(m, of):
        level = np.array([of(s) for s in m.slots])[np.newaxis] * m.block * m.ticks_per_ns
        return np.rint(level * np.exp(rng.normal(0, 0.001, m.ticks.shape))).astype(np.int64)

    def main_ns(slot):
        return ns.get(slot.arm, 40.0)

    def daily_ns(slot):
        return main_ns(slot) if slot.traffic == usual else (daily or ns).get(slot.arm, 40.0)

    ms = [replace(m, ticks=ticks(m, main_ns if m.name == "advise" else daily_ns)) for m in recording.measurements]
    return replace(recording, measurements=tuple(ms))


TIMES = {"scan": 130.0, "scan-ordered": 70.0, "table-compact": 50.0, "table-compact-copy": 50.0, "null": 1.0}


def test_the_checklist_is_answered_in_order_and_every_answer_has_its_numbers(plain: Recording) -> None:
    found = advise(plain)
    assert [a.name for a in found.answers] == QUESTIONS
    assert all(a.answer and a.question.endswith("?") and a.numbers for a in found.answers)
    assert found.verdict.kind in KINDS and found.verdict.sentence.startswith(found.verdict.kind)
    assert not plain.failures


def test_numbers_in_the_sentences_are_those_of_the_recording(plain: Recording) -> None:
    answers = {a.name: a for a in advise(plain).answers}
    probes = plain.extra["advise"]["probes"]["scan"]
    assert f"{probes['mean']:.2f} on average and {probes['worst']} at worst" in answers["probes"].answer
    assert answers["budget"].numbers["budget"] == pytest.approx(1e9 / 3e6)
    scan = plain.ns("scan", measurement="advise")
    assert answers["budget"].numbers["scan"]["value"] == pytest.approx(scan.value)


@pytest.mark.parametrize(
    ("ns", "daily", "kind"),
    [
        (TIMES, {}, "build the table"),
        ({**TIMES, "scan-ordered": 51.0}, {}, "ship the sorted loop"),
        ({**TIMES, "scan-ordered": 51.0, "scan": 51.5}, {}, "keep the loop"),
        ({**TIMES, "scan-ordered": 51.0}, {"scan-ordered": 500.0, "table-compact": 60.0}, "build the table"),
        ({**TIMES, "scan-ordered": 51.0}, {"scan-ordered": 500.0, "table-compact": 400.0}, "ship the sorted loop"),
        ({**TIMES, "table-compact-copy": 60.0}, {}, "unresolved"),
    ],
    ids=["dear loop", "cheap sorted loop", "cheap loop", "loop falls under attack", "both fall under attack", "control fails"],
)
def test_the_verdict_follows_from_the_times(plain: Recording, ns: dict, daily: dict, kind: str) -> None:
    verdict = advise(retimed(plain, ns, {**ns, **daily})).verdict
    assert verdict.kind == kind, verdict.sentence


def test_a_difference_on_both_sides_of_what_matters_is_unresolved_and_says_what_would_tell(plain: Recording) -> None:
    even = retimed(plain, {**TIMES, "scan-ordered": 50.0 + 1e9 / 3e6 / 100})
    verdict = advise(even).verdict
    assert verdict.kind == "unresolved" and re.search(r"about \d+ s of measuring would tell", verdict.sentence)


def test_the_bad_days_hold_the_worst_of_the_list_and_the_worst_of_the_table(plain: Recording) -> None:
    days = {s.traffic for m in plain.measurements if m.name == "tail" for s in m.slots}
    assert {"shifted", "attack-last", "attack-unmatched", "attack-alternating", "attack-residual"} < days
    probes = {t.slot.traffic: t.probes[-1] for t in tails(plain) if t.slot.arm == "table-compact"}
    assert probes["attack-residual"] == max(probes.values()) > 1


def test_a_promise_that_only_the_table_keeps_decides(plain: Recording) -> None:
    case = {**plain.extra["advise"]["case"], "p999": 1e9}
    kept = replace(plain, extra={**plain.extra, "advise": {**plain.extra["advise"], "case": case}})
    calm = retimed(kept, {**TIMES, "scan-ordered": 51.0})
    assert advise(calm).verdict.kind == "ship the sorted loop"
    assert any("keeps the promised" in line for line in advise(calm).verdict.conditions)


def test_overlapping_predicates_forbid_sorting_and_a_witness_packet_shows_why(overlapping: Recording) -> None:
    found = advise(overlapping)
    legal = next(a for a in found.answers if a.name == "legal")
    w = legal.numbers["witness"]
    assert legal.answer.startswith("No") and f"key {w['key']}" in legal.answer
    assert found.verdict.kind != "ship the sorted loop"
    assert any("must not be sorted" in line for line in found.verdict.conditions)
    cheap = retimed(overlapping, {**TIMES, "scan": 50.5, "scan-ordered": 20.0})
    assert advise(cheap).verdict.kind == "keep the loop"


def test_the_witness_really_is_answered_by_another_handler() -> None:
    hs = dl.handlers(60, residual=0.2, overlap=True)
    tr = dl.traffic.zipf(hs, 1.2, seed=3)
    w = witness(hs, tr)
    assert w is not None and w["in_list_order"] != w["when_moved"]
    packet = np.zeros(1, dl.traffic.PACKET)
    packet["key"], packet["payload"][:, 0], packet["payload"][:, 1:] = w["key"], w["first_byte"], np.arange(1, 24)
    packet["length"] = 64
    one = dl.traffic.from_packets(packet, hs)
    by_count = np.argsort(-hs.frequency(tr.packets)[hs.order].astype(np.int64), kind="stable")
    order = hs.order[by_count] if w["how"].startswith("sorted") else hs.order[::-1]
    assert results("scan", hs, one)[0] == w["answer_in_list_order"]
    assert results("scan", reordered(hs, order), one)[0] == w["answer_when_moved"]


def test_disjoint_predicates_may_be_sorted() -> None:
    hs = dl.handlers(60, residual=0.3)
    assert witness(hs, dl.traffic.zipf(hs, 1.2)) is None


@pytest.mark.parametrize(("text", "rate"), [("3M", 3e6), ("3e6", 3e6), ("3_000_000", 3e6), ("250k", 2.5e5), (" 1.5M ", 1.5e6)])
def test_a_rate_may_be_written_in_several_ways(text: str, rate: float) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["0", "-3M", "3 M/s", "", "M", "inf", "nan", "1e99", "3M/s", "1__0M?", "0x10"])
def test_a_rate_that_is_none_is_refused_in_one_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "zipf", f"--rate={text}"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "argv",
    [["nosuch.pcap"], ["zipf", "--p999", "-1"], ["zipf", "--handlers", "0"], ["zipf", "--plugins", "nosuch.so"],
     ["zipf", "--body", "x"], ["zipf", "--budget", "0"], ["zipf", "--key", "port"]],
    ids=lambda a: " ".join(a[1:]) or a[0],
)  # fmt: skip
def test_what_cannot_be_used_is_one_line_and_exit_code_2(argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if argv[-1] == "port":
        argv = [str(CAPTURES[0]), *argv[1:]]
    assert main(["advise", *argv, "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_time_too_short_for_any_verdict_says_what_is_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "uniform", "--budget", "2ms", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "UNRESOLVED: the time was too short" in out and re.search(r"[0-9.]+ s or more", out)
    assert json.loads((tmp_path / "verdict.json").read_text())["verdict"]["kind"] == "unresolved"


def test_a_time_that_is_too_short_for_the_bad_days_only_is_unresolved_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "SPLIT", (1.0, 1e-4))
    recording = measure(Case("zipf", handlers=10, size="tiny", budget=2.0))
    assert [m.name for m in recording.measurements] == ["advise"]
    found = advise(recording)
    assert found.verdict.kind == "unresolved" and re.search(r"[0-9.]+ s or more", found.verdict.sentence)
    assert {a.name for a in found.answers} == set(QUESTIONS) - {"tail", "grouped"}
    assert escape(found.verdict.sentence) in page(recording)


def test_a_plugin_is_part_of_the_service(tmp_path: Path) -> None:
    library = build(Path(__file__).parent / "plugins" / "good.c", tmp_path / "good.so", ("-DLEVEL=2", "-DFIRST=41000"))
    found = advise(measure(short("uniform", handlers=20, plugins=(str(library),))))
    assert found.verdict.kind in KINDS
    assert any("1 plugin among the handlers" in line for line in found.verdict.conditions)


def test_the_page_needs_nothing_but_itself_and_says_what_the_json_says(plain: Recording) -> None:
    text, found = page(plain), advise(plain)
    assert escape(found.verdict.sentence) in text
    assert all(escape(a.answer) in text for a in found.answers)
    assert text.count("data:image/svg+xml;base64,") == 3
    assert not re.search(r"<script|(?:src|href)=\"(?!data:)|@import|url\(", text)


def test_the_page_opens_in_a_browser_without_an_error_or_a_request(plain: Recording, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("no Chromium is installed")
    (tmp_path / "verdict.html").write_text(page(plain), "utf-8")
    log = tmp_path / "net.json"
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0", f"--log-net-log={log}",
         f"--user-data-dir={tmp_path / 'profile'}", "--disable-background-networking", "--disable-component-update", "--no-first-run",
         "--window-size=1000,1400", f"--screenshot={tmp_path / 'page.png'}", (tmp_path / "verdict.html").as_uri()],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (tmp_path / "page.png").stat().st_size > 20000, done.stderr[-500:]
    assert "CONSOLE" not in done.stderr
    asked = set(re.findall(r'"url":"(https?://[^"]+)"', log.read_text("utf-8", "replace")))
    own = {u for u in asked if "google" not in u and "gvt1" not in u}  # what the browser itself asks for
    assert not own


def test_figures_of_advice_say_the_verdict(plain: Recording) -> None:
    assert {"advice-costs", "advice-traffic", "tail"} <= set(figures.names(plain))
    title = " ".join(figures.draw(plain, "advice-costs").texts[0].get_text().split())
    assert title.lower() == advise(plain).verdict.sentence.lower()


def test_json_holds_no_number_that_json_has_not(plain: Recording) -> None:
    json.dumps(advise(plain).to_dict(), allow_nan=False)
    assert math.isfinite(advise(plain).verdict.numbers["worth"])
