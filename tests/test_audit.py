"""The audit enumerates what the engine counts, and refuses in one line what it cannot read."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import dispatchlab as dl
from dispatchlab.audit import Handler, audit, sorted_legally
from dispatchlab.audittable import read
from dispatchlab.cli import main
from dispatchlab.design import stream

HEAD = "name,key,residual,share\n"


def table_of(hs: dl.HandlerSet, tr: dl.traffic.Traffic, path: Path) -> Path:
    """The handlers of a set, in its order, with their shares of a traffic."""
    frequency = hs.frequency(tr.packets)
    rows = [f"h{i},{hs.keys[i]},{'yes' if hs.masks[i] else 'no'},{frequency[i]}" for i in hs.order]
    path.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def matched(arm: str, hs: dl.HandlerSet, tr: dl.traffic.Traffic) -> float:
    """Probes per packet that the engine counts, over the packets that have a handler."""
    return float(dl.count_probes(arm, hs, tr)[hs.select(tr.packets) >= 0].mean())


@pytest.mark.parametrize("residual", [0, 0.1, 0.3, 1])
@pytest.mark.parametrize("order", ["registration", "shuffled"])
def test_scan_and_table_ask_what_the_engine_counts(tmp_path: Path, residual: float, order: str) -> None:
    hs = dl.handlers(60, residual=residual, order=order, seed=4)
    tr = dl.traffic.zipf(hs, 1.1, seed=1, pool=8192)
    found = audit(read(table_of(hs, tr, tmp_path / "handlers.csv")))
    assert found.scan.mean == pytest.approx(matched("scan", hs, tr))
    assert found.table.mean == pytest.approx(matched("table-compact", hs, tr))
    assert found.table.mean == found.table.high
    assert found.scan.worst == 60
    assert found.table.worst == max([sum(hs.keys == k) for k in hs.keys[hs.masks > 0]], default=0)


def test_the_scan_sorted_by_share_asks_what_the_engine_counts_where_any_order_is_legal(tmp_path: Path) -> None:
    hs = dl.handlers(60, residual=0)
    tr = dl.traffic.zipf(hs, 1.1, seed=1, pool=8192)
    found = audit(read(table_of(hs, tr, tmp_path / "handlers.csv")))
    assert found.ordered.mean == pytest.approx(matched("scan-ordered", hs, tr))
    assert (found.rivals, found.swaps, found.degenerate) == (0, 0, "no")


def test_no_legal_order_asks_fewer_than_the_sorted_one() -> None:
    """Against every permutation of seven handlers, for fifty lists."""
    draws = stream(7, 50 * 7).reshape(50, 7)
    for row in draws:
        keys = [None if x % 6 == 0 else int(x % 6) % 3 for x in row.tolist()]
        found = [Handler(f"h{i}", keys[i], True, float((row[i] >> np.uint64(20)) % np.uint64(9)) + 1) for i in range(7)]
        cost = {order: sum(h.share * place for place, h in enumerate(order, 1)) for order in itertools.permutations(found)}
        legal = [c for order, c in cost.items() if keeps(found, order)]
        order = tuple(sorted_legally(found))
        assert keeps(found, order)
        assert cost[order] == pytest.approx(min(legal))


def keeps(found: list[Handler], order: tuple[Handler, ...]) -> bool:
    place = {h.name: i for i, h in enumerate(order)}
    pairs = itertools.combinations(found, 2)
    return all(place[a.name] < place[b.name] for a, b in pairs if a.key is None or b.key is None or a.key == b.key)


def test_a_handler_without_a_key_stands_in_every_list() -> None:
    sniffer = Handler("sniffer", None, True, 1)
    found = audit([Handler("a", 80, False, 5), sniffer, Handler("b", 81, True, 2), Handler("c", 80, True, 0)])
    lists = {b.key: (b.names, b.asked) for b in found.buckets}
    assert lists == {80: (("a",), 0), None: (("sniffer",), 1), 81: (("sniffer", "b"), 2)}
    assert found.unreachable == ("c",)
    assert found.table.mean == pytest.approx((5 * 0 + 1 * 1 + 2 * 2) / 8)
    assert found.rivals == 4
    assert found.swaps == 1 and found.swapped == (("sniffer", "b"),)
    assert found.order[:2] == ("a", "sniffer")


def test_the_mean_has_a_range_where_packets_without_a_key_may_come_to_any_list() -> None:
    found = audit([Handler(f"k{i}", 7, True, 0) for i in range(9)] + [Handler("any", None, True, 1)])
    assert (found.table.mean, found.table.high) == (1, 10)
    assert found.degenerate == "depends"
    assert found.bound == 10


def test_one_key_for_all_or_no_keys_at_all_make_the_table_the_loop_again() -> None:
    for key in (5, None):
        found = audit([Handler(str(i), key, True, 1) for i in range(20)])
        assert found.table.mean == found.ordered.mean == 10.5
        assert found.degenerate == "yes"


def test_the_bound_is_the_shortest_that_holds_the_part_asked_for() -> None:
    lists = [Handler(f"{key}-{i}", key, True, share) for key, n, share in ((1, 1, 90), (2, 3, 3), (3, 10, 0.1)) for i in range(n)]
    assert [audit(lists, hold).bound for hold in (0.9, 0.99, 0.999)] == [1, 3, 10]
    assert audit(lists, 0.99).over == (3,)


def test_what_follows_a_handler_that_takes_everything_is_never_reached() -> None:
    found = audit([Handler("a", 1, False, 1), Handler("rest", None, False, 1), Handler("b", 2, False, 0)])
    assert found.unreachable == ("b",)
    assert found.scan.worst == 2
    with pytest.raises(dl.UsageError, match="'b' can take nothing: 'rest' before it"):
        audit([Handler("rest", None, False, 1), Handler("b", 2, False, 1)])


GOOD = HEAD + "http,80,no,0.6\ndns,0x35,yes,0.3\n# a comment\nsniffer,,yes,0.1\n"


def test_the_command_answers_every_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "handlers.csv"
    path.write_text(GOOD, encoding="utf-8")
    assert main(["audit", str(path)]) == 0
    text = capsys.readouterr().out
    for words in ("scan sorted by share", "any other", "The table pays", "Bound: lists of 2", "Sorting by share is legal"):
        assert words in text
    assert main(["audit", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sorting_is_legal"] is True
    assert told["table"]["mean"] == pytest.approx(0.3 * 1 + 0.1 * 1)
    assert [b["key"] for b in told["buckets"]] == [80, 53, None]


def test_an_illegal_sort_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "handlers.csv"
    path.write_text(HEAD + "first,80,yes,1\nsecond,80,yes,9\n", encoding="utf-8")
    assert main(["audit", str(path)]) == 0
    assert "NOT legal: it would turn round 1 of 1 pairs" in (text := capsys.readouterr().out)
    assert "The table is the loop again" in text


BAD = {
    "": (1, "no handlers"),
    "\n\n": (1, "no handlers"),
    HEAD: (1, "names alone"),
    "name,key,share\na,1,1\n": (1, "no column residual"),
    HEAD + "a,1,yes\n": (2, "4 cells"),
    HEAD + "a,1,yes,1,2\n": (2, "4 cells"),
    HEAD + "a,1,yes,1\n\nb,2,maybe,1\n": (4, "yes or no"),
    HEAD + "a,1,yes,lots\n": (2, "share"),
    HEAD + "a,1,yes,-0.1\n": (2, "share"),
    HEAD + "a,1,yes,nan\n": (2, "share"),
    HEAD + "a,1,yes,inf\n": (2, "share"),
    HEAD + "a,1,yes,\n": (2, "share"),
    HEAD + "a,1,yes,0\nb,2,no,0\n": (1, "all shares are 0"),
    HEAD + "a,1,yes,1\nb,2,no,1\na,3,no,1\n": (4, "twice"),
    HEAD + "a,65536,yes,1\n": (2, "key"),
    HEAD + "a,-1,yes,1\n": (2, "key"),
    HEAD + "a,http,yes,1\n": (2, "key"),
    HEAD + ",1,yes,1\n": (2, "name"),
    HEAD + '"a\nb",1,yes,1\nc,x,no,1\n': (4, "key"),
    HEAD + 'a,"1"x,yes,1\n': (2, "not CSV"),
    HEAD + "a,1,no,1\nb,1,no,1\n": (3, "can take nothing"),
    HEAD.encode() + b"a,1,yes,1\n\xff,1,yes,1\n": (3, "UTF-8"),
}


@pytest.mark.parametrize("content", BAD, ids=lambda c: repr(c)[:60])
def test_a_file_that_cannot_be_used_costs_one_line_with_its_name_and_line(
    content: str | bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "handlers.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    line, words = BAD[content]
    assert main(["audit", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert f"{path}, line {line}" in err
    assert words in err


def test_a_missing_file_and_an_impossible_part_cost_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "handlers.csv"
    assert main(["audit", str(path)]) == 2
    assert "cannot read the handlers" in capsys.readouterr().err
    path.write_text(GOOD, encoding="utf-8")
    assert main(["audit", str(path), "--hold", "0"]) == 2
    assert "above 0" in capsys.readouterr().err
