"""The data of every event type: what happened, as one struct a type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from lamina.knowledge import Atom, Episode, LineChange, Operation, ScenarioOperation, Section, Standing

ROLES = ("user", "assistant", "system", "tool")
MAX_INLINE_BYTES = 256 * 1024
"""Texts of more UTF-8 bytes than this travel as a blob beside the event."""
CHUNK_BYTES = 128 * 1024
MAX_BLOB_BYTES = 64 * 1024 * 1024


class Blob(Struct, frozen=True, forbid_unknown_fields=True, tag=False):
    """A reference to bytes kept beside the event: their SHA-256, their number, what they are."""

    sha256: str
    size_bytes: int
    media_type: str = "text/plain; charset=utf-8"
    name: str | None = None


Text: TypeAlias = str | Blob
"""A text where it is short, the blob that holds it where it is long."""


class TurnRecorded(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Somebody said something. `name` is who spoke where the role does not say it."""

    role: str
    text: Text
    name: str | None = None
    turn_id: str | None = None
    parts: tuple[Blob, ...] = ()


class ToolReturned(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call and its result, verbatim."""

    tool: str
    arguments: dict[str, Any]
    result: Text
    call_id: str | None = None
    is_error: bool = False
    parts: tuple[Blob, ...] = ()


class SessionEnded(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Nothing more comes in this session: what was learnt of it is due now."""


class CutMade(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was made smaller in a context: which, how, and its tokens before and after."""

    index: int
    level: str
    before: int
    after: int
    key: str | None = None
    node: str | None = None


class ContextCut(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A context was made to fit its window. `state` is what the next fit of the session must be given."""

    window_tokens: int
    before: int
    after: int
    cuts: tuple[CutMade, ...]
    state: dict[str, Any]


class MemoryStated(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person or agent states something to be remembered as it stands."""

    text: Text


class MemoryCorrected(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person or agent corrects the memory `target` (any item's id); `text` holds from now on."""

    target: str
    text: Text


class FileEdited(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A human changed a file that Lamina renders: the lines taken out and put in, in order.

    `under` names for each line of `added` the heading above it, as it stands in the file; empty where not known.
    """

    path: str
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    under: tuple[str, ...] = ()


class PersonaEdited(FileEdited, frozen=True, kw_only=True, omit_defaults=True):
    """A human changed `persona.md`."""


class ScenarioEdited(FileEdited, frozen=True, kw_only=True, omit_defaults=True):
    """A human changed a file under `scenarios/`."""


class MemoryForgotten(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Erased on request: ids only, never the text and never the pattern that found them.

    `ids` are those of what was said and of all that was decided over it. `numbers` are the highest numbers of the
    decisions among them, by step: no later decision takes one of these again.
    """

    ids: tuple[str, ...]
    numbers: dict[str, int] = {}


class MemoryUndone(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person undoes the decision `target` (an event id): what it derived, and did to others, holds no more."""

    target: str


class MemoryRederived(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person puts what was derived anew, as `name`, in the place of what was derived before: the `decisions` that
    name this event as a cause. `settings` are those that differed, `tokens` what it took."""

    name: str
    decisions: int
    settings: dict[str, str] = {}
    tokens: int = 0


class RecallAsked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody asked the memory, where a home records that. Nothing is derived of it."""

    query: str
    limit: int
    layers: tuple[str, ...] = ()
    found: int = 0


class AtomsExtracted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an extractor kept of the events `inputs`; those of which nothing was kept have their outcome too.

    `windows` are the numbers of inputs of each window, in order. The id of the i-th atom is `atom_id(event id, i)`.
    `raw` is a model's answer as received, `prompt_sha256` that of what it was asked; `dropped` counts what code did
    not believe of it, by reason. `again`: made anew over events that had their outcome, which this one replaces.
    """

    step: str
    n: int
    inputs: tuple[str, ...]
    windows: tuple[int, ...]
    extractor: str
    version: str
    atoms: tuple[Atom, ...] = ()
    model: str = ""
    prompt_sha256: str = ""
    raw: str = ""
    tokens: int = 0
    duration_ms: int = 0
    dropped: dict[str, int] = {}
    again: bool = False


class AtomsReconciled(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What becomes of the atoms of the extractions `inputs`, beside those that were there.

    `rules` decide what is clear; `model`, where one was asked, the rest.
    """

    step: str
    n: int
    inputs: tuple[str, ...]
    rules: str
    operations: tuple[Operation, ...] = ()
    model: str = ""
    prompt_sha256: str = ""
    raw: str = ""
    tokens: int = 0
    duration_ms: int = 0
    dropped: dict[str, int] = {}


class ScenariosArranged(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the atoms that the events `inputs` made or changed go together with those that were there.

    `standings` are those of atoms that are new or stand otherwise than before, `episodes` the episodes that are new
    or changed, `gone` those whose atoms are in others now. Ids and numbers alone: the words are those of the atoms.
    """

    step: str
    n: int
    inputs: tuple[str, ...]
    rules: str
    standings: tuple[Standing, ...] = ()
    episodes: tuple[Episode, ...] = ()
    gone: tuple[str, ...] = ()
    operations: tuple[ScenarioOperation, ...] = ()
    model: str = ""
    prompt_sha256: str = ""
    raw: str = ""
    tokens: int = 0
    duration_ms: int = 0


class PersonaRevised(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What becomes of the lines of the persona after the events `inputs`.

    `shown` are the lines that fit, by section and line id in the order of the file; `over` counts the standing
    instructions that do not.
    """

    step: str
    n: int
    inputs: tuple[str, ...]
    rules: str
    operations: tuple[LineChange, ...] = ()
    shown: tuple[tuple[Section, str], ...] = ()
    over: int = 0
    model: str = ""
    prompt_sha256: str = ""
    raw: str = ""
    tokens: int = 0
    duration_ms: int = 0


class StepFailed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decision that could not be made: what failed, the how-manieth time, and when to try again.

    `dead`: it is not tried again; the inputs are parked with the reason, and the number counts as taken.
    """

    step: str
    n: int
    inputs: tuple[str, ...]
    attempt: int
    error: str
    not_before: str | None = None
    tokens: int = 0
    dead: bool = False


class DeadDropped(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person lets events that `service` could not take rest, and says why: they are parked no more."""

    service: str
    ids: tuple[str, ...]
    reason: str


class DeadRetried(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person has a decision made that was given up: the failure `target` of `step` over `inputs` is void."""

    service: str
    target: str
    step: str
    inputs: tuple[str, ...]


Data: TypeAlias = (
    TurnRecorded
    | ToolReturned
    | SessionEnded
    | ContextCut
    | MemoryStated
    | MemoryCorrected
    | PersonaEdited
    | ScenarioEdited
    | MemoryForgotten
    | MemoryUndone
    | MemoryRederived
    | RecallAsked
    | AtomsExtracted
    | AtomsReconciled
    | ScenariosArranged
    | PersonaRevised
    | StepFailed
    | DeadDropped
    | DeadRetried
)
TYPES: Mapping[str, type[Struct]] = {
    "turn.recorded": TurnRecorded,
    "tool.returned": ToolReturned,
    "session.ended": SessionEnded,
    "context.cut": ContextCut,
    "memory.stated": MemoryStated,
    "memory.corrected": MemoryCorrected,
    "persona.edited": PersonaEdited,
    "scenario.edited": ScenarioEdited,
    "memory.forgotten": MemoryForgotten,
    "memory.undone": MemoryUndone,
    "memory.rederived": MemoryRederived,
    "recall.asked": RecallAsked,
    "atoms.extracted": AtomsExtracted,
    "atoms.reconciled": AtomsReconciled,
    "scenarios.arranged": ScenariosArranged,
    "persona.revised": PersonaRevised,
    "step.failed": StepFailed,
    "dead.dropped": DeadDropped,
    "dead.retried": DeadRetried,
}
