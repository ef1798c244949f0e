"""What a service says of itself: pure functions and the shape of its view.

`fold(state, recorded, rows) -> (state, changes)` is a function of its arguments alone: no clock, no chance, no
I/O. `decide(state, now_us) -> Wanted | Due | None` likewise. Where the small state cannot say over what, `plan`
reads it from the rows of the same moment. `act` is where a decision is made (a model may be called); its answer
becomes an event, and only the fold of that event changes the view.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct, field

from lamina.config import Config
from lamina.errors import Transient
from lamina.events import Data, Event
from lamina.ids import derived_id
from lamina.store.driver import Row
from lamina.store.view import Table, View

S = TypeVar("S", bound=Struct)
Key: TypeAlias = tuple[str, Row]
"""(table, key values)."""


class Recorded(Struct, frozen=True, kw_only=True, gc=False):
    """A message of the log as fold sees it. `event` is None, and `error` says why, where it is no event.

    `data` is None for a type that this version does not know. `blobs` holds the bytes of the blobs that the
    data names, for services that ask for them; one that is not to be had is missing, and `error` says so.
    """

    seq: int
    at_us: int
    raw: bytes
    event: Event | None = None
    data: Data | None = None
    error: str = ""
    blobs: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Its event's id, or `dead_id` where it is none."""
        return dead_id(self.event.id if self.event is not None else "", self.raw)


def dead_id(event_id: str, raw: bytes) -> str:
    """What a parked message is called: its event's id, or one made of its bytes where it is no event."""
    return event_id or derived_id("malformed", hashlib.sha256(raw).hexdigest())


class Put(Struct, frozen=True, gc=False):
    """Insert or replace the row with this key."""

    table: str
    row: Row


class Add(Struct, frozen=True, gc=False):
    """Insert a row into a table without a key."""

    table: str
    row: Row


class Drop(Struct, frozen=True, gc=False):
    """Delete the row with this key; there need not be one."""

    table: str
    key: Row


class Append(Struct, frozen=True, gc=False):
    """Append a line to a file of the ledger `log/`; a line that stands there already is not written again."""

    file: str
    seq: int
    line: bytes


class WriteFile(Struct, frozen=True):
    """Replace a file of the space, atomically. `path` is relative and of encoded names."""

    path: str
    data: bytes


class DropFile(Struct, frozen=True):
    """Remove a file of the space; there need not be one."""

    path: str


Change: TypeAlias = Put | Add | Drop | Append | WriteFile | DropFile


class Rows(Protocol):
    """The rows as they stand before this event: earlier ones of the batch count. `needs` may name some in advance."""

    def get(self, table: str, key: Row) -> Row | None: ...


class Wanted(Struct, frozen=True):
    """A decision that is due now: over the events `inputs`; `ask` is whatever `act` needs to make it."""

    step: str
    inputs: tuple[str, ...]
    ask: Any = None


class Due(Struct, frozen=True):
    """Nothing is due before this time, in microseconds since 1970."""

    at_us: int


class Made(Struct, frozen=True):
    """A decision: the type of its event, and its data without step, n and inputs, which the runtime adds.

    `inputs` are the first of those wanted where it was not made over all of them; the rest stay due.
    """

    type: str
    data: Mapping[str, Any]
    tokens: int = 0
    inputs: tuple[str, ...] = ()


class Unmade(Exception):
    """What `act` raises where a failure has more to say than its `cause`: tokens that were spent all the same, and
    over which of the inputs it was tried (empty: all)."""

    def __init__(self, cause: Exception, *, tokens: int = 0, inputs: tuple[str, ...] = ()) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.tokens = tokens
        self.inputs = inputs


class NotYet(Transient):
    """What `act` raises where something it must see is not there yet, as another service's view that is behind.

    The decision is put off a little: nothing is published, no attempt is counted, nothing failed.
    """


Fold: TypeAlias = Callable[[S, Recorded, Rows], tuple[S, Sequence[Change]]]
Decide: TypeAlias = Callable[[S, int], Wanted | Due | None]
Act: TypeAlias = Callable[[Wanted, View], Awaitable[Made]]
Plan: TypeAlias = Callable[[sqlite3.Connection, Wanted, int, int], "Wanted | Due | None"]
"""(the view, what `decide` wants, now in microseconds, attempts that failed under this number)."""


def no_needs(_: Recorded) -> Sequence[Key]:
    return ()


class Base(Struct, frozen=True):
    """A rendered file as a person had it before an edit, without its seal; not `exact` where the view knows only how
    it is now. `edits` counts those that the view has folded."""

    text: str
    edits: int
    exact: bool = True


class Editing(Struct, frozen=True):
    """Rendered files that people may edit: their patterns below the space, the `type` of the event that an edit is,
    and `base`: (view, path, seal) -> the version of the file with that seal, as it is now where the seal is empty or
    not known; None where no such file is rendered. They are written with `lamina.runtime.sealing.sealed`."""

    type: str
    files: tuple[str, ...]
    base: Callable[[sqlite3.Connection, str, str], Base | None]


class Service(Struct, Generic[S], frozen=True, kw_only=True):
    """One consumer of the log.

    `plan` completes what `decide` wants from the rows of the view: inputs too many for the state. It may find that
    nothing is due after all. `version` is that of its fold and tables: raising it rebuilds every view beside the
    old one. `decisions` are the event types it decides. `malformed`: fold also gets messages that are no events.
    `blobs`: fold gets the bytes of blobs, and they are kept as `blobs/<sha256>`. `embeds` names a table of the view
    with the columns seq, hash and text: the embed loop fills `cache/embeddings-<identity>.db` with the vectors of
    its texts. `configure` gives the service as the configuration of a home wants it: other ways of deciding, the
    same view. `after` names the services whose decisions it decides over: whoever waits for it waits for them first.
    `editing` are its files that people may edit. `single`: why it must not run twice; empty where it may.
    `urgent`: while much is to be folded, the other services of its process give way to it for a while.
    """

    name: str
    version: int
    tables: tuple[Table, ...]
    state: type[S]
    fold: Fold[S]
    needs: Callable[[Recorded], Sequence[Key]] = no_needs
    decide: Decide[S] | None = None
    plan: Plan | None = None
    act: Act | None = None
    decisions: tuple[str, ...] = ()
    malformed: bool = False
    blobs: bool = False
    max_attempts: int = 8
    embeds: str = ""
    editing: Editing | None = None
    single: str = ""
    urgent: bool = False
    after: tuple[str, ...] = ()
    configure: Callable[[Config], Service[S]] | None = None
