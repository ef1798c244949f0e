"""What becomes of new atoms beside the known ones, decided by a model that may only name candidates."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct, field

from lamina.atoms.model import prompt, schema
from lamina.atoms.model.extractor import MAX_ANSWER_TOKENS, MAX_RAW_CHARS
from lamina.atoms.model.reading import read
from lamina.atoms.model.schema import Move
from lamina.knowledge import Atom, Operation, Verb
from lamina.llm import Ask, Model
from lamina.tokens import count

MAX_REASON_CHARS = 200
_VERBS: tuple[Verb, ...] = ("add", "supersede", "reinforce", "contradict", "none")
_WITH_TARGET = ("supersede", "reinforce", "contradict")


class Candidate(Struct, frozen=True, kw_only=True):
    """An atom with its id, and when it was said (RFC 3339)."""

    id: str
    atom: Atom
    time: str = ""


class Reconciliation(Struct, frozen=True, kw_only=True):
    """One operation for each new atom, in their order. `dropped` counts answers that were not followed."""

    operations: tuple[Operation, ...] = ()
    model: str = ""
    prompt_sha256: str = ""
    raw: str = ""
    tokens: int = 0
    duration_ms: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)


async def reconcile(fresh: Sequence[Candidate], known: Sequence[Candidate], model: Model) -> Reconciliation:
    """What becomes of `fresh`. An atom on which the model says nothing that holds is added: nothing is lost.

    Raises a `ModelError`, as `extract` does; an answer that breaks off is not taken. Without known atoms all are
    added and nothing is asked. Atoms in quarantine change nothing: they are added, and never shown to the model.
    """
    sound = [one for one in fresh if not one.atom.quarantine]
    targets = [one for one in known if not one.atom.quarantine]
    if not sound or not targets:
        return Reconciliation(operations=tuple(Operation(verb="add", atom=one.id) for one in fresh))
    begun = time.monotonic_ns()
    asked = _prompt(sound, targets)
    ask = Ask(
        system=asked.system,
        user=asked.user,
        name="operations",
        schema=schema.OPERATIONS,
        max_tokens=MAX_ANSWER_TOKENS,
    )
    answer = await model.ask(ask)
    found = read(answer, "operations", whole=True)
    operations, dropped = _operations(fresh, sound, targets, found.items)
    dropped["malformed"] += found.doubtful
    return Reconciliation(
        operations=operations,
        model=answer.model,
        prompt_sha256=asked.sha256,
        raw=answer.text[:MAX_RAW_CHARS],
        tokens=answer.tokens,
        duration_ms=(time.monotonic_ns() - begun) // 1_000_000,
        dropped={reason: number for reason, number in sorted(dropped.items()) if number},
    )


def reconciling_needs(fresh: Sequence[Candidate], known: Sequence[Candidate]) -> int:
    """The tokens that reconciling these may cost: what is asked, and the longest answer."""
    asked = _prompt(fresh, known)
    return count(asked.system) + count(asked.user) + MAX_ANSWER_TOKENS


def _prompt(fresh: Sequence[Candidate], known: Sequence[Candidate]) -> prompt.Prompt:
    return prompt.reconciliation(
        [_line(f"n{n}", one) for n, one in enumerate(fresh, 1)],
        [_line(f"k{n}", one) for n, one in enumerate(known, 1)],
    )


def _operations(
    fresh: Sequence[Candidate],
    sound: Sequence[Candidate],
    targets: Sequence[Candidate],
    raw: Sequence[Mapping[str, object]],
) -> tuple[tuple[Operation, ...], Counter[str]]:
    atoms = {f"n{n}": one for n, one in enumerate(sound, 1)} | {one.id: one for one in sound}
    known = {f"k{n}": one for n, one in enumerate(targets, 1)} | {one.id: one for one in targets}
    dropped: Counter[str] = Counter()
    decided: dict[str, Operation] = {}
    replaced: set[str] = set()
    for one in raw:
        try:
            move = msgspec.convert(one, Move, strict=False)
        except msgspec.ValidationError:
            dropped["malformed"] += 1
            continue
        atom, target = atoms.get(move.atom), known.get(move.target)
        reason = _unfit(move, atom, target, decided, replaced)
        if reason or atom is None:
            dropped[reason] += 1
            continue
        operation = _operation(move, atom, target)
        decided[atom.id] = operation
        if operation.verb == "supersede":
            replaced.add(operation.target)
    unsaid = [one.id for one in sound if one.id not in decided]
    dropped["not_decided"] += len(unsaid)
    every = tuple(decided.get(one.id, Operation(verb="add", atom=one.id)) for one in fresh)
    return every, dropped


def _unfit(
    move: Move, atom: Candidate | None, target: Candidate | None, decided: Mapping[str, Operation], replaced: set[str]
) -> str:
    """Why an operation is not followed; empty where it is."""
    if atom is None:
        return "unknown_atom"
    if atom.id in decided:
        return "decided_twice"
    if move.verb not in _VERBS:
        return "verb"
    if move.verb == "none":
        return "" if move.reason.strip() else "no_reason"
    if move.verb == "add":
        return ""
    if target is None or target.id == atom.id:
        return "unknown_target"
    if move.verb == "contradict":
        return ""
    if target.atom.type != atom.atom.type or target.atom.scope != atom.atom.scope:
        return "other_kind"  # an instruction for one scene replaces no global one, an event no trait
    return "replaced_twice" if move.verb == "supersede" and target.id in replaced else ""


def _operation(move: Move, atom: Candidate, target: Candidate | None) -> Operation:
    reason = " ".join(move.reason.encode("utf-8", "replace").decode().split())[:MAX_REASON_CHARS]
    verb = next(verb for verb in _VERBS if verb == move.verb)
    with_target = verb in _WITH_TARGET and target is not None
    return Operation(verb=verb, atom=atom.id, target=target.id if with_target and target else "", reason=reason)


def _line(ref: str, one: Candidate) -> str:
    atom = one.atom
    text, _ = prompt.shown(atom.text, 1_000)
    said = {"slot": atom.slot, "value": atom.value, "valid_from": atom.valid_from, "valid_to": atom.valid_to}
    return prompt.json_line(ref=ref, type=atom.type, text=text, said=one.time, **{k: v for k, v in said.items() if v})
