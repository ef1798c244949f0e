"""What becomes of turns and atoms by decisions, corrections and what is taken back. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from lamina.atoms.graph import SUPERSEDE
from lamina.atoms.tables import (
    EXTRACTED,
    PARKED,
    WAITING,
    AtomRow,
    DecisionRow,
    TurnRow,
    got,
    json,
    put,
    strings,
)
from lamina.atoms.work import Work
from lamina.events import (
    AtomsExtracted,
    AtomsReconciled,
    DeadRetried,
    Event,
    MemoryForgotten,
    MemoryUndone,
    StepFailed,
)
from lamina.ids import atom_id
from lamina.knowledge import MAX_ATOM_CHARS, Atom, Span
from lamina.runtime import Drop, Put, Recorded
from lamina.text import terms

EXTRACT, RECONCILE = "atoms.extract", "atoms.reconcile"
CORRECTION_PRIORITY = 90
_EMPTY = frozenset({"a", "an", "the", "also", "just", "so", "that", "then", "very"})
"""Words that a statement may have or not and says the same; negations and prepositions are none of them."""


def extracted(work: Work, event: Event, recorded: Recorded, data: AtomsExtracted) -> None:
    """Every input has its outcome; every atom that has a source left is new. Made anew, they take the place of what
    was made of their sources before."""
    turns = [
        turn for id in data.inputs if (turn := work.turn(id)) is not None and (turn.outcome == WAITING or data.again)
    ]
    for turn in turns:
        for id in strings(turn.atoms) if turn.outcome == EXTRACTED else ():
            work.graph.remove(id, event.id)
        work.decided(turn, EXTRACTED, event.id)
    sources = {turn.id: turn for turn in turns}
    made = []
    for index, atom in enumerate(data.atoms):
        id = atom_id(event.id, index)
        spans = tuple(span for span in atom.sources if span.id in sources)
        if spans and atom.text.strip():
            _add(work, event, recorded, id, replace(atom, sources=spans), [sources[span.id] for span in spans])
            made.append(id)
    _note(work, event, recorded, "extract", data, by=data.extractor, version=data.version, atoms=made)
    if made:
        work.others.append(Put("unreconciled", (event.id, recorded.seq)))
        work.state = replace(work.state, unreconciled=work.state.unreconciled + 1)


def reconciled(work: Work, event: Event, recorded: Recorded, data: AtomsReconciled) -> None:
    """Ties between atoms. A correction of a turn holds for whatever was made of it later, too."""
    _no_longer_unreconciled(work, data.inputs)
    for one in data.operations:
        work.graph.tie(one.verb, one.atom, one.target, event.id, one.reason)
    touched = dict.fromkeys(id for one in data.operations for id in (one.atom, one.target) if id)
    _note(work, event, recorded, "reconcile", data, by=data.rules, atoms=list(touched))


def failed(work: Work, event: Event, recorded: Recorded, data: StepFailed) -> None:
    """An attempt is noted with its cost; the last one parks its inputs, with the reason."""
    if data.step not in (EXTRACT, RECONCILE):
        return
    work.others.append(
        put(
            DecisionRow(
                id=event.id,
                seq=recorded.seq,
                kind="dead" if data.dead else "failed",
                at_us=recorded.at_us,
                inputs=len(data.inputs),
                by=data.step,
                tokens=max(0, data.tokens),
                error=data.error,
            )
        )
    )
    if data.dead and data.step == RECONCILE:
        _no_longer_unreconciled(work, data.inputs)
    for turn in map(work.turn, data.inputs if data.dead and data.step == EXTRACT else ()):
        if turn is not None and turn.outcome == WAITING:
            work.decided(turn, PARKED, event.id)


def retried(work: Work, event: Event, recorded: Recorded, data: DeadRetried) -> None:
    """What was given up is due again: turns that are parked wait, extractions are to be reconciled."""
    if data.step == EXTRACT:
        found = (work.turn(id) for id in dict.fromkeys(data.inputs))
        parked = [
            turn for turn in found if turn is not None and turn.outcome == PARKED and turn.decision == data.target
        ]
        work.waits_again(parked, recorded.at_us)
    elif data.step == RECONCILE:
        for id in dict.fromkeys(data.inputs):
            made = got(work.rows, DecisionRow, id)
            if (
                made is None
                or made.kind != "extract"
                or made.undone
                or work.rows.get("unreconciled", (id,)) is not None
            ):
                continue
            work.others.append(Put("unreconciled", (id, made.seq)))
            work.state = replace(work.state, unreconciled=work.state.unreconciled + 1)


def corrected(work: Work, event: Event, recorded: Recorded, target: str, text: str, time_us: int) -> None:
    """A new atom in place of the target: an atom, or whatever was and will be made of a turn."""
    id = atom_id(event.id, 0)
    if work.graph.get(id) is not None or not text.strip():
        return
    old = work.graph.get(target)
    turn = work.turn(target) if old is None else None
    targets = [target] if old is not None else list(strings(turn.atoms)) if turn is not None else []
    like = old or next(filter(None, map(work.graph.get, targets)), None)
    atom = Atom(
        type=like.type if like is not None else "persona",  # type: ignore[arg-type]  # written by `_add`
        text=text[:MAX_ATOM_CHARS],
        sources=(Span(event.id, 0, min(len(text), MAX_ATOM_CHARS)),),
        subject=like.subject if like is not None else "",
        slot=like.slot if like is not None else "",
        value=text[:MAX_ATOM_CHARS].strip().casefold() if like is not None and like.slot else "",
        priority=max(CORRECTION_PRIORITY, like.priority if like is not None else 0),
        scope=like.scope if like is not None else "",  # type: ignore[arg-type]  # the same
    )
    said = TurnRow(
        id=event.id,
        seq=recorded.seq,
        session=event.session,
        kind="corrected",
        role="user",
        name="",
        agent=event.agent,
        project=event.project,
        time=event.time,
        time_us=time_us,
        window=0,
        outcome=EXTRACTED,
        decision=event.id,
        atoms=json([id]),
        corrected="",
        text="",
    )
    _add(work, event, recorded, id, atom, [said], known=False)
    for one in targets:
        work.graph.tie(SUPERSEDE, id, one, event.id, "corrected")
    if turn is not None:
        work.put(replace(turn, corrected=id))
    row = DecisionRow(
        id=event.id,
        seq=recorded.seq,
        kind="correct",
        at_us=recorded.at_us,
        inputs=1,
        by="user",
        atoms=json([id]),
    )
    work.others.append(put(row))


def undone(work: Work, event: Event, recorded: Recorded, data: MemoryUndone) -> None:
    """A decision holds no more: its atoms are taken out, its ties with them, and what they did to others."""
    decision = got(work.rows, DecisionRow, data.target)
    if decision is None or decision.undone or decision.kind not in ("extract", "reconcile", "correct"):
        return
    ids = strings(decision.atoms)
    if decision.kind == "reconcile":
        work.graph.untie(decision.id, ids)
    else:
        _no_longer_unreconciled(work, (decision.id,))
        for id in ids:
            work.graph.remove(id, event.id)
    work.others.append(put(replace(decision, undone=event.id)))


def forgotten(work: Work, event: Event, recorded: Recorded, data: MemoryForgotten) -> None:
    """Turns and atoms of these ids are gone, and every atom that has no source left."""
    for id in data.ids:
        turn = work.turn(id)
        if turn is not None:
            work.drop(turn)
        own = strings(turn.atoms) if turn is not None else (id, atom_id(id, 0))
        for one in own:
            _lose(work, one, id, event.id)


def _lose(work: Work, atom: str, source: str, by: str) -> None:
    row = work.graph.get(atom)
    if row is None:
        return
    left = [span for span in _spans(row.sources) if span.id != source]
    if atom == source or not left:
        work.graph.remove(atom, by, erase=True)
    else:
        work.graph.put(replace(row, sources=json(left)))


def _add(
    work: Work,
    event: Event,
    recorded: Recorded,
    id: str,
    atom: Atom,
    said: Sequence[TurnRow],
    *,
    known: bool = True,
) -> None:
    """The row of a new atom, its words in the index, and its id with each of its turns."""
    newest = max(said, key=lambda turn: (turn.time_us, turn.seq))
    work.state = replace(work.state, atoms=work.state.atoms + 1)
    text = atom.text[:MAX_ATOM_CHARS]
    words = terms(text)
    row = AtomRow(
        id=id,
        n=work.state.atoms,
        seq=recorded.seq,
        decision=event.id,
        type=atom.type,
        text=text,
        subject=atom.subject,
        slot=atom.slot,
        value=atom.value,
        entities=json(atom.entities),
        priority=atom.priority,
        scope=atom.scope,
        polarity=atom.polarity,
        valid_from=atom.valid_from,
        valid_to=atom.valid_to,
        language=atom.language,
        quarantine=atom.quarantine,
        sources=json(atom.sources),
        said_by=newest.name if newest.kind == "turn" and newest.name else newest.role,
        session=newest.session,
        agent=newest.agent,
        project=newest.project,
        time=newest.time,
        time_us=newest.time_us,
        known_us=recorded.at_us,
        same=same_key(atom, words),
    )
    work.graph.put(row)
    work.others.append(Put("atoms_fts", (row.n, " ".join(words))))
    for turn in {turn.id: turn for turn in said}.values() if known else ():
        now = work.turn(turn.id) or turn
        work.put(replace(now, atoms=json((*strings(now.atoms), id))))
        if now.corrected:
            work.graph.tie(SUPERSEDE, now.corrected, id, event.id, "corrected")


def same_key(atom: Atom, words: Sequence[str]) -> str:
    """What two atoms have in common that say the same: type, subject, and the words that matter, in their order."""
    telling = [word for word in words if word not in _EMPTY]
    raw = "\x1f".join((atom.type, atom.scope, atom.subject.casefold(), str(atom.polarity), *telling))
    return hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _note(
    work: Work,
    event: Event,
    recorded: Recorded,
    kind: str,
    data: AtomsExtracted | AtomsReconciled,
    *,
    by: str,
    version: str = "",
    atoms: Sequence[str],
) -> None:
    row = DecisionRow(
        id=event.id,
        seq=recorded.seq,
        kind=kind,
        at_us=recorded.at_us,
        inputs=len(data.inputs),
        by=by,
        version=version,
        model=data.model,
        tokens=max(0, data.tokens),
        duration_ms=max(0, data.duration_ms),
        atoms=json(atoms),
    )
    work.others.append(put(row))


def _no_longer_unreconciled(work: Work, decisions: Sequence[str]) -> None:
    for id in dict.fromkeys(decisions):
        if work.rows.get("unreconciled", (id,)) is not None:
            work.others.append(Drop("unreconciled", (id,)))
            work.state = replace(work.state, unreconciled=work.state.unreconciled - 1)


def _spans(text: str) -> tuple[Span, ...]:
    return msgspec.json.decode(text, type=tuple[Span, ...])
