"""What became of a virtual call, read from what gcc and clang make here; and the tables of code."""

import shutil

import pytest

from dispatchlab import devirtualize, report, studies
from dispatchlab.devirtualize import WAYS, build
from dispatchlab.errors import ToolError
from dispatchlab.recording import load

pytestmark = pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump (binutils) is not installed")

PLAIN, IN_VIEW, FINAL, LTO, STATIC = WAYS


@pytest.mark.parametrize("compiler", devirtualize.COMPILERS)
@pytest.mark.parametrize(
    ("way", "becomes"),
    [
        (PLAIN, {"indirect call"}),
        (FINAL, {"call by name", "inlined"}),
        (STATIC, {"call by name", "inlined"}),
    ],
    ids=["plain", "final", "static"],
)
def test_what_the_language_settles_every_compiler_makes(way, becomes, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    built = build(way, compiler)
    assert built.became in becomes
    assert (built.loads >= 2) == (built.became == "indirect call")


@pytest.mark.parametrize("way", [IN_VIEW, LTO], ids=["set in view", "link-time"])
def test_gcc_sees_through_the_call_when_it_sees_the_set(way):
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    assert build(way, "g++").became in ("call by name", "guarded call", "inlined")


def test_a_missing_compiler_is_one_line_and_the_rest_still_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(devirtualize.shutil, "which", lambda name: None if name.startswith("clang") else shutil_which(name))
    recording = studies.run("devirtualization")
    missing = recording.extra["devirtualization_missing"]
    assert missing == ["devirtualization: clang++ is not installed: install it to see what it makes of a call"]
    recording.save(tmp_path / "r.json")
    text = report.tables(load(tmp_path / "r.json"))
    assert "What the compiler made of one virtual call" in text and missing[0] in text


shutil_which = shutil.which


def test_code_that_does_not_compile_is_one_line():
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    with pytest.raises(ToolError, match="g\\+\\+: could not be built") as caught:
        build(devirtualize.Way("broken", ("this is no C++",)), "g++")
    assert "\n" not in str(caught.value)
