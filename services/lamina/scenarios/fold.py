"""What the scenarios service keeps of each event: atoms as they were made, and how they were arranged. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from lamina.errors import Invalid
from lamina.events import (
    AtomsExtracted,
    AtomsReconciled,
    Blob,
    DeadRetried,
    Event,
    MemoryCorrected,
    MemoryForgotten,
    MemoryStated,
    MemoryUndone,
    ScenarioEdited,
    ScenariosArranged,
    SessionEnded,
    StepFailed,
    Text,
    ToolReturned,
    TurnRecorded,
)
from lamina.ids import atom_id, untoken
from lamina.knowledge import MAX_ATOM_CHARS, Atom, Span, Standing
from lamina.runtime import Change, Drop, Put, Recorded, Rows
from lamina.scenarios import edits as by_hand
from lamina.scenarios import grouping, skill
from lamina.scenarios.decide import ARRANGE, LATE_US, State
from lamina.scenarios.tables import (
    ARRANGED,
    FORGOTTEN,
    LEFT_OUT,
    OUT,
    TABLES,
    AtomRow,
    DecisionRow,
    EpisodeRow,
    TurnRow,
    got,
    json,
    put,
    strings,
)
from lamina.scenarios.work import FOLDER, PART, Work
from lamina.times import micros

__all__ = ["TABLES", "VERSION", "State", "fold"]

VERSION = 5
CORRECTION_PRIORITY = 90


def fold(state: State, recorded: Recorded, rows: Rows) -> tuple[State, Sequence[Change]]:
    """Rows and files for what was decided, corrected, edited or taken back; a few fields of what was said."""
    event, data = recorded.event, recorded.data
    change = _CHANGES.get(type(data))
    if event is None or change is None:
        return state, ()
    work = Work(state, rows, recorded.seq)
    change(work, event, recorded, data)
    return work.state, work.changes()


def _said(work: Work, event: Event, recorded: Recorded, data: object) -> None:
    if got(work.rows, TurnRow, event.id) is None:
        work.others.append(put(_turn(event, recorded)))
    if work.rows.get("ended", (event.session,)) is not None:
        work.others.append(Drop("ended", (event.session,)))


def _turn(event: Event, recorded: Recorded) -> TurnRow:
    return TurnRow(event.id, event.session, event.project, event.time, _when_us(event, recorded))


def _when_us(event: Event, recorded: Recorded) -> int:
    try:
        return micros(event.when)
    except Invalid:
        return recorded.at_us


def _ended(work: Work, event: Event, recorded: Recorded, data: SessionEnded) -> None:
    work.others.append(Put("ended", (event.session,)))
    if work.state.pending:
        work.state = replace(work.state, urgent=True)


def _extracted(work: Work, event: Event, recorded: Recorded, data: AtomsExtracted) -> None:
    made = []
    for index, atom in enumerate(data.atoms):
        spans = [turn for span in atom.sources if (turn := got(work.rows, TurnRow, span.id)) is not None]
        id = atom_id(event.id, index)
        if spans and atom.text.strip() and work.atom(id) is None:
            work.add_atom(_atom(id, event.id, atom, spans))
            made.append(id)
    if made:
        work.pending(event.id, event.type, recorded.at_us, urgent=_cannot_wait(work, made, recorded))


def _atom(id: str, decision: str, atom: Atom, said: Sequence[TurnRow]) -> AtomRow:
    newest = max(said, key=lambda turn: (turn.time_us, turn.id))
    return AtomRow(
        id=id,
        n=0,
        decision=decision,
        type=atom.type,
        text=atom.text[:MAX_ATOM_CHARS],
        subject=atom.subject,
        priority=atom.priority,
        session=newest.session,
        project=newest.project,
        time=newest.time,
        time_us=newest.time_us,
        sources=json(list(dict.fromkeys(turn.id for turn in said))),
    )


def _cannot_wait(work: Work, atoms: Iterable[str], recorded: Recorded) -> bool:
    """Is one of them of a session that ended, or of a time that is long ago as it comes?"""
    found = [atom for id in atoms if (atom := work.atom(id)) is not None]
    late = any(recorded.at_us - atom.time_us > LATE_US for atom in found)
    sessions = {atom.session for atom in found}
    return late or any(work.rows.get("ended", (session,)) is not None for session in sessions)


def _reconciled(work: Work, event: Event, recorded: Recorded, data: AtomsReconciled) -> None:
    touched = [id for one in data.operations for id in (one.atom, one.target) if id]
    if touched:
        work.pending(event.id, event.type, recorded.at_us, urgent=_cannot_wait(work, touched, recorded))


def _corrected(work: Work, event: Event, recorded: Recorded, data: MemoryCorrected) -> None:
    text = _text(data.text, recorded)
    id = atom_id(event.id, 0)
    if work.atom(id) is not None or not text.strip():
        return
    like = next(filter(None, map(work.atom, (data.target, *work.made(data.target)))), None)
    atom = Atom(
        type=like.type if like is not None else "persona",  # type: ignore[arg-type]  # written by `_atom`
        text=text[:MAX_ATOM_CHARS],
        sources=(Span(event.id, 0, 0),),
        subject=like.subject if like is not None else "",
        priority=CORRECTION_PRIORITY,
    )
    turn = _turn(event, recorded)
    if like is not None:  # it belongs where what it corrects does
        turn = replace(turn, session=like.session, project=like.project, time_us=like.time_us)
    work.others.append(put(turn))
    work.add_atom(_atom(id, event.id, atom, [turn]))
    work.pending(event.id, event.type, recorded.at_us, urgent=True)


def _text(text: Text, recorded: Recorded) -> str:
    if isinstance(text, Blob):
        return recorded.blobs.get(text.sha256, b"").decode("utf-8", "replace")
    return text


def _undone(work: Work, event: Event, recorded: Recorded, data: MemoryUndone) -> None:
    work.pending(event.id, event.type, recorded.at_us, urgent=True)


def _forgotten(work: Work, event: Event, recorded: Recorded, data: MemoryForgotten) -> None:
    """Atoms of these ids are gone, those that these decisions made, and those that have no source left."""
    ids = frozenset(data.ids)
    episodes: dict[str, None] = {}
    for id in data.ids:
        if work.rows.get("turns", (id,)) is not None:
            work.others.append(Drop("turns", (id,)))
        for one in (id, atom_id(id, 0), *work.made(id)):
            atom = work.atom(one)
            if atom is None:
                continue
            left = [source for source in strings(atom.sources) if source not in ids]
            if atom.id in ids or atom.decision in ids or not left:
                work.drop_atom(atom)
                episodes |= {atom.episode: None} if atom.episode else {}
            else:
                work.put_atom(replace(atom, sources=json(left)))
        note = work.rows.get("edited", (id,))
        scenario = work.scenario(note[1]) if note is not None else None
        if scenario is not None:
            kept = by_hand.forgotten(by_hand.read(scenario.edits), ids)
            work.put_scenario(replace(scenario, edits=json(kept)))
            work.rewritten.add(scenario.id)
            work.others.append(Drop("edited", (id,)))
    work.pending(event.id, FORGOTTEN, recorded.at_us, urgent=True, episodes=episodes)


def _arranged(work: Work, event: Event, recorded: Recorded, data: ScenariosArranged) -> None:
    """Atoms stand as the decision saw them, episodes and scenarios are what it says; what was forgotten since is
    passed over."""
    for standing in data.standings:
        _stands(work, standing)
    for id in data.gone:
        work.drop_episode(id)
    for episode in data.episodes:
        atoms = [found for id in episode.atoms if (found := work.atom(id)) is not None]
        if not atoms:
            continue
        row = grouping.episode(episode.id, atoms)
        work.put_episode(replace(row, parent=episode.parent, score=episode.score, scenario=episode.scenario))
        for each in atoms:
            work.put_atom(replace(each, episode=episode.id, state=ARRANGED))
    for operation in data.operations:
        _moved(work, operation.scenario, operation.episodes)
        if operation.verb == "merge":
            _merged(work, operation.target, operation.scenario)
    work.seen(data.inputs, recorded.at_us)
    work.others.append(
        put(
            DecisionRow(
                id=event.id,
                seq=recorded.seq,
                kind="arrange",
                at_us=recorded.at_us,
                inputs=len(data.inputs),
                by=data.rules,
                model=data.model,
                tokens=max(0, data.tokens),
                operations=json(data.operations),
            )
        )
    )


def _stands(work: Work, standing: Standing) -> None:
    atom = work.atom(standing.atom)
    if atom is None:
        return
    out = standing.status in OUT
    work.touch(atom)
    work.put_atom(
        replace(
            atom,
            status=standing.status,
            by=standing.by,
            until=standing.until,
            count=standing.count,
            state=LEFT_OUT if out else ARRANGED,
            episode="" if out else atom.episode,
        )
    )


def _moved(work: Work, scenario: str, episodes: Iterable[str]) -> None:
    for id in episodes:
        row: EpisodeRow | None = work.episode(id)
        if row is not None and row.scenario != scenario:
            work.put_episode(replace(row, scenario=scenario))


def _merged(work: Work, gone: str, into: str) -> None:
    """What a person said of a scenario is kept by the one that took it over."""
    old, new = work.scenario(gone), work.scenario(into)
    if old is not None and new is not None and not strings(old.episodes):
        kept = by_hand.united(by_hand.read(new.edits), by_hand.read(old.edits))
        work.put_scenario(replace(new, edits=json(kept)))
        work.rewritten.add(into)
        work.put_scenario(replace(old, merged=into))


def _failed(work: Work, event: Event, recorded: Recorded, data: StepFailed) -> None:
    """An attempt is noted with its cost; after the last one its inputs wait no more."""
    if data.step != ARRANGE:
        return
    if data.dead:
        work.seen(data.inputs, recorded.at_us)
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


def _retried(work: Work, event: Event, recorded: Recorded, data: DeadRetried) -> None:
    if data.service == "scenarios" and data.step == ARRANGE:
        for id in data.inputs:
            work.pending(id, "retried", recorded.at_us, urgent=True)


def _edited(work: Work, event: Event, recorded: Recorded, data: ScenarioEdited) -> None:
    """What a person wrote into the file of a scenario or its skill holds from now on; of a file that there is not,
    nothing is kept."""
    name = data.path.removeprefix(f"{FOLDER}/").removesuffix(".md")
    of_skill = skill.slug_of(data.path)
    try:
        if of_skill is not None:
            scenario = work.by_slug(untoken(of_skill))
        else:
            scenario = work.by_slug(untoken(name.split(PART)[0])) if data.path == f"{FOLDER}/{name}.md" else None
    except Invalid:
        return
    if scenario is not None:
        kept = by_hand.edited(by_hand.read(scenario.edits), event.id, data, skill=of_skill is not None)
        work.put_scenario(replace(scenario, edits=json(kept)))
        work.rewritten.add(scenario.id)
        work.others.append(Put("edited", (event.id, scenario.id)))


_CHANGES: dict[Any, Callable[[Work, Event, Recorded, Any], None]] = {
    TurnRecorded: _said,
    ToolReturned: _said,
    MemoryStated: _said,
    SessionEnded: _ended,
    AtomsExtracted: _extracted,
    AtomsReconciled: _reconciled,
    ScenariosArranged: _arranged,
    StepFailed: _failed,
    DeadRetried: _retried,
    MemoryCorrected: _corrected,
    MemoryUndone: _undone,
    MemoryForgotten: _forgotten,
    ScenarioEdited: _edited,
}
