"""The records that the public surface takes and returns. All are frozen; `msgspec.json.encode` gives their JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

LAYERS = ("l0", "l1", "l2", "l3")
Status = Literal["found", "none", "unavailable"]


class AsOf(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A moment of memory, said in one way: after the event `seq` of the log (of `epoch`, where that is given), or as
    was known at `time`."""

    seq: int | None = None
    epoch: str = ""
    time: datetime | None = None


class Accepted(Struct, frozen=True):
    """An event is safe: fsynced in the log at `seq`, or, where `seq` is None, in this client's outbox.

    `seq` of a repeated publish is the first one's, so it may be used as `min_seq` in either case.
    """

    id: str
    seq: int | None


class Stub(Struct, frozen=True, kw_only=True):
    """What stands in the context in place of a tool result. `text` is the result itself where that is short."""

    node: str
    text: str
    id: str
    seq: int | None


class Where(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of a recall; empty means any. `since` and `until` bound the event time, ends included."""

    sessions: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None


class Item(Struct, frozen=True, kw_only=True):
    """One memory. `parts` sum to `score`; `sources` are event ids, `turn_ids` the callers' own ids behind them.

    `type` is that of an atom; `note` says where a memory no longer holds, is contradicted, or is not to be trusted.
    """

    layer: str
    id: str
    text: str
    score: float
    parts: dict[str, float]
    time: str
    space: str
    session: str
    role: str = ""
    name: str = ""
    sources: tuple[str, ...] = ()
    turn_ids: tuple[str, ...] = ()
    type: str = ""
    note: str = ""


class Degraded(Struct, frozen=True):
    """A part of the answer that is missing: which, why, and what to do."""

    part: str
    why: str
    remedy: str


class Hits(Struct, frozen=True, kw_only=True):
    """The answer of a recall, always one of three: found, none, unavailable.

    `as_of_seq` is the position the answer is true at, in the log of `epoch`; `lag` the number of events behind the
    log by service.
    """

    status: Status
    items: tuple[Item, ...] = ()
    persona: str = ""
    degraded: tuple[Degraded, ...] = ()
    as_of_seq: int = 0
    epoch: str = ""
    lag: dict[str, int] = field(default_factory=dict)
    text: str = ""
    """The rendered block, where `format="prompt"` was asked for."""


class Part(Struct, frozen=True, kw_only=True):
    """A piece of a tool result, exact, with line numbers; `omitted` says what was left out and how to get it."""

    node: str
    text: str
    lines: tuple[tuple[int, int], ...] = ()
    total_lines: int = 0
    omitted: str = ""


class Context(Struct, frozen=True, kw_only=True):
    """A message list that fits. `before` and `tokens` count the whole prompt, given and answered, as o200k.

    `cuts` says what was made smaller in this call: 0 means that the list is the one given, or given before.
    """

    messages: list[dict[str, Any]]
    before: int
    tokens: int
    cuts: int


class Prompt(Struct, frozen=True, kw_only=True):
    """The two halves of a memory prompt: `stable` changes only with the persona, `dynamic` with the session."""

    stable: str
    dynamic: str


class Link(Struct, frozen=True, kw_only=True):
    """One step of a `why` chain: what an item is, what it says, the ids it came from, and those made of it.

    `note` says where it no longer holds or is contradicted; `by` which decision made it.
    """

    layer: str
    id: str
    text: str
    time: str = ""
    session: str = ""
    seq: int | None = None
    sources: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    note: str = ""
    by: str = ""


class Receipt(Struct, frozen=True, kw_only=True):
    """What was forgotten, or with `dry_run` would be: ids and counts, never a text and never a pattern.

    `said` counts what was said by event type, `derived` the decisions that were made over it or tell of it; what
    those held of other sources is derived again. `ids` are those of both, the first 10,000. `messages` were erased
    in the log, `lines` in ledgers and outboxes, `blobs` in both places; `files` were removed, `vectors` dropped and
    `views` folded anew.

    Then `looked_for` pieces of the erased texts were looked for in `in_messages` messages of the space and `in_files`
    files of the home (pieces that something else still says are left out); `found` says where one still stands, and
    `unseen` what could not be looked at.
    """

    space: str
    dry_run: bool
    said: dict[str, int]
    derived: dict[str, int]
    ids: tuple[str, ...]
    messages: int = 0
    lines: int = 0
    blobs: int = 0
    files: int = 0
    vectors: int = 0
    views: tuple[str, ...] = ()
    looked_for: int = 0
    in_messages: int = 0
    in_files: int = 0
    found: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    seconds: float = 0.0
