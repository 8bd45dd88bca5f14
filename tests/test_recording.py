"""A recording comes back as it was saved, or says in one line why it cannot."""

import contextlib
import copy
import csv
import dataclasses
import gzip
import json
import os
import resource
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatchlab import strictjson
from dispatchlab.errors import Error, RecordingError, UsageError
from dispatchlab.files import check_writable, write_atomic
from dispatchlab.recording import load

GOLDEN = Path(__file__).parent / "data" / "golden-schema1.json"


def saved(recording, path):
    recording.save(path)
    return json.loads(path.read_text())


def write(document, path, sign=True):
    """Write a document as a file; signed, so that only its content can be what is wrong."""
    if sign:
        document["digest"] = strictjson.digest(document)
    path.write_text(json.dumps(document))
    return path


def refusal(path):
    with pytest.raises(RecordingError) as caught:
        load(path)
    line = str(caught.value)
    assert line.isprintable() and line.startswith(str(path))
    return line


# --- a round trip loses nothing ---


def test_a_loaded_recording_equals_the_saved_one_down_to_every_array(sample, tmp_path):
    recording = sample(handlers=(10, 100))
    recording.save(tmp_path / "a.json")
    again = load(tmp_path / "a.json")
    assert again == recording and again.digest == recording.digest
    for old, new in zip(recording.measurements, again.measurements, strict=True):
        assert new.slots == old.slots and dict(new.checksums) == dict(old.checksums)
        for name in ("ticks", "order", "placement", "window", "flagged"):
            assert getattr(new, name).dtype == getattr(old, name).dtype
            np.testing.assert_array_equal(getattr(new, name), getattr(old, name))


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_saving_twice_and_saving_what_was_loaded_gives_the_same_bytes(sample, tmp_path, name):
    one, two = tmp_path / "1" / name, tmp_path / "2" / name
    one.parent.mkdir()
    two.parent.mkdir()
    sample().save(one)
    load(one).save(two)
    assert one.read_bytes() == two.read_bytes()


def test_a_packed_file_holds_the_very_text_of_the_plain_one(sample, tmp_path):
    sample().save(tmp_path / "a.json")
    sample().save(tmp_path / "a.json.gz")
    packed = (tmp_path / "a.json.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "a.json").read_bytes()
    assert packed[3:8] == bytes(5), "neither a name nor a time"


def test_a_round_of_ticks_is_a_line_of_the_file(sample, tmp_path):
    recording = sample()
    recording.save(tmp_path / "a.json")
    row = ",".join(map(str, recording.measurements[0].ticks[0]))
    assert any(line.strip() == f"[{row}]," for line in (tmp_path / "a.json").read_text().splitlines())


def test_nothing_in_a_measurement_can_be_changed(sample):
    m = sample().measurements[0]
    with pytest.raises(ValueError):
        m.ticks[0, 0] = 1
    with pytest.raises(ValueError):
        m.ledger["involuntary"][0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        m.block = 1


def test_arrays_are_copies_so_the_caller_cannot_change_them_either(sample):
    ticks = sample().measurements[0].ticks.copy()
    m = dataclasses.replace(sample().measurements[0], ticks=ticks)
    ticks[0, 0] = 7
    assert m.ticks[0, 0] != 7


def test_the_golden_file_of_schema_1_loads_and_is_written_byte_for_byte_the_same(tmp_path):
    golden = load(GOLDEN)
    golden.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == GOLDEN.read_bytes()
    assert golden.ok and golden.measurements


# --- failures are seen ---


def test_a_wrong_checksum_is_a_failure_even_when_nobody_noted_it(sample):
    m = sample().measurements[0]
    bad = dataclasses.replace(m, checksums={**m.checksums, "scan 100": "dead"})
    recording = sample(measurements=[bad])
    assert sample().ok and not recording.ok
    (line,) = recording.failures
    assert "scan 100" in line and "dead" in line


# --- what is refused, and how ---

TWISTS = {
    "a field too few": (lambda d: d.pop("seed"), 'a field "seed"'),
    "a field too many": (lambda d: d.update(colour="red"), "colour"),
    "a float for a tick": (lambda d: row(d).__setitem__(0, 1.5), "ticks[0][0]: expected an integer; got 1.5"),
    "a bool for a tick": (lambda d: row(d).__setitem__(0, True), "got true"),
    "a negative tick": (lambda d: row(d).__setitem__(1, -5), "ticks[0][1]: expected 0 to"),
    "a tick beyond 64 bits": (lambda d: row(d).__setitem__(1, 2**63), "ticks[0][1]"),
    "a missing slot": (lambda d: row(d).pop(), "expected 5 slots; got 4"),
    "a missing round": (lambda d: first(d)["placement"].pop(), "placement: expected 12 rounds; got 11"),
    "a short ledger": (lambda d: first(d)["ledger"]["involuntary"].pop(), "12 rounds; got 11"),
    "a slot twice in a round": (
        lambda d: first(d)["order"].__setitem__(0, [0, 0, 1, 2, 3]),
        "every slot once",
    ),
    "a label twice": (lambda d: first(d)["slots"][1].update(label="scan 100"), '"scan 100" twice'),
    "a missing checksum": (lambda d: first(d)["checksums"].pop("scan 100"), 'none of "scan 100"'),
    "probes of nobody": (lambda d: first(d)["probes"].update(nobody=1.0), '"nobody"'),
    "a twin of something else": (lambda d: first(d)["slots"][3].update(handlers=5), "its reference; got 5"),
    "a twin that is none": (lambda d: first(d).update(twin=0), 'a slot of role "twin"'),
    "a reference outside": (lambda d: first(d).update(reference=9), "a slot, 0 to 4; got 9"),
    "no clock rate": (lambda d: first(d).update(ticks_per_ns=0.0), "a number above 0"),
    "a flag that is a number": (lambda d: first(d)["flagged"].__setitem__(0, 1), "true or false; got 1"),
    "two measurements of a name": (lambda d: d["measurements"].append(first(d)), "every name once"),
    "no measurements": (lambda d: d.update(measurements=None), "expected a list; got null"),
}


def first(document):
    return document["measurements"][0]


def row(document):
    return first(document)["ticks"][0]


@pytest.mark.parametrize("twist", TWISTS)
def test_a_recording_out_of_shape_is_refused_with_place_and_reason(sample, tmp_path, twist):
    change, said = TWISTS[twist]
    document = saved(sample(), tmp_path / "a.json")
    change(document)
    assert said in refusal(write(document, tmp_path / "b.json"))


def test_one_round_is_refused_since_it_gives_no_interval(sample, tmp_path):
    document = saved(sample(), tmp_path / "a.json")
    m = first(document)
    for name in ("ticks", "order", "placement", "window", "flagged"):
        m[name] = m[name][:1]
    m["ledger"] = {name: column[:1] for name, column in m["ledger"].items()}
    assert "two rounds at least" in refusal(write(document, tmp_path / "b.json"))


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(sample, tmp_path, word):
    sample().save(tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text().replace('"ticks_per_ns": 2.0', f'"ticks_per_ns": {word}')
    (tmp_path / "b.json").write_text(text)
    assert "not strict JSON" in (line := refusal(tmp_path / "b.json")) and word in line


def test_a_key_written_twice_is_refused(sample, tmp_path):
    sample().save(tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text().replace('"seed": 0', '"seed": 0, "seed": 1')
    (tmp_path / "b.json").write_text(text)
    assert 'key "seed" is there twice' in refusal(tmp_path / "b.json")


def test_a_newer_schema_asks_for_an_upgrade(sample, tmp_path):
    document = saved(sample(), tmp_path / "a.json")
    document["schema"] = 2
    line = refusal(write(document, tmp_path / "b.json"))
    assert "made by a newer dispatchlab: schema 2, this one reads 1" in line and "upgrade" in line


@pytest.mark.parametrize("version", [0, -1, "1", None, True, 1.0])
def test_another_schema_is_no_recording(sample, tmp_path, version):
    document = saved(sample(), tmp_path / "a.json")
    document["schema"] = version
    assert "not a dispatchlab recording" in refusal(write(document, tmp_path / "b.json"))


def test_one_digit_changed_by_hand_is_noticed(sample, tmp_path):
    document = saved(sample(), tmp_path / "a.json")
    row(document)[0] += 1
    line = refusal(write(document, tmp_path / "b.json", sign=False))
    assert "digest" in line and "changed after it was saved" in line


def test_a_hand_edit_that_breaks_the_shape_tells_both(sample, tmp_path):
    document = saved(sample(), tmp_path / "a.json")
    row(document)[0] = -1
    line = refusal(write(document, tmp_path / "b.json", sign=False))
    assert "ticks[0][0]" in line and "changed after it was saved" in line


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_a_file_cut_anywhere_is_refused(sample, tmp_path, name):
    sample(rounds=2).save(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    for length in range(0, len(data.rstrip()), 97):
        (tmp_path / name).write_bytes(data[:length])
        assert "cut short" in (line := refusal(tmp_path / name)) or "damaged" in line, length


@pytest.mark.parametrize(
    "data", [b"", b"\0\xff\xfe", b"[]", b"{}", b"hello", b"[" * 100_000, b'{"schema":' + b"9" * 5000 + b"}"]
)
def test_other_files_are_refused(tmp_path, data):
    (tmp_path / "a.json").write_bytes(data)
    refusal(tmp_path / "a.json")


def test_what_is_not_a_file_is_refused_without_reading_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "missing", tmp_path / "pipe", Path("/dev/zero"), GOLDEN / "below"):
        refusal(path)


def mutations(document):
    """Paths to every value of a document, for hypothesis to choose from."""

    def walk(value, path):
        yield path
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, item in items:
            yield from walk(item, (*path, key))

    return [path for path in walk(document, ()) if path]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


@settings(
    max_examples=1000,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    database=None,
)
@given(data=st.data())
def test_any_mutated_recording_loads_or_fails_with_one_line(tmp_path, data):
    """Half of the mutants are signed again, so that the checks behind the digest are reached, too."""
    document = copy.deepcopy(MUTANT)
    *parents, key = data.draw(st.sampled_from(MUTABLE))
    spot = document
    for step in parents:
        spot = spot[step]
    what = data.draw(st.sampled_from(["change", "drop", "double", "swap"]))
    if what == "change":
        spot[key] = data.draw(ANYTHING)
    elif what == "drop":
        del spot[key]
    elif isinstance(spot, list):
        other = data.draw(st.integers(0, len(spot) - 1))
        if what == "double":
            spot.insert(other, spot[key])
        else:
            spot[key], spot[other] = spot[other], spot[key]
    if data.draw(st.booleans()):
        with contextlib.suppress(ValueError):  # the mutation was a NaN
            document["digest"] = strictjson.digest(document)
    text = json.dumps(document)
    if data.draw(st.integers(0, 9)) == 0:
        text = text[: data.draw(st.integers(0, len(text)))]
    path = tmp_path / "mutant.json"
    path.write_text(text)
    try:
        again = load(path)
    except RecordingError as error:
        assert str(error).isprintable() and str(path) in str(error)
    else:
        again.save(tmp_path / "again.json")
        assert load(tmp_path / "again.json") == again


MUTANT = json.loads(GOLDEN.read_text())
for _measurement in MUTANT["measurements"]:
    for _name in ("ticks", "order", "placement", "window", "flagged"):
        _measurement[_name] = _measurement[_name][:4]
    _measurement["ledger"] = {name: column[:4] for name, column in _measurement["ledger"].items()}
MUTABLE = mutations(MUTANT)


# --- saving never takes anything away ---


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, float("inf")])
def test_what_could_not_be_loaded_again_is_not_saved(sample, tmp_path, value):
    sample().save(tmp_path / "a.json")
    before = (tmp_path / "a.json").read_bytes()
    with pytest.raises(Error, match="not a recording that could be loaded again"):
        sample(extra={"value": value}).save(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_bytes() == before


def test_a_recording_out_of_shape_is_not_saved_either(sample, tmp_path):
    m = sample().measurements[0]
    with pytest.raises(Error, match=r"ticks\[0\]\[0\]: expected 0 to"):
        sample(measurements=[dataclasses.replace(m, ticks=-m.ticks)]).save(tmp_path / "a.json")
    assert os.listdir(tmp_path) == []


def test_who_is_reading_the_old_file_goes_on_reading_the_old_file(sample, tmp_path):
    sample().save(tmp_path / "a.json")
    before = (tmp_path / "a.json").read_bytes()
    with (tmp_path / "a.json").open("rb") as reader:
        sample(seed=5).save(tmp_path / "a.json")
        assert reader.read() == before != (tmp_path / "a.json").read_bytes()


def test_a_disk_that_fills_up_leaves_the_old_file_and_no_rubbish(sample, tmp_path):
    sample().save(tmp_path / "a.json")
    before = (tmp_path / "a.json").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (1000, hard)
    )  # a write beyond this fails half way, as on a full disk
    try:
        with pytest.raises(Error, match="cannot be written"):
            sample(seed=5).save(tmp_path / "a.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "a.json").read_bytes() == before
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_place_that_takes_no_files_is_one_line(tmp_path):
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", "/proc/dispatchlab", "nul\0"):
        with pytest.raises(UsageError) as caught:
            check_writable(folder)
        assert "cannot write there" in str(caught.value) and "\n" not in str(caught.value)


def test_a_folder_found_writable_exists_and_is_empty(tmp_path):
    assert os.listdir(check_writable(tmp_path / "new" / "folder")) == []


def test_a_pipe_or_device_is_not_replaced_by_a_file(tmp_path):
    """A pipe of its own stands for them all: run as root, a fault here would take a real device away."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Error, match="not a regular file"):
        write_atomic(tmp_path / "pipe", b"x")
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_and_the_permissions_of_the_file_behind_it_survive(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640


# --- other tools ---


def test_csv_has_a_row_for_each_round_and_slot(sample, tmp_path):
    recording = sample(handlers=(10, 100))
    recording.to_csv(tmp_path / "a.csv")
    rows = list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()))
    assert len(rows) == 2 * 12 * 5
    m = recording.measurements[1]
    mine = [r for r in rows if r["measurement"] == m.name and r["label"] == "scan 100"]
    assert [int(r["ticks"]) for r in mine] == m.ticks[:, 0].tolist()
    assert [m.order[i, int(r["position"])] for i, r in enumerate(mine)] == [0] * 12
    assert float(mine[0]["ns_per_packet"]) == m.ticks[0, 0] / m.ticks_per_ns / m.block


def test_pandas_gets_the_same_rows(sample):
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = sample().to_pandas()
    m = sample().measurements[0]
    assert frame.shape[0] == m.ticks.size
    table = frame.pivot(index="round", columns="label", values="ticks")[[s.label for s in m.slots]]
    np.testing.assert_array_equal(table.to_numpy(), m.ticks)


def test_without_pandas_one_line_says_what_to_install(sample, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"dispatchlab\[pandas\]"):
        sample().to_pandas()


def test_pyperf_loads_the_suite_and_finds_the_same_seconds(sample, tmp_path):
    pyperf = pytest.importorskip("pyperf", reason="pyperf is not installed")
    recording = sample(handlers=(10, 100))
    recording.to_pyperf(tmp_path / "a.json")
    suite = pyperf.BenchmarkSuite.load(str(tmp_path / "a.json"))
    assert len(suite.get_benchmarks()) == 10
    bench = suite.get_benchmark("100 handlers/scan 100")
    m = recording.measurements[1]
    assert bench.get_values() == pytest.approx(m.ticks[:, 0] / m.ticks_per_ns / m.block * 1e-9)
    assert bench.get_unit() == "second" and bench.get_metadata()["arm"] == "scan"


def test_a_block_of_no_ticks_cannot_go_to_pyperf(sample, tmp_path):
    m = sample().measurements[0]
    none = dataclasses.replace(m, ticks=np.zeros_like(m.ticks))
    with pytest.raises(Error, match="0 ticks"):
        sample(measurements=[none]).to_pyperf(tmp_path / "a.json")
