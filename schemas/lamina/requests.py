"""What a client asks the query service, on `lamina.rpc.<lane>.<space>.<verb>`, and what it answers. JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from lamina.records import AsOf, Link, Where

MAX_QUERY_CHARS = 8_192
MAX_LIMIT = 200


class Recall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`recall`; answered by `records.Hits`."""

    query: str
    session: str = ""
    limit: int = 8
    budget_tokens: int = 1500
    layers: tuple[str, ...] | None = None
    where: Where = field(default_factory=Where)
    deadline_s: float = 1.0
    min_seq: int = 0
    now: datetime | None = None
    as_of: AsOf | None = None


class Known(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`known`: which of these event ids does the space hold?"""

    ids: tuple[str, ...]


class KnownIds(Struct, frozen=True, kw_only=True):
    """id -> (seq, sha256 of its data), for those that are known; (0, "") for those that were erased on request."""

    ids: dict[str, tuple[int, str]]


class Settled(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`settled`: answered (by `Position`) once nothing published is unfolded and nothing is due; else `Timeout`."""

    timeout_s: float = 30.0
    layers: tuple[str, ...] | None = None
    min_seq: int = 0


class Position(Struct, frozen=True, kw_only=True):
    """Where each view of the space stands."""

    seqs: dict[str, int]


class Turns(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`turns`: what was said, in log order, from after `after` on; of one session where it is named."""

    session: str | None = None
    after: int = 0
    limit: int = 100
    newest: bool = False
    as_of: AsOf | None = None


class Turn(Struct, frozen=True, kw_only=True):
    """One turn, tool result or stated memory as the journal holds it."""

    seq: int
    id: str
    type: str
    session: str
    role: str
    name: str
    turn_id: str
    agent: str
    project: str
    time: str
    text: str


class TurnPage(Struct, frozen=True, kw_only=True):
    turns: tuple[Turn, ...]
    more: bool


class Sessions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`sessions`: the sessions of the space, the last used first."""

    limit: int = 100
    as_of: AsOf | None = None


class SessionInfo(Struct, frozen=True, kw_only=True):
    session: str
    turns: int
    last: str
    ended: bool


class SessionPage(Struct, frozen=True, kw_only=True):
    sessions: tuple[SessionInfo, ...]


class Read(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`read`: a piece of a tool result, by one of query, lines and symbol, or from its start; answered by `Part`."""

    node: str
    query: str | None = None
    lines: str | None = None
    symbol: str | None = None
    max_tokens: int = 1600


class FitState(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`fit-state`: what the next context of a session is fitted with; answered by `FitStateIs`."""

    session: str


class FitStateIs(Struct, frozen=True, kw_only=True):
    """The state of the last cut of the session (empty before the first) and its canvas (empty without one)."""

    state: dict[str, Any]
    canvas: str


class Savings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`savings`: what offloading saved, by session, the one that saved most first; answered by `SavingsAre`."""

    session: str | None = None
    limit: int = 100
    as_of: AsOf | None = None


class Saved(Struct, frozen=True, kw_only=True):
    """Tokens of a session's tool results, of the stubs that stand for them, and those that cuts took away."""

    session: str
    results: int
    result_tokens: int
    stub_tokens: int
    cut_tokens: int


class SavingsAre(Struct, frozen=True, kw_only=True):
    sessions: tuple[Saved, ...]
    results: int
    result_tokens: int
    stub_tokens: int
    cut_tokens: int


class Cuts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`cuts`: every time a context of the session was cut, oldest first; answered by `CutsAre`."""

    session: str
    as_of: AsOf | None = None


class CutInfo(Struct, frozen=True, kw_only=True):
    """One cut of a context: its position in the log, the window, the tokens before and after, what was cut."""

    seq: int
    window_tokens: int
    before: int
    after: int
    cuts: list[dict[str, Any]]


class CutsAre(Struct, frozen=True, kw_only=True):
    cuts: tuple[CutInfo, ...]


class Past(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`past`: have the views of these services made as they were then; answered at once by `PastIs`."""

    as_of: AsOf
    services: tuple[str, ...]


class PastIs(Struct, frozen=True, kw_only=True):
    """Is it made? Else how far: at event `at` of `end` of the log."""

    ready: bool
    at: int = 0
    end: int = 0


class Canvases(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`canvases`: the work of sessions as it was drawn then; answered by `CanvasesAre`."""

    as_of: AsOf
    session: str | None = None
    limit: int = 50


class CanvasIs(Struct, frozen=True, kw_only=True):
    """The work of a session as a Mermaid `flowchart TD`."""

    session: str
    text: str


class CanvasesAre(Struct, frozen=True, kw_only=True):
    canvases: tuple[CanvasIs, ...]


class Why(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`why`: the chain from an item's id to the events it came from; answered by `Chain`."""

    id: str
    as_of: AsOf | None = None


class Chain(Struct, frozen=True, kw_only=True):
    """From the item asked for down to its events; empty when nothing has this id."""

    links: tuple[Link, ...]


class Forget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be forgotten, said in exactly one way; answered by `records.Receipt`.

    `events` are event ids, `turns` the callers' own ids of turns and calls, `nodes` those of tool results. `between`
    are the first and the last event time. `matches` are texts that what was said contains, `entities` names that it
    speaks of as whole words; both whatever their case. With `dry_run` nothing is changed.
    """

    events: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    between: tuple[datetime, datetime] | None = None
    matches: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    all: bool = False
    dry_run: bool = False


class PersonaOf(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`persona`: who somebody is, as it is now or was.

    `changes` asks for the last so many revisions with what each put in and took out; `every` for all lines there are,
    those too that have no room. Answered by `PersonaIs`.
    """

    as_of: AsOf | None = None
    changes: int = 0
    every: bool = False


class Revision(Struct, frozen=True, kw_only=True):
    """One change of the persona: the event that made it, the lines taken out and put in, in the order of the file."""

    n: int
    seq: int
    time: str
    event: str
    kind: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


class PersonaIs(Struct, frozen=True, kw_only=True):
    """`text` as it stands in `persona.md`, `n` its revision (0 before the first); `over` counts the standing
    instructions that have no room in it."""

    text: str
    n: int = 0
    seq: int = 0
    time: str = ""
    over: int = 0
    changes: tuple[Revision, ...] = ()


class PromptOf(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`prompt`: what is put before a model, for a session where one is named; answered by `records.Prompt`."""

    session: str = ""
    as_of: AsOf | None = None


class Atoms(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`atoms`: what was derived, newest first; answered by `AtomsAre`.

    Empty filters mean any. What was superseded, undone, or counts for another is shown with `history`, what is
    quarantined with `quarantined` alone. `id` is one atom with all that it superseded and was superseded by.
    `true_at` are those that held then in the world, whatever became of them since.
    """

    id: str = ""
    query: str = ""
    types: tuple[str, ...] = ()
    session: str | None = None
    history: bool = False
    quarantined: bool = False
    limit: int = 100
    true_at: datetime | None = None
    as_of: AsOf | None = None


class AtomInfo(Struct, frozen=True, kw_only=True):
    """An atom as it stands. `known` is when the log had it, `valid_from` and `until` when it held in the world.

    `status`: active, superseded, repeated (both: `by` which atom), contradicted, quarantined or undone.
    """

    id: str
    type: str
    text: str
    status: str
    by: str
    reason: str
    subject: str
    slot: str
    value: str
    scope: str
    polarity: int
    priority: int
    count: int
    time: str
    last: str
    known: str
    valid_from: str
    until: str
    session: str
    project: str
    said_by: str
    quarantine: str
    decision: str
    sources: tuple[str, ...]


class AtomsAre(Struct, frozen=True, kw_only=True):
    atoms: tuple[AtomInfo, ...]
    more: bool


class DecisionOf(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`decision`: the decision with this event id, or that made the atom with this id; answered by `DecisionIs`."""

    id: str


class DecisionIs(Struct, frozen=True, kw_only=True):
    """`id` is empty where there is none. `kind`: extract, reconcile, correct, failed or dead."""

    id: str = ""
    kind: str = ""
    by: str = ""
    model: str = ""
    inputs: int = 0
    atoms: int = 0
    tokens: int = 0
    time: str = ""
    error: str = ""
    undone: bool = False


class Scenarios(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`scenarios`: the situations of the space, the hottest first, or the one of this `name` (its slug or id, or the
    beginning of either) with its text and atoms; answered by `ScenariosAre`. `now` is RFC 3339, the machine's clock
    where it is empty."""

    name: str = ""
    limit: int = 50
    now: str = ""
    as_of: AsOf | None = None


class ScenarioInfo(Struct, frozen=True, kw_only=True):
    """A scenario. `status`: open, dormant (nothing for a day), closed (by hand), merged (into `merged`).

    `heat` falls by half a week after `last`; `text` is the file as it stands and `atoms` are the ids of its members,
    where one scenario is asked for.
    """

    id: str
    slug: str
    title: str
    summary: str
    status: str
    heat: float
    project: str
    facts: int
    mentions: int
    sessions: int
    first: str
    last: str
    path: str
    merged: str = ""
    text: str = ""
    atoms: tuple[str, ...] = ()


class ScenariosAre(Struct, frozen=True, kw_only=True):
    scenarios: tuple[ScenarioInfo, ...]
    more: bool
