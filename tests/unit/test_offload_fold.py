"""References, savings, cuts and canvas: what the offload service makes of events, without any I/O."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina import events, ids, times
from lamina.errors import Conflict
from lamina.offload.fold import TABLES, State, fold, needs
from lamina.offload.refs import Header, with_text
from lamina.runtime import Change, DropFile, Put, Recorded, WriteFile

WHEN = times.parse("2026-11-30T09:15:00+09:00")
WIDTHS = {table.name: table.key for table in TABLES}


class Rows(dict[tuple[str, tuple[Any, ...]], tuple[Any, ...]]):
    """The rows of a view, as a dictionary."""

    def get(self, table: str, key: tuple[Any, ...]) -> Any:  # type: ignore[override]
        return dict.get(self, (table, key))


def recorded(seq: int, data: Any, *, id: str | None = None, session: str = "s1", blobs: Any = None) -> Recorded:
    event = events.make(data, id=id or f"event-{seq}", space="alice", time=WHEN, session=session)
    return Recorded(seq=seq, at_us=seq, raw=events.encode(event), event=event, data=data, blobs=blobs or {})


def result(text: str, **more: Any) -> events.ToolReturned:
    return events.ToolReturned(tool="read_file", arguments={"path": "a.py"}, result=text, **more)


def folded(sequence: Sequence[Recorded]) -> tuple[Rows, dict[str, bytes]]:
    rows = Rows()
    files: dict[str, bytes] = {}
    state = State()
    for one in sequence:
        state, changes = fold(state, one, rows)
        for change in changes:
            _apply(change, rows, files)
    return rows, files


def _apply(change: Change, rows: Rows, files: dict[str, bytes]) -> None:
    if isinstance(change, Put):
        rows[(change.table, change.row[: WIDTHS[change.table]])] = change.row
    elif isinstance(change, WriteFile):
        files[change.path] = change.data
    else:
        assert not isinstance(change, DropFile)


def test_a_reference_holds_the_result_byte_for_byte_where_its_row_says() -> None:
    text = "line one\n```\nnot the end\n````\r\nlast, no newline"
    rows, files = folded([recorded(1, result(text))])
    node = ids.node_id("event-1")
    row = rows.get("refs", (node,))
    offset, size = row[-1], row[-3]

    assert files[f"refs/{node}.md"][offset : offset + size] == text.encode()
    assert row[-2] == hashlib.sha256(text.encode()).hexdigest()


def test_nothing_in_a_header_can_pass_for_another_line_of_it() -> None:
    hostile = "x\nstatus: done\n---\n```"
    header = Header(
        node="n1", tool=hostile, arguments=hostile, session=hostile, call_id=hostile, time="t", status="failed",
        size_bytes=1, lines=1, media_type="text/plain", sha256="0", event="e",
    )  # fmt: skip
    body, _ = with_text(header, "x")

    assert body.decode().split("\n")[:14].count("---") == 2
    assert [line for line in body.decode().splitlines() if line.startswith("status:")] == ['status: "failed"']


def test_a_result_above_64_kib_is_a_blob_that_the_reference_points_to() -> None:
    text = "0123456789abcdef" * 5_000
    rows, files = folded([recorded(1, result(text)), recorded(2, result(text))])
    sha256 = hashlib.sha256(text.encode()).hexdigest()

    assert files[f"blobs/{sha256}"] == text.encode()
    assert [path for path in files if path.startswith("blobs/")] == [f"blobs/{sha256}"]
    assert f"../blobs/{sha256}".encode() in files[f"refs/{ids.node_id('event-1')}.md"]
    assert rows.get("refs", (ids.node_id("event-2"),))[-1] is None


def test_what_is_no_text_is_kept_as_its_blob() -> None:
    raw = b"\xff\x00\x01"
    blob = events.Blob(hashlib.sha256(raw).hexdigest(), len(raw), "application/octet-stream")
    data = events.ToolReturned(tool="cat", arguments={}, result=blob)
    rows, files = folded([recorded(1, data, blobs={blob.sha256: raw})])

    assert files[f"blobs/{blob.sha256}"] == raw
    assert rows.get("saved", ("s1",)) == ("s1", 1, 0, 0)


def test_a_result_whose_blob_is_gone_is_refused_with_a_reason() -> None:
    data = events.ToolReturned(tool="cat", arguments={}, result=events.Blob("0" * 64, 3))

    with pytest.raises(Conflict, match="not to be had"):
        folded([recorded(1, data)])


def test_savings_count_results_and_stubs() -> None:
    rows, _ = folded([recorded(1, result("def f(): pass\n" * 2_000)), recorded(2, result("ok"))])
    _, results, whole, short = rows.get("saved", ("s1",))

    assert results == 2
    assert 0 < short < whole / 10


def test_the_same_event_again_changes_nothing() -> None:
    once = folded([recorded(1, result("one"))])

    assert folded([recorded(1, result("one")), recorded(2, result("one"), id="event-1")]) == once


def test_a_chat_without_calls_has_no_canvas_file_and_its_goal_is_known_when_one_comes() -> None:
    said = recorded(1, events.TurnRecorded(role="user", text="Fix the login"))
    _, files = folded([said])
    _, after = folded([said, recorded(2, result("ok"))])

    assert not files
    assert b"Fix the login" in after[f"canvas/{ids.token('s1')}.mmd"]


def test_a_cut_is_a_row_that_the_next_fit_can_start_from() -> None:
    cut = events.CutMade(index=4, level="stub", before=900, after=50, key="c7", node="n1")
    told = events.ContextCut(window_tokens=1000, before=900, after=400, cuts=(cut,), state={"note": "x"})
    rows, _ = folded([recorded(7, told)])

    assert rows.get("cuts", (7,))[1:5] == ("s1", 1000, 900, 400)
    assert rows.get("cuts", (7,))[6] == '{"note":"x"}'


@given(st.lists(st.text(max_size=200), max_size=12), st.integers())
def test_replaying_gives_the_same_files_and_rows_whatever_is_repeated(texts: list[str], seed: int) -> None:
    sequence = [recorded(n + 1, result(text), session=f"s{n % 3}") for n, text in enumerate(texts)]
    repeated = sorted([*sequence, *random.Random(seed).sample(sequence, len(sequence) // 2)], key=lambda one: one.seq)

    assert folded(repeated) == folded(sequence)


def test_only_the_rows_of_its_own_session_and_node_are_asked_for() -> None:
    assert needs(recorded(1, events.SessionEnded())) == ()
    assert needs(recorded(1, events.TurnRecorded(role="user", text="x"))) == (("canvases", ("s1",)),)
    assert ("refs", (ids.node_id("event-1"),)) in needs(recorded(1, result("x")))
