"""ns and ratio find the slot that is meant, or name the slots that there are."""

import dataclasses

import pytest

from dispatchlab.errors import UsageError

ROUNDS = 64


@pytest.fixture
def recording(sample):
    return sample(handlers=(10, 100), rounds=ROUNDS)


def test_an_arm_and_a_field_name_a_slot(recording):
    estimate = recording.ns("scan", handlers=100)
    assert estimate.low < 300 < estimate.high or abs(estimate.value / 300 - 1) < 0.05
    assert recording.ns("scan 100") == estimate == recording.ns("scan", measurement="100 handlers")


def test_an_arm_means_the_arm_not_its_twin_unless_asked_for(recording):
    twin = recording.ns("table-compact", handlers=10, role="twin")
    assert recording.ns("table-compact", handlers=10) != twin == recording.ns("table-compact 10 twin")


def test_a_ratio_pairs_rounds_of_one_measurement(recording):
    ratio = recording.ratio("scan", "table-compact", handlers=100)
    assert ratio.low < 6.0 < ratio.high
    back = recording.ratio("table-compact", "scan", handlers=100)
    assert back.value == pytest.approx(1 / ratio.value)


def test_controls_are_the_twin_of_every_measurement_and_the_control_slots(recording, sample):
    assert list(recording.controls) == [
        "10 handlers/table-compact 10 twin / table-compact 10",
        "10 handlers/direct-call 10",
        "100 handlers/table-compact 100 twin / table-compact 100",
        "100 handlers/direct-call 100",
    ]
    null = sample(rounds=ROUNDS).controls["table-compact 100 twin / table-compact 100"]
    assert null.value == pytest.approx(1.0, abs=0.02)


def test_checksums_and_probes_are_keyed_by_label_and_by_measurement_when_there_are_several(recording, sample):
    assert sample().probes == {"scan 100": 50.5, "scan-ordered 100": 50.5}
    assert recording.probes["10 handlers/scan 10"] == 5.5
    assert len(sample().checksums) == 5 and len(recording.checksums) == 10


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda r: r.ns("scn"), "got scn; there is scan"),
        (lambda r: r.ns("zzz"), "got zzz; there is direct-call, "),
        (lambda r: r.ns("scan", handler=100), "got handler; there is handlers"),
        (lambda r: r.ns("scan", handlers=99), "scan was not measured with handlers=99: there is 10, 100"),
        (lambda r: r.ns("scan", traffic="unifrom"), "traffic=unifrom: there is uniform"),
        (
            lambda r: r.ns("scan", handlers=10, measurement="100 handlers"),
            "measurement=100 handlers together",
        ),
        (
            lambda r: r.ns("scan"),
            "scan was measured 2 times: got measurement=10 handlers, handlers=10 | "
            "measurement=100 handlers, handlers=100; choose one by measurement=, handlers=",
        ),
        (lambda r: r.ratio("scan", "table-compact"), "scan was measured 2 times"),
        (lambda r: r.ratio("scan 10", "table-compact"), None),
        (
            lambda r: r.ratio("scan 10", "scan 100"),
            "scan 10 and scan 100 were not measured in the same rounds",
        ),
        (lambda r: r.ratio("scan", "tabel-compact"), "got tabel-compact; there is table-compact"),
    ],
)
def test_a_name_that_fits_none_or_several_lists_the_candidates(recording, call, said):
    if said is None:
        assert call(recording).unit
        return
    with pytest.raises(UsageError) as caught:
        call(recording)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_many_candidates_are_cut_short(sample):
    m = sample().measurements[0]
    many = [dataclasses.replace(m, name=f"m{i}") for i in range(9)]
    with pytest.raises(UsageError, match="and 3 more"):
        sample(measurements=many).ns("scan")
