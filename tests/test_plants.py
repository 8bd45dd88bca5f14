"""Bugs planted in a copy of the core: each must make `dispatchlab check` and the tests fail.

The copy is compiled once, with 128 stamped handlers in place of 512 to save time; a plant then compiles only what includes the
file it changes. The same copy without a plant must pass everything, or a failure would prove nothing.
"""

import compileall
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from planted import PLANTS, Plant

ROOT = Path(__file__).parent.parent
TESTS = ("tests/conftest.py", "tests/test_oracle.py", "tests/test_measure.py", "tests/test_mechanism.py", "tests/test_past.py")
CC = os.environ.get("CC", "cc").split()
PYTHON_H = Path(sysconfig.get_path("include")) / "Python.h"

pytestmark = [
    pytest.mark.skipif(shutil.which(CC[0]) is None, reason=f"no compiler {CC[0]} to build a faulty core with"),
    pytest.mark.skipif(not PYTHON_H.exists(), reason="no Python.h to build a faulty core with"),
]


def run(command, cwd):
    env = {**os.environ, "PYTHONPATH": str(cwd), "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300)


STAMPS = ("chain_tiny", "chain_fat", "wide_tiny", "branchy_tiny", "tally_tiny")


def fewer_stamps(core):
    """The core with every body in one size, and chain in two."""
    for stamp in (core / "stamps").glob("*.c"):
        if stamp.stem not in STAMPS:
            stamp.unlink()
    for name in ("stamps.def", "arms/named.def"):
        (core / name).write_text("".join(f"DL_STAMP({stamp.replace('_', ', ')})\n" for stamp in STAMPS))
    for name in ("arms/per_stamp.inc", "arms/named.inc"):
        once = "#define DL_ID {}\n#include DL_PER_STAMP\n#undef DL_ID\n"
        (core / name).write_text("".join(map(once.format, STAMPS)) + "#undef DL_PER_STAMP\n")


def fewer_handlers(index_h):
    """index.h with 128 handlers: what comes after the line that ends in X(127) goes."""
    text = index_h.read_text()
    text, defined = re.subn(r"#define DL_MAX_HANDLERS 512", "#define DL_MAX_HANDLERS 128", text)
    text, listed = re.subn(r"(X\(127\)) \\\n.*X\(511\)", r"\1", text, flags=re.DOTALL)
    assert defined == listed == 1
    index_h.write_text(text)


class Tree:
    """A copy of what check and tests need of the project, to build a core in. objects: source -> object."""

    def __init__(self, path, origin=ROOT, objects=()):
        self.path = path
        self.objects = dict(objects)
        for name in ("csrc", "dispatchlab", "pyproject.toml", *TESTS):
            (path / name).parent.mkdir(exist_ok=True)
            copy = shutil.copy2 if "." in name else partial(shutil.copytree, ignore=shutil.ignore_patterns("*.so"))
            copy(origin / name, path / name)

    def sources(self):
        return sorted(p.relative_to(self.path) for p in (self.path / "csrc").rglob("*.c"))

    def compile(self, source, objects):
        """One object, and beside it the list of files it was made from. The stamped handlers are not worth optimising."""
        headers = sorted({h.parent.relative_to(self.path) for h in (self.path / "csrc").rglob("*.h")})
        command = [*CC, "-std=c11", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden", "-MMD", "-Icsrc/include"]
        command += [f"-I{h}" for h in headers]
        command += ["-O0" if "stamps" in source.parts else "-O1"]
        if "binding" in source.parts:
            command += [f"-I{PYTHON_H.parent}", "-DPy_LIMITED_API=0x030B0000"]
            command += ['-DDL_BUILD_FLAGS="planted"', '-DDL_BUILD_COMPILER="planted"']
        out = objects / ("_".join(source.parts)[:-2] + ".o")
        done = run([*command, "-c", str(source), "-o", str(out)], self.path)
        assert done.returncode == 0, done.stderr
        return out

    def link(self, objects):
        out = self.path / "dispatchlab" / "_engine.abi3.so"
        done = run([*CC, "-shared", *map(str, objects), "-o", str(out), "-lpthread", "-ldl"], self.path)
        assert done.returncode == 0, done.stderr

    def check(self, *only):
        words = [word for name in only for word in ("--only", name)]
        return run([sys.executable, "-m", "dispatchlab", "check", "--quick", "--json", *words], self.path)

    def pytest(self, *selection):
        nodes = [f"tests/{node}" for node in selection]
        return run([sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *nodes], self.path)


@pytest.fixture(scope="module")
def control(tmp_path_factory):
    """The tree without a plant, built."""
    path = tmp_path_factory.mktemp("control")
    tree = Tree(path)
    fewer_handlers(path / "csrc/core/index.h")
    fewer_stamps(path / "csrc/core")
    compileall.compile_dir(path / "dispatchlab", quiet=2)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        slowest_first = sorted(tree.sources(), key=lambda source: "fat" not in source.name)
        made = pool.map(lambda source: tree.compile(source, path), slowest_first)
        tree.objects.update(zip(slowest_first, made, strict=True))
    tree.link(tree.objects.values())
    return tree


def made_from(obj):
    """The files of the project that an object was compiled from, by its .d file."""
    return set(re.findall(r"csrc/\S+", obj.with_suffix(".d").read_text()))


def grow(plant, control, path):
    """The tree with the plant in it: check's process and pytest's."""
    tree = Tree(path, control.path, control.objects)
    file = path / "csrc" / plant.file
    text = file.read_text()
    assert text.count(plant.old) == 1, f"{plant.file} holds the text to replace {text.count(plant.old)} times"
    file.write_text(text.replace(plant.old, plant.new))
    objects = {
        source: tree.compile(source, path) if f"csrc/{plant.file}" in made_from(obj) else obj
        for source, obj in control.objects.items()
    }
    assert objects != control.objects, f"no object is made from {plant.file}"
    tree.link(objects.values())
    outcome = tree.check(plant.check), tree.pytest(plant.test)
    shutil.rmtree(path)
    return outcome


@pytest.fixture(scope="module")
def grown(control, request, tmp_path_factory):
    """Plant -> future of (check, pytest), all that were selected, a few at a time; None -> those of the control."""
    asked = [item.callspec.params.get("plant") for item in request.session.items if hasattr(item, "callspec")]
    wanted = [plant for plant in asked if isinstance(plant, Plant)]  # other files plant bugs of their own
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = {None: pool.submit(lambda: (control.check(), control.pytest(*dict.fromkeys(p.test for p in wanted))))}
        for plant in wanted:
            futures[plant] = pool.submit(grow, plant, control, tmp_path_factory.mktemp("plant"))
        yield futures


# --- the promise ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_check_and_tests_fail_with(plant, grown):
    check, tests = grown[plant].result()
    assert check.returncode == 1, check.stdout + check.stderr
    assert plant.check in failed(check)
    assert tests.returncode == 1, tests.stdout + tests.stderr


def failed(check):
    """The names of the checks that failed, out of what check --json printed."""
    return {c["name"] for c in json.loads(check.stdout)["checks"] if not c["ok"]}


def test_no_check_of_the_engine_holds_with_every_plant(grown):
    if len(grown) <= len(PLANTS):
        pytest.skip("only some of the plants were selected")
    caught = set().union(*(failed(grown[plant].result()[0]) for plant in PLANTS))
    names = {c["name"] for c in json.loads(grown[None].result()[0].stdout)["checks"]}
    assert names - caught == {"same-packets"}, "the packets are made without the engine; test_checks.py breaks that one"


def test_without_a_plant_check_and_tests_pass(grown):
    check, tests = grown[None].result()
    assert check.returncode == 0, check.stdout + check.stderr
    assert tests.returncode == 0, tests.stdout + tests.stderr


def test_there_are_a_dozen_plants_and_no_two_are_the_same():
    assert len(PLANTS) >= 12
    assert len({(p.file, p.new) for p in PLANTS}) == len(PLANTS)
