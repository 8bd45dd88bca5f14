"""Figures come out of the file alone, the same bytes each time, and say what the numbers say."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from dispatchlab import figures, load
from dispatchlab.cli import main
from dispatchlab.errors import UsageError
from dispatchlab.figures.style import COLOURS, INK, PAPER, render

ROOT = Path(__file__).parent.parent
ALL = ("scan-vs-table", "where-the-win-comes-from", "budget", "pool", "instrument")


def words(figure):
    """Every text of a figure, in one string, line breaks as spaces."""
    texts = [t.get_text() for t in figure.findobj(matplotlib.text.Text)]
    return " ".join(" ".join(texts).split())


def finding(figure):
    return " ".join(figure.texts[0].get_text().split())


def test_a_full_recording_has_every_figure_and_others_what_they_hold(study, sample):
    assert figures.names(study()) == ALL
    assert figures.names(study(("pool",))) == ("pool",)
    assert figures.names(study(("traffic",))) == ("where-the-win-comes-from", "budget")
    assert figures.names(sample()) == ("where-the-win-comes-from", "budget")


def test_drawn_twice_the_bytes_are_equal(study, tmp_path):
    recording = study()
    recording.save(tmp_path / "r.json")
    written = figures.save_all(recording, tmp_path)
    assert [p.name for p in written] == [f"{name}.{kind}" for name in ALL for kind in ("svg", "png")]
    again = load(tmp_path / "r.json")
    for name in ALL:
        figure = figures.draw(again, name)
        for axes in figure.axes:  # the solver's last bits would show in one drawing of a dozen
            assert all(round(x, 5) == pytest.approx(x, abs=1e-12) for x in axes.get_position().bounds)
        assert (tmp_path / f"{name}.svg").read_bytes() == render(figure, "svg"), name
    assert (tmp_path / f"{name}.png").read_bytes() == render(figure, "png")


def test_the_users_settings_of_matplotlib_change_nothing_and_are_left_alone(study):
    recording = study(("pool",))
    plain = render(figures.draw(recording, "pool"), "svg")
    with matplotlib.rc_context({"font.size": 30, "axes.linewidth": 5, "savefig.dpi": 30, "svg.hashsalt": "x"}):
        assert render(figures.draw(recording, "pool"), "svg") == plain
        assert matplotlib.rcParams["font.size"] == 30 and matplotlib.rcParams["savefig.dpi"] == 30


def test_pyplot_is_never_loaded_and_matplotlib_only_to_draw(study, tmp_path):
    study(("scan",)).save(tmp_path / "r.json")
    code = "import sys, dispatchlab as dl; early = 'matplotlib' in sys.modules;"
    code += "dl.figures.draw(dl.load(sys.argv[1]), 'scan-vs-table'); sys.exit(early or 'matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "r.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_date_and_no_path_in_a_file(study):
    svg = render(figures.draw(study(("scan",)), "scan-vs-table"), "svg").decode()
    assert "<dc:date>" not in svg and str(ROOT) not in svg


@pytest.mark.parametrize("name", ALL)
def test_every_axis_is_named_with_its_unit(study, name):
    for axes in figures.draw(study(), name).axes:
        shown = axes.get_subplotspec()
        if shown.is_last_row() and name != "instrument":
            assert axes.get_xlabel()
        assert re.search(r"ns per packet|%", axes.get_ylabel() + axes.get_xlabel()) or not shown.is_last_row()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("noise", [0.002, 0.3])
def test_no_text_is_cut_off_or_lies_on_another(study, name, noise):
    figure = figures.draw(study(noise=noise), name)
    canvas = figure.canvas.get_renderer()
    inside = figure.bbox
    boxes, undrawn = [], set(_undrawn(figure))
    for text in figure.findobj(lambda t: isinstance(t, matplotlib.text.Text) and t.get_visible() and t.get_text()):
        if text in undrawn:
            continue
        box = text.get_window_extent(canvas)
        assert inside.x0 <= box.x0 and box.x1 <= inside.x1, text.get_text()
        assert inside.y0 <= box.y0 and box.y1 <= inside.y1, text.get_text()
        boxes.append((text.get_text(), box))
    for i, (one, a) in enumerate(boxes):
        for other, b in boxes[i + 1 :]:
            wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
            assert wide <= 1 or high <= 1, (one, other)


def _undrawn(figure):
    """Labels of ticks beyond the ends of their axis, and what hidden axes hold: there, and not drawn."""
    for axes in figure.axes:
        if not axes.get_visible():
            yield from axes.findobj(matplotlib.text.Text)
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low <= tick.get_loc() <= high:
                    yield from (tick.label1, tick.label2)


@pytest.mark.parametrize("colour", [INK, "#5c5c5c"])
def test_text_stands_out_from_its_paper(colour):
    assert contrast(colour, PAPER) >= 4.5


def contrast(a, b):
    """The contrast ratio of WCAG 2."""

    def light(colour):
        rgb = np.array(matplotlib.colors.to_rgb(colour))
        return np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    low, high = sorted((light(a), light(b)))
    return (high + 0.05) / (low + 0.05)


def test_the_paper_is_opaque_so_that_a_dark_page_changes_nothing(study, tmp_path):
    from PIL import Image

    figures.save_all(study(("pool",)), tmp_path)
    corner = Image.open(tmp_path / "pool.png").convert("RGBA").getpixel((3, 3))
    assert corner == (*(round(255 * c) for c in matplotlib.colors.to_rgb(PAPER)), 255)


def test_no_two_arms_share_a_colour():
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_probes_are_written_on_the_scan(study):
    text = words(figures.draw(study(("scan",)), "scan-vs-table"))
    for probes in ("5.7", "13.9", "27.2", "52.3"):
        assert probes in text


def test_caches_come_from_the_recording(study):
    recording = study(("pool",))
    assert all(f"{n}" in words(figures.draw(recording, "pool")) for n in ("L1d 32 KiB", "L2 1 MiB", "L3 32 MiB"))
    small = replace(recording, environment={"caches": {"L1d": 65536, "L2": None, "L3": 1 << 30}})
    text = words(figures.draw(small, "pool"))
    assert "L1d 64 KiB" in text and "L2" not in text and "L3 1 GiB →" in text
    assert "L1d" not in words(figures.draw(replace(recording, environment={}), "pool"))


def test_titles_are_the_numbers(study):
    def twice(slot, placement):
        return {"scan": 100.0, "table-compact": 50.0, "scan-ordered": 75.0}.get(slot.arm, 40.0) * (
            1.5 if slot.arm == "table-compact" and slot.handlers == 500 else 1.0
        )

    recording = study(cost=twice)
    assert "a scan takes 2 times as long" in finding(figures.draw(recording, "scan-vs-table"))
    assert "table itself gets 1.5 times slower" in finding(figures.draw(recording, "scan-vs-table"))
    assert "captures 50 % of the win" in finding(figures.draw(recording, "where-the-win-comes-from"))
    assert "scan takes 30 % of the budget" in finding(figures.draw(recording, "budget"))
    assert "no resolved change" in finding(figures.draw(recording, "pool"))


def test_titles_claim_nothing_that_is_not_resolved(study):
    noisy = study(noise=1.5, rounds=12)
    assert "not told apart" in finding(figures.draw(noisy, "scan-vs-table"))
    assert "not known" in finding(figures.draw(noisy, "where-the-win-comes-from"))
    assert "no resolved change" in finding(figures.draw(noisy, "pool"))
    assert "undecided" in words(figures.draw(noisy, "where-the-win-comes-from"))


def test_a_failed_twin_is_said_below_every_figure(study):
    recording = study(twin=1.05)
    for name in ALL:
        assert "TWIN FAILED" in words(figures.draw(recording, name))
    assert "twin ok" in words(figures.draw(study(("scan",)), "scan-vs-table"))


def test_a_recording_of_too_few_rounds_can_be_drawn(study):
    recording = study(rounds=3)
    for name in figures.names(recording):
        figures.draw(recording, name)


@pytest.mark.parametrize("name, told", [("scan-vs-tabel", "did you mean scan-vs-table"), ("pool", "no cells for pool")])
def test_what_cannot_be_drawn_is_refused_in_one_line(study, name, told):
    with pytest.raises(UsageError, match=told):
        figures.draw(study(("scan",)), name)


def test_the_command_draws_and_names_each_file(study, tmp_path, capsys):
    study(("scan",)).save(tmp_path / "r.json.gz")
    assert main(["figures", str(tmp_path / "r.json.gz"), "-o", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.split() == [
        str(tmp_path / "out" / f"{name}.{kind}") for name in ("scan-vs-table", "budget") for kind in ("svg", "png")
    ]


def test_the_command_says_that_checks_had_failed(study, tmp_path, capsys):
    recording = study(("scan",))
    failed = replace(recording.measurements[0], failures=("planted",))
    replace(recording, measurements=(failed,)).save(tmp_path / "r.json")
    assert main(["figures", str(tmp_path / "r.json"), "-o", str(tmp_path)]) == 1
    assert "planted" in capsys.readouterr().err


def test_the_command_refuses_what_it_cannot_draw(study, tmp_path, capsys):
    study(("instrument",), measurements=()).save(tmp_path / "r.json")
    assert main(["figures", str(tmp_path / "r.json"), "-o", str(tmp_path / "out")]) == 2
    assert main(["figures", str(tmp_path / "none.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 2 and not (tmp_path / "out").exists()


def assert_committed(recording, names, source):
    for name in names:
        figure = figures.draw(recording, name)
        for kind in ("svg", "png"):
            committed = (ROOT / "figures" / f"{name}.{kind}").read_bytes()
            if f"Matplotlib v{matplotlib.__version__},".encode() not in committed and kind == "svg":
                pytest.skip("figures/ were drawn by another Matplotlib, whose bytes differ")
            drawn = render(figure, kind)
            assert drawn == committed, f"figures/{name}.{kind} is not what {source} shows: draw it anew"


def test_committed_figures_are_those_of_the_shipped_recording(shipped):
    recording = load(shipped)
    assert_committed(recording, figures.names(recording), shipped.name)


OF_STUDIES = {
    "tail": ["tail"],
    "mechanism": ["mechanism", "body-kinds"],
    "footprint": ["footprint"],
    "locality": ["locality"],
    "boundary": ["boundary"],
    "past-the-table": ["arms-past-the-table"],
    "ring": ["ring"],
    "lock": ["lock"],
    "roundtrip": ["roundtrip"],
    "pipeline": ["pipeline"],
    "costs": ["costs-latency", "costs-targets"],
    "noise": ["noise-ladder"],
    "when": ["winner-map"],
    "advise": ["advice-costs", "advice-traffic"],
}


@pytest.mark.parametrize("study", OF_STUDIES)
def test_committed_figures_of_single_studies_are_those_of_their_recordings(study):
    recording = load(ROOT / "data" / f"{study}.json.gz")
    assert recording.study == study and recording.ok
    assert_committed(recording, OF_STUDIES[study], f"{study}.json.gz")
