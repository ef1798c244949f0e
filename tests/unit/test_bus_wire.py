"""Subjects, header blocks and the answers of JetStream: the parts of the bus that need no server."""

from __future__ import annotations

import asyncio
import re
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.bus import subjects, wire
from lamina.bus.api import ApiError, PubAck, Reply, ack_of, answer_of, error_of
from lamina.bus.connection import Connection
from lamina.bus.memory import MemoryLog
from lamina.bus.nats import NatsBus
from lamina.bus.port import Ack, Outgoing
from lamina.errors import (
    Busy,
    Conflict,
    Denied,
    Forgotten,
    Invalid,
    LaminaError,
    LogFull,
    TooLarge,
    Unavailable,
)
from lamina.ids import blob_subject, event_subject, token

parts = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=4)
patterns = st.builds(lambda body, tail: ".".join(body + tail), parts, st.sampled_from([[], [">"]]))
plain = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=5).map(".".join)


def as_regex(pattern: str) -> str:
    return pattern.replace(".", r"\.").replace("*", "[ab]").replace(">", r"[ab](?:\.[ab])*")


@given(patterns, plain)
def test_a_pattern_covers_what_its_words_say(pattern: str, subject: str) -> None:
    assert subjects.matches(pattern, subject) == (re.fullmatch(as_regex(pattern), subject) is not None)


@given(patterns, patterns)
def test_overlapping_is_sharing_a_subject(one: str, other: str) -> None:
    length = max(one.count("."), other.count(".")) + 2
    every = [""]
    for _ in range(length):
        every += [f"{head}.{t}" if head else t for head in every for t in "ab"]
    shared = any(subjects.matches(one, subject) and subjects.matches(other, subject) for subject in set(every) - {""})

    assert subjects.overlap(one, other) == subjects.overlap(other, one) == shared


@given(st.text(max_size=30), st.sampled_from(["turn.recorded", "x"]))
def test_every_subject_that_ids_make_is_taken(text: str, event_type: str) -> None:
    try:
        space = token(text)
    except LaminaError:
        return
    subjects.check_logged(event_subject(space, event_type))
    subjects.check_logged(blob_subject(space, "0" * 64))


@given(st.text(max_size=20))
def test_no_text_makes_a_command_of_a_subject(text: str) -> None:
    try:
        subjects.check_pattern(text)
    except Invalid:
        return
    assert re.fullmatch(r"[!-~]+", text)


@given(
    st.dictionaries(st.text(min_size=1, max_size=10), st.text(max_size=20), max_size=4),
    st.none() | st.text(max_size=20),
)
def test_headers_come_back_or_are_refused(headers: dict[str, str], message_id: str | None) -> None:
    try:
        block = wire.encode_headers(headers, message_id)
    except Invalid:
        return
    own = {wire.MSG_ID: message_id} if message_id is not None else {}

    assert (wire.decode_headers(block) or {}) == own | headers


@given(st.binary(max_size=60))
def test_any_header_block_is_read(block: bytes) -> None:
    wire.decode_headers(block)
    assert 0 <= Reply(block, b"").status <= 999


def test_256_lanes_are_checked_quickly_enough_to_be_checked_always() -> None:
    lanes = [f"lamina.{kind}.{lane}.>" for lane in range(256) for kind in ("ev", "blob")]
    subjects.check_filters(lanes)
    with pytest.raises(Invalid):
        subjects.check_filters([*lanes, "lamina.*.7.alice.>"])
    with pytest.raises(Invalid):
        subjects.check_filters([*lanes, "lamina.ev.7.>"])
    with pytest.raises(Invalid):
        subjects.check_filters([">", "lamina.>"])


@pytest.mark.parametrize(
    ("code", "err_code", "description", "kind"),
    [
        (503, 10077, "maximum bytes exceeded", LogFull),
        (503, 10077, "write /x: no space left on device", LogFull),
        (503, 10077, "something else", Unavailable),
        (500, 10047, "insufficient storage resources available", LogFull),
        (503, 10023, "insufficient resources", LogFull),
        (400, 10071, "wrong last sequence: 3", Conflict),
        (400, 10201, "atomic publish batch contains duplicate message id", Conflict),
        (400, 10176, "atomic publish batch is incomplete", Busy),
        (429, 10167, "too many requests", Busy),
        (400, 10054, "message size exceeds maximum allowed", TooLarge),
        (404, 10059, "stream not found", Unavailable),
        (503, 10008, "JetStream system temporarily unavailable", Unavailable),
        (403, 1, "", Denied),
        (400, 10025, "invalid JSON", Invalid),
    ],
)
def test_errors_of_jetstream(code: int, err_code: int, description: str, kind: type[LaminaError]) -> None:
    error = error_of(ApiError(code, err_code, description), "publishing")

    assert type(error) is kind
    assert str(error).startswith("publishing: ")
    assert description in str(error)


def test_an_ack() -> None:
    reply = Reply(b"", b'{"stream":"LAMINA","seq":7,"duplicate":true,"domain":"x"}')
    assert ack_of(reply, "publishing") == Ack(7, duplicate=True)


@pytest.mark.parametrize(
    "reply", [Reply(b"NATS/1.0 503\r\n\r\n", b""), Reply(b"", b""), Reply(b"", b"[]"), Reply(b"", b"\xff")]
)
def test_what_is_no_answer_is_unavailable(reply: Reply) -> None:
    with pytest.raises(Unavailable):
        answer_of(reply, PubAck, "publishing")


@pytest.mark.parametrize(
    ("headers", "status"),
    [(b"NATS/1.0 409 Consumer Deleted\r\n\r\n", 409), (b"NATS/1.0\r\nA: b\r\n\r\n", 0), (b"", 0), (b"x", 0)],
)
def test_status_lines(headers: bytes, status: int) -> None:
    assert Reply(headers, b"").status == status


@pytest.mark.parametrize(
    ("name", "kind"),
    [("Forgotten", Forgotten), ("LogFull", LogFull), ("Exception", Unavailable), ("annotations", Unavailable)],
)
def test_errors_travel_by_name(name: str, kind: type[LaminaError]) -> None:
    assert type(wire.error_of(name, "why")) is kind


def test_the_dedup_window_of_the_log_in_memory_ends() -> None:
    now = [0]
    log = MemoryLog(now_us=lambda: now[0], duplicate_window_s=120)
    message = Outgoing("lamina.ev.1.a.k", b"x", "id")
    log.append(message)
    now[0] = 120_000_000
    assert log.append(message) == Ack(1, duplicate=True)
    now[0] += 1
    assert log.append(message) == Ack(2)


async def test_a_close_that_the_client_library_cancels_by_itself_is_a_close() -> None:
    class Cancelled:
        def flush_now(self) -> None: ...

        async def close(self) -> None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            waiter.cancel()
            await waiter

    bus = NatsBus(cast(Connection, Cancelled()))
    await bus.close()

    assert not bus.connected
