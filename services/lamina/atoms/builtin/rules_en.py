"""English: what a clause is about, by its subject, verb, tense and mood."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from lamina.atoms.builtin import patterns_en as p
from lamina.atoms.builtin.judgement import Judgement, Speaker, favourite, instruction, slotted

_SLOTS = (
    (p.NAME, "user.name"),
    (p.HOME, "user.home"),
    (p.BIRTHDAY, "user.birthday"),
    (p.JOB, "user.job"),
    (p.ALLERGY, "user.allergy"),
)
_EMPLOYMENT = ((p.EMPLOYER, "user.employer"),)


def clauses(sentence: str) -> Iterator[tuple[int, int]]:
    """Where the clauses of `sentence` stand that may each say something of its own."""
    at = 0
    for cut in p.CLAUSE.finditer(sentence):
        if cut.start() - at >= 8:
            yield at, cut.start()
            at = cut.end()
    yield at, len(sentence)


def statement_end(sentence: str) -> int:
    """Where what is stated ends in a sentence that ends in a question; 0 where it is a question alone."""
    found = p.TAIL_QUESTION.search(sentence)
    return found.start() if found and found.start() >= 8 else 0


def judge(sentence: str, speaker: Speaker, project: str) -> Judgement | None:
    """What is worth keeping of an English clause."""
    if p.HEDGE.search(sentence) or p.QUESTION.search(sentence) or p.EMPTY.search(sentence):
        return None
    past = p.PAST.search(sentence) is not None and not p.AHEAD.search(sentence)
    if speaker == "assistant":
        return _work(sentence, past, theirs=True)
    rule = _instruction(sentence, project) if speaker == "user" else None
    if rule is not None:
        return rule
    if p.COMMAND.match(sentence):
        return None
    if project:
        found = _work(sentence, past, theirs=False)
        if found is not None:
            return found
    return _person(sentence, past)


def _instruction(sentence: str, project: str) -> Judgement | None:
    standing = p.STANDING.search(sentence)
    imperative = p.IMPERATIVE.match(sentence) or p.IMPERATIVE_WITHIN.search(sentence)
    if p.REMARK.match(sentence):
        return None
    plain = p.PLAIN_RULE.search(sentence)
    if not plain and not p.BARE_RULE.search(sentence) and not (standing and imperative):
        return None
    if re.match(r"^(?:i|i'm|my|he|she|they|you)\s", sentence, re.IGNORECASE) and not re.match(
        r"^(?:i (?:want|need|'d like)|you (?:must|should|have))", sentence, p.F
    ):
        return None
    return instruction(
        scene=p.WHEN.search(sentence) is not None,
        project=bool(project) and bool(p.PROJECT.search(sentence) or not p.ITSELF.search(sentence)),
        never=p.LEAD_NEVER.search(sentence) is not None,
    )


def _person(sentence: str, past: bool) -> Judgement | None:
    dated = p.DATED.search(sentence) is not None
    filled = slotted(sentence, _SLOTS, dated=dated, past=past)
    if filled is None and p.AT.search(sentence):
        filled = slotted(sentence, _EMPLOYMENT, dated=dated, past=past)
    if filled is not None:
        return replace(filled, value=filled.value.strip().casefold())
    if (best := p.FAVOURITE_IS.search(sentence)) is not None:
        return favourite(best)
    found = p.FAVOURITE.search(sentence) or p.PREFERENCE.search(sentence)
    if found:
        value = "no" if p.DISLIKED.search(sentence) else "yes"
        return Judgement(type="persona", priority=60, slot=f"preference:{found.group(1).casefold()}", value=value)
    if dated and p.EPISODIC.search(sentence):
        return Judgement(type="episodic", priority=60, past=past)
    if p.PERSONA.search(sentence):
        return Judgement(type="persona", priority=55, past=past)
    if p.EPISODIC.search(sentence) and len(sentence) > 20:
        return Judgement(type="episodic", priority=45, past=past)
    if dated and p.SOMEONE.search(sentence) and len(sentence) > 16:
        return Judgement(type="episodic", priority=40, past=past)
    told = p.TOLD.search(sentence)
    if told and len(sentence) > 24:
        return Judgement(type="episodic" if past else "persona", priority=35, past=past)
    return None


def _work(sentence: str, past: bool, *, theirs: bool) -> Judgement | None:
    if p.MADE.search(sentence) or p.HELD.search(sentence) or (not theirs and p.PLACE.search(sentence)):
        return Judgement(type="work_artifact", priority=55, past=past)
    if p.WORKS.search(sentence):
        return Judgement(type="work_method", priority=60, past=past)
    if p.DECIDED.search(sentence) or p.CAUSE.search(sentence):
        return Judgement(type="work_fact", priority=65, past=True)
    if theirs:
        return None
    if p.TASK.search(sentence):
        return Judgement(type="work_task", priority=60)
    if (
        p.STACK.search(sentence)
        or p.OWNER.search(sentence)
        or (p.TECHNICAL.search(sentence) and p.DECLARES.search(sentence))
    ):
        return Judgement(type="work_fact", priority=55, past=past)
    return None
