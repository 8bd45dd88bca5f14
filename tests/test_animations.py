"""What moves in an animation is what was measured: the recording's times, and the probes of the same packets."""

import io
from pathlib import Path

import numpy as np
import pytest

from dispatchlab import load
from dispatchlab.cli import main
from dispatchlab.figures import animations
from dispatchlab.handlers import handlers
from dispatchlab.recording import Recording
from dispatchlab.scenes import Scene
from dispatchlab.traffic import make

Image = pytest.importorskip("PIL.Image")
DATA = Path(__file__).parent.parent / "data"


@pytest.fixture(scope="module")
def shipped_study() -> Recording:
    if not (DATA / "reproduce.json").exists():
        pytest.skip("the shipped recording is not beside the tests")
    return load(DATA / "reproduce.json")


def scene(recording: Recording) -> Scene:
    found = animations.races(recording)
    assert found is not None
    return found


def test_a_recording_has_the_animations_it_has_the_cells_for(shipped_study: Recording, sample) -> None:
    assert animations.names(shipped_study) == ("scan-vs-table", "ordering")
    assert animations.names(load(DATA / "mechanism.json.gz")) == ("interleaving",)
    assert animations.names(sample(handlers=(200,))) == ()


def test_a_lane_takes_in_the_mean_what_its_arm_took(shipped_study: Recording) -> None:
    s = scene(shipped_study)
    hs = handlers(s.slot.handlers)
    for arm in ("scan", "table-compact"):
        lane = animations._lane(s, arm, hs, make(s.slot.traffic, hs, seed=shipped_study.seed))
        told = shipped_study.ns(arm, measurement=s.measurement.name, handlers=s.slot.handlers, traffic=s.slot.traffic).value
        assert np.diff(lane.ends, prepend=0).mean() == pytest.approx(told, rel=0.03)
        assert lane.at(0.0) == (0, 0.0) and lane.at(lane.ends[6])[0] == 7


def test_the_cache_holds_no_more_than_fits_and_drops_the_least_recently_used() -> None:
    kept = [k.tolist() for k in animations.resident(np.array([0, 1, 2, 0, 3, 1]), 3)]
    assert kept == [[0], [0, 1], [0, 1, 2], [1, 2, 0], [2, 0, 3], [0, 3, 1]]


def test_drawn_twice_the_bytes_are_equal_and_the_pictures_move(shipped_study: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(animations, "FRAMES", 5)
    once, again = (animations.gif(shipped_study, "ordering") for _ in range(2))
    assert once == again
    picture = Image.open(io.BytesIO(once))
    assert picture.n_frames == 5
    first = np.asarray(picture.convert("RGB")).copy()
    picture.seek(3)
    assert (np.asarray(picture.convert("RGB")) != first).any()


def test_the_command_writes_them_or_says_what_it_cannot(sample, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample(handlers=(200,)).save(tmp_path / "r.json")
    assert main(["animate", str(tmp_path / "r.json"), "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "out").exists()
