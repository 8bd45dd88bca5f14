"""Instructions per packet of every arm, counted by valgrind over the timed loop of the engine as it is installed.

A count, not a time: it is the same in every run on one build. What it is depends on the compiler, so only what must hold under
any is asserted; the numbers are printed (pytest -s) and kept with the test report's properties.
"""

import re
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab import _engine

pytestmark = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind, which counts the instructions, is not here")

HANDLERS = 100
PACKETS = 2048
ARMS = [arm.name for arm in dl.arms()]

# Without NumPy and the package: an interpreter under valgrind is fifty times slower, so it imports the engine alone.
CHILD = """
    import importlib.util, sys
    engine, folder, *arms = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("dispatchlab._engine", engine)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    keys, masks, values, order, packets, frequency = (
        open(f"{folder}/{name}", "rb").read() for name in ("keys", "masks", "values", "order", "packets", "frequency")
    )
    handlers = module.handler_set("chain", "fat", True, keys, masks, values, order)
    for arm in arms:
        print(module.slot(arm, handlers, packets, frequency).run(0))
"""


def per_packet(folder):
    """Arm -> instructions per packet in its timed loop, callees included."""
    hs = dl.handlers(HANDLERS)
    tr = dl.traffic.uniform(hs, pool=PACKETS)
    for name in ("keys", "masks", "values", "order"):
        (folder / name).write_bytes(getattr(hs, name).tobytes())
    (folder / "packets").write_bytes(tr.packets.tobytes())
    (folder / "frequency").write_bytes(hs.frequency(tr.packets).tobytes())
    loop = "*_timed_0"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--collect-atstart=no"]
    command += [f"--toggle-collect={loop}", f"--dump-after={loop}", sys.executable, "-I", "-S", "-c", textwrap.dedent(CHILD)]
    done = subprocess.run([*command, _engine.__file__, str(folder), *ARMS], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    wanted = [_engine.slot(arm, hs.engine, tr.packets, hs.frequency(tr.packets)).run(0) for arm in ARMS]
    assert list(map(int, done.stdout.split())) == wanted, "another checksum under valgrind"
    totals = [_total(folder / f"out.{n}") for n in range(1, len(ARMS) + 1)]
    return {arm: total / PACKETS for arm, total in zip(ARMS, totals, strict=True)}


def _total(dump):
    return int(re.search(r"^(?:totals|summary): (\d+)", dump.read_text(), re.MULTILINE)[1])


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    return per_packet(tmp_path_factory.mktemp("first"))


def test_every_arm_is_counted(counted, record_property):
    for arm, instructions in counted.items():
        print(f"{arm:<20} {instructions:8.2f} instructions per packet")
        record_property(arm, round(instructions, 3))
    assert np.all(np.array(list(counted.values())) > 1)


def test_a_count_is_the_same_in_every_run(counted, tmp_path):
    assert per_packet(tmp_path) == counted


def test_the_loop_floor_is_the_least_and_a_scan_costs_more_than_a_table(counted):
    """What holds whatever the compiler made of it: a scan asks 52 predicates, each of them several instructions."""
    assert min(counted, key=counted.get) in ("null", "null-serial")
    assert counted["scan"] > counted["table-compact"] + 100
    assert counted["scan-ordered"] < counted["scan"]
    assert counted["table-compact"] == counted["table-compact-copy"]
