"""The same events, however they come: split, again, crashed in between - the same rows, files and ledger."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.bus import Message, Outgoing
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.home import Home
from lamina.journal.service import service as journal
from lamina.runtime.apply import Overlay
from lamina.runtime.files import SpaceFiles
from lamina.runtime.spec import Service
from lamina.runtime.views import Views
from lamina.store import View
from tests.support.toy import POISON, dump, ledger, toy, turn

DAY_US = 86_400_000_000
WORDS = st.sampled_from(["tea", "forget", "데이터", "milk tea", POISON, "unfit", "tea forget tea", "x" * 50])
EVENTS = st.lists(st.tuples(WORDS, st.integers(0, 6), st.integers(-3, 3)), min_size=1, max_size=14)
CUTS = st.lists(st.integers(0, 14), max_size=5)
POINTS = ("before files", "after files", "before commit", "after commit")


class Crash(BaseException):
    """The process dies here."""


def log_of(events: Sequence[tuple[str, int, int]]) -> MemoryLog:
    """A log of turns; equal numbers are equal ids, and the clock jumps by days, back and forth."""
    log = MemoryLog(epoch="e")
    now = [20_000 * DAY_US]
    log.now_us = lambda: now[0]
    for text, number, days in events:
        now[0] += days * DAY_US
        subject, raw = turn(text, id=f"e{number}")
        log.append(Outgoing(subject, raw))
    return log


async def folded(service: Service[Any], log: MemoryLog, home: Home, batches: Sequence[Sequence[Message]]) -> None:
    views = Views(service, MemoryBus(log), home, most_open=4)
    try:
        for batch in batches:
            async with views.use("alice", until=batch[0].seq) as view:
                await view.fold(batch)
    finally:
        await views.close()


def split(messages: Sequence[Message], cuts: Sequence[int]) -> list[Sequence[Message]]:
    """The messages in batches, each beginning somewhere before the end of the one before: repeats all along."""
    ends = sorted({min(cut, len(messages)) for cut in cuts} | {len(messages)})
    starts = [0, *(max(0, end - 2) for end in ends[:-1])]
    return [messages[start:end] for start, end in zip(starts, ends, strict=True) if start < end]


def left(service: Service[Any], log: MemoryLog, work: Callable[[Home], None]) -> tuple[dict[str, Any], bytes]:
    """What `work` leaves in a new home."""
    folder = Path(tempfile.mkdtemp())
    try:
        home = Home(folder)
        home.prepare()
        work(home)
        return dump(home, "alice", service.name), ledger(home)
    finally:
        shutil.rmtree(folder)


def die_at(point: str, patch: pytest.MonkeyPatch) -> None:
    """The next batch dies at `point`, once."""
    armed = [True]

    def fire() -> None:
        if armed.pop():
            armed.append(False)
            raise Crash
        armed.append(False)

    files, write, transaction = SpaceFiles.apply, Overlay.write, View.transaction

    def apply(self: SpaceFiles, *args: Any, **more: Any) -> None:
        if point == "before files":
            fire()
        files(self, *args, **more)
        if point == "after files":
            fire()

    def rows(self: Overlay) -> None:
        write(self)
        if point == "before commit":
            fire()

    async def commit(self: View, work: Callable[[Any], Any]) -> Any:
        result = await transaction(self, work)
        if point == "after commit" and getattr(work, "__name__", "") != "_stamp":
            fire()
        return result

    patch.setattr(SpaceFiles, "apply", apply)
    patch.setattr(Overlay, "write", rows)
    patch.setattr(View, "transaction", commit)


@pytest.mark.parametrize("make", [toy, journal], ids=["toy", "journal"])
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(events=EVENTS, cuts=CUTS)
def test_batches_split_and_repeated_leave_what_one_batch_leaves(
    make: Callable[[], Service[Any]], events: list[tuple[str, int, int]], cuts: list[int]
) -> None:
    service, log = make(), log_of(events)
    messages = list(log.messages.values())

    whole = left(service, log, lambda home: asyncio.run(folded(service, log, home, [messages])))
    parts = left(service, log, lambda home: asyncio.run(folded(service, log, home, split(messages, cuts))))

    assert parts == whole


@pytest.mark.parametrize("make", [toy, journal], ids=["toy", "journal"])
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(events=EVENTS, cuts=CUTS, point=st.sampled_from(POINTS), at=st.integers(0, 5), torn=st.binary(max_size=8))
def test_a_crash_at_any_point_leaves_what_no_crash_leaves(
    make: Callable[[], Service[Any]],
    events: list[tuple[str, int, int]],
    cuts: list[int],
    point: str,
    at: int,
    torn: bytes,
) -> None:
    service, log = make(), log_of(events)
    messages = list(log.messages.values())
    batches = split(messages, cuts)
    at = min(at, len(batches) - 1)

    def crashing(home: Home) -> None:
        asyncio.run(folded(service, log, home, batches[:at]))
        with pytest.MonkeyPatch.context() as patch:
            die_at(point, patch)
            with contextlib.suppress(Crash):  # nothing dies where no event of the batch reaches the point
                asyncio.run(folded(service, log, home, batches[at:]))
        for file in sorted((home.spaces / "alice" / "log").glob("*.jsonl"))[-1:]:
            with file.open("ab") as handle:
                handle.write(torn.replace(b"\n", b""))  # a line that was being written when the power went
        asyncio.run(folded(service, log, home, batches))

    whole = left(service, log, lambda home: asyncio.run(folded(service, log, home, [messages])))

    assert left(service, log, crashing) == whole


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(events=EVENTS)
def test_the_ledger_is_in_order_whatever_the_clock_does(events: list[tuple[str, int, int]]) -> None:
    service, log = journal(), log_of(events)
    folder = Path(tempfile.mkdtemp())
    try:
        home = Home(folder)
        home.prepare()
        asyncio.run(folded(service, log, home, split(list(log.messages.values()), range(14))))
        files = sorted((home.spaces / "alice" / "log").glob("*.jsonl"))
        seqs = [int(line.split(b",")[0].split(b":")[1]) for path in files for line in path.read_bytes().splitlines()]

        assert seqs == sorted(set(seqs))
        first: dict[int, str] = {}
        repeated = sum(first.setdefault(number, text) == text for text, number, _ in events) - len(first)
        assert len(seqs) == len(events) - repeated
    finally:
        shutil.rmtree(folder)
