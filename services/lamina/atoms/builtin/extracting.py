"""From turns to atoms: who speaks, what is no statement, what the rules of the language say, and when it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import pairwise

from msgspec.structs import replace

from lamina.atoms.builtin import rules_en, rules_ja, rules_ko, rules_zh, slots
from lamina.atoms.builtin.hygiene import INSTRUCTS, is_suspicious
from lamina.atoms.builtin.judgement import Judgement, Speaker
from lamina.atoms.builtin.manner import manner
from lamina.atoms.builtin.sentences import Sentence, sentences
from lamina.atoms.turns import Turn
from lamina.knowledge import MAX_ATOM_CHARS, Atom, Span
from lamina.text import when
from lamina.text.language import Language, language
from lamina.times import parse

MAX_TURN_CHARS = 20_000
"""Of a longer turn its beginning is read: what is said of oneself is not said behind a pasted document."""
MAX_ATOMS_A_TURN = 12
_MIN_CHARS = 4
_RULES: Mapping[Language, Callable[[str, Speaker, str], Judgement | None]] = {
    "en": rules_en.judge,
    "ko": rules_ko.judge,
    "zh": rules_zh.judge,
    "ja": rules_ja.judge,
}
_ASKS: Mapping[Language, Callable[[str], bool]] = {"ko": rules_ko.asks, "zh": rules_zh.asks, "ja": rules_ja.asks}
# A clause at the end that only may be so is cut off, as a question is; what was said before it stays.
_MAYBE: Mapping[Language, re.Pattern[str]] = {
    "ko": re.compile(r"수도 있|[는은을] 것 같|듯|고민 ?중|텐데|싶기도|[일할을]지도|면 좋겠"),
    "zh": re.compile(r"也许|也許|或许|或許|可能|说不定|說不定|估计|估計|好像|似乎|不确定|不確定"),
    "ja": re.compile(r"かもしれ|気がする|らしい|と思ったり|だろうな|ようかな"),
}
_COMMA = re.compile(r"[,，、]\s?")
_MIN_PART = 6
_BREAK: Mapping[Language, re.Pattern[str]] = {
    "ko": re.compile(r"[,，、]|(?:지만|는데|은데|인데|[가-힣]고)(?= )"),
    "zh": re.compile(r"[,，、]"),
    "ja": re.compile(r"[,，、]"),
}
_QUESTION = re.compile(r"[?？][\"'”’」』）)~!！\s]{0,8}$")
# What ties a statement to the one before it, and says nothing without that.
_LEAD: Mapping[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"(?:(?:yes|yeah|yep|ok|okay|sure|right|oh|well|also|and|plus|by the way|anyway), )+", re.IGNORECASE
    ),
    "ko": re.compile(r"(?:(?:그리고|참|아|네|예|또|그런데|근데|아무튼),? )+"),
    "zh": re.compile(r"(?:(?:还有|另外|对了|好的|嗯|哦|啊|对|是的|那)[，,] ?)+"),
    "ja": re.compile(r"(?:(?:それと|それから|あと|はい|ええ|うん|ちなみに|そして|また)、)+"),
}
# What is only meant to be done, might be, or did not work, is no way that worked.
_UNDONE: Mapping[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"\b(?:let's|let us|let me|(?:i|we|you|it|this|that|they|which)(?:'ll| will| need to| should| could| would|'d)|will|"
        r"going to|need(?:s|ed)? to|trying to|tried to|try to|try running|attempt\w*|assum\w+|seems?|appears?|suggests?|"
        r"fail\w*|unable|trouble|cannot|never|if)\b|n't\b|\bnot\b",
        re.IGNORECASE,
    ),
    "ko": re.compile(r"겠|할게|해 ?볼|보자|하자|예정|려고|실패|안 (?:되|돼|됐|됨)|않|못|만약|려면 먼저"),
    "zh": re.compile(
        r"让我|我[将会要]|我们[将会要]|接下来|准备|打算|失败|没有?(?:成功|用|效)|不(?:行|能|起作用|工作|对)|如果|试试|尝试"
    ),
    "ja": re.compile(r"ましょう|してみ|つもり|予定|失敗|できませ|できない|動かな|動きませ|ダメ|もし|試し"),
}
# What an agent says it will do next, or takes for possible, is no result.
_UNSURE: Mapping[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"\b(?:let's|let us|let me|(?:i|we)(?:'ll| will| need to| should)|going to|not sure|could be|might|may be|perhaps|possibly|"
        r"it (?:seems|appears|looks like)|to (?:see|check|verify|confirm) (?:if|whether|that)|still (?:can't|cannot|face))\b"
        r"|^(?:since|now that|once|if)\b",
        re.IGNORECASE,
    ),
    "ko": re.compile(r"겠습니다|할게요|해 ?보겠|보입니다|같습니다|것 같|일 수 있|아마|모르겠"),
    "zh": re.compile(r"让我|接下来我|我将|我们将|似乎|可能是|也许|看起来|不确定"),
    "ja": re.compile(r"ましょう|してみます|ようです|かもしれ|と思われ|おそらく|はずです"),
}
# What holds beyond the task that a long prompt sets.
_LASTING = re.compile(
    r"\b(?:from (?:now|here) on|going forward|in (?:the )?future|(?:for|in) all (?:of )?(?:my|our|future)|future (?:prompts|answers|chats"
    r"|conversations|sessions)|every time (?:i|we)|whenever (?:i|we)|remember (?:this|that|to))\b"
    r"|앞으로|이제부터|지금부터|매번|以后|今后|从现在|每次|以後|今後|これから|毎回",
    re.IGNORECASE,
)
_LINE = re.compile(r"\S[^\n]*")
_ENTITY = re.compile(
    r"https?://[^\s<>\"'）)」]{3,200}"
    r"|(?:[\w.~-]{1,60}/){1,8}[\w.-]{1,60}"
    r"|\b[\w-]{1,60}\.(?:py|ts|tsx|js|go|rs|md|toml|yaml|yml|json|sql|sh|java|rb|css|html|c|h|cpp|txt|csv|lock)\b"
    r"|`[^`\n]{1,80}`"
    r"|\bv?\d{1,5}(?:\.\d{1,6}){1,3}\b"
    r"|\b[A-Z][\w+#-]{1,30}(?: [A-Z0-9][\w.+#-]{0,30}){0,3}"
)
MAX_ENTITIES = 8
TASK_CHARS = 800
"""A turn of more than this (in a script of its own: half) is no remark in passing."""


def extract(window: Sequence[Turn], context: Sequence[Turn] = ()) -> tuple[Atom, ...]:
    """The atoms of `window`, oldest first. `context`, the turns before it, is what a model is shown; the rules judge
    each sentence by itself, and of the context look only whether an agent is heard in it."""
    heard = any(turn.role == "assistant" and not turn.name for turn in (*context, *window))
    return tuple(atom for turn in window for atom in _of_turn(turn, heard))


def _of_turn(turn: Turn, heard: bool) -> Iterator[Atom]:
    text = turn.text[:MAX_TURN_CHARS]
    if turn.kind == "stated":
        yield from _stated(turn, text)
        return
    if turn.kind == "tool" or turn.role in ("tool", "system"):
        yield from _returned(turn, text)
        return
    base = parse(turn.time).date()
    kept = 0
    for sentence in sentences(text):
        if kept == MAX_ATOMS_A_TURN:
            return
        if len(sentence.text) < _MIN_CHARS:
            continue
        for atom in _of_sentence(turn, heard, sentence, language(sentence.text, text), base):
            kept += 1
            yield atom


def _of_sentence(turn: Turn, heard: bool, sentence: Sentence, spoken: Language, base: date) -> Iterator[Atom]:
    if is_suspicious(turn, sentence.text):
        yield _quarantined(turn, sentence, spoken)
        return
    if sentence.quoted:
        return
    for start, end in _clauses(sentence.text, spoken):
        parts = [
            _of_clause(turn, heard, sentence, *part, spoken, base)
            for part in _dated_parts(sentence.text, start, end, spoken, base)
        ]
        atoms = parts if None not in parts else [_of_clause(turn, heard, sentence, start, end, spoken, base)]
        yield from (atom for atom in atoms if atom is not None)


def _dated_parts(text: str, start: int, end: int, spoken: Language, base: date) -> list[tuple[int, int]]:
    """Clauses between commas that each have a day of their own are statements of their own, if they can stand alone."""
    phrases = when.find(text[start:end], spoken, base)
    if spoken == "en" or len(phrases) < 2 or when.is_settled(text[start:end], spoken):
        return [(start, end)]
    cuts = [start]
    for before, after in pairwise(phrases):
        commas = [found.end() for found in _COMMA.finditer(text, start + before.end, start + after.start)]
        if commas and commas[-1] - cuts[-1] >= _MIN_PART and end - commas[-1] >= _MIN_PART:
            cuts.append(commas[-1])
    return [(first, len(text[:last].rstrip(" ,、，"))) for first, last in pairwise([*cuts, end])]


def _clauses(text: str, spoken: Language) -> Iterator[tuple[int, int]]:
    """The parts of a sentence that are judged by themselves; a question is none."""
    end = len(text)
    if spoken == "en":
        yield from rules_en.clauses(text[: rules_en.statement_end(text)] if _QUESTION.search(text) else text)
        return
    starts = [0, *(found.end() for found in _BREAK[spoken].finditer(text))]
    while starts:  # what is asked or guessed at the end is cut off; what was said before it stays
        start = starts.pop()
        clause = text[start:end]
        guessed = start > 0 and _MAYBE[spoken].search(clause)
        if not (guessed or _ASKS[spoken](clause) or _QUESTION.search(clause)):
            break
        end = start
    if end >= _MIN_CHARS:
        yield 0, len(text[:end].rstrip(" ,、，"))


def _of_clause(
    turn: Turn, heard: bool, sentence: Sentence, start: int, end: int, spoken: Language, base: date
) -> Atom | None:
    lead = _LEAD[spoken].match(sentence.text, start, end)
    if lead is not None and end - lead.end() >= _MIN_CHARS:
        start = lead.end()
    text = sentence.text[start:end]
    if len(text) < _MIN_CHARS:
        return None
    found = _judged(text, turn, _speaker(turn, heard), spoken)
    if found is None or (found.type == "instruction" and turn.role == "assistant"):
        return None
    if found.type == "work_method" and _UNDONE[spoken].search(text):
        return None
    if found.type in ("work_fact", "work_artifact") and turn.role == "assistant" and _UNSURE[spoken].search(text):
        return None
    if found.type == "instruction" and found.scope == "global" and _is_task(turn) and not _LASTING.search(text):
        found = replace(found, scope="scenario")
    phrases = when.find(text, spoken, base)
    said = when.resolved(text, phrases)
    first, last = when.validity(text, spoken, () if slots.is_yearly(found.slot) else phrases)
    if (
        not phrases
        and found.type in ("episodic", "work_fact", "work_task")
        and (start, end) != (0, len(sentence.text))
    ):
        around = when.find(sentence.text, spoken, base)
        first, last = when.validity(sentence.text, spoken, around if len(around) == 1 else ())
    return Atom(
        type=found.type,
        text=f"{_who(turn)}: {said}"[:MAX_ATOM_CHARS],
        sources=(Span(turn.id, sentence.start + start, sentence.start + end),),
        subject=turn.name or ("user" if turn.role == "user" else turn.role),
        slot=found.slot,
        value=found.value[:200],
        entities=_entities(text),
        priority=found.priority,
        scope=found.scope,
        polarity=found.polarity,
        valid_from=first,
        valid_to=last,
        language=spoken,
    )


def _judged(text: str, turn: Turn, speaker: Speaker, spoken: Language) -> Judgement | None:
    found = _RULES[spoken](text, speaker, turn.project)
    if speaker == "user" and (found is None or (found.type != "instruction" and not found.slot)):
        found = manner(text, spoken) or found
    return slots.filled(found, text, spoken) if found is not None else None


def _stated(turn: Turn, text: str) -> Iterator[Atom]:
    """What was asked to be remembered is kept whole, whatever the rules think of it, unless it would rule memory."""
    body = text.strip()
    if not body:
        return
    start = text.index(body)
    spoken = language(body, body)
    found = _RULES[spoken](body[:500], "user", turn.project) or Judgement(type="persona")
    found = slots.filled(found, body[:500], spoken)
    harm = INSTRUCTS if is_suspicious(turn, body) else ""
    base = parse(turn.time).date()
    phrases = when.find(body[:2000], spoken, base)
    first, last = when.validity(body[:2000], spoken, phrases)
    yield Atom(
        type=found.type,
        text=when.resolved(body[:MAX_ATOM_CHARS], tuple(p for p in phrases if p.end <= MAX_ATOM_CHARS))[
            :MAX_ATOM_CHARS
        ],
        sources=(Span(turn.id, start, start + len(body)),),
        subject="user",
        slot=found.slot,
        value=found.value[:200],
        entities=_entities(body[:2000]),
        priority=max(found.priority, 80),
        scope=found.scope,
        polarity=found.polarity,
        valid_from=first,
        valid_to=last,
        language=spoken,
        quarantine=harm,
    )


def _returned(turn: Turn, text: str) -> Iterator[Atom]:
    """Nothing that a tool returned is a statement of anybody's; lines that would rule the memory are kept apart."""
    attempts = (line for line in _LINE.finditer(text) if is_suspicious(turn, line.group()))
    for line, _ in zip(attempts, range(MAX_ATOMS_A_TURN), strict=False):
        yield _quarantined(turn, Sentence(line.group(), *line.span()), language(line.group(), text))


def _quarantined(turn: Turn, sentence: Sentence, spoken: Language) -> Atom:
    return Atom(
        type="instruction",
        text=f"{_who(turn)}: {sentence.text}"[:MAX_ATOM_CHARS],
        sources=(Span(turn.id, sentence.start, sentence.end),),
        subject=turn.name or turn.role,
        priority=0,
        language=spoken,
        quarantine=INSTRUCTS,
    )


def _speaker(turn: Turn, heard: bool) -> Speaker:
    """Who speaks, where an agent is `heard` beside them: a named user of it instructs it as an unnamed one does."""
    if turn.role == "assistant" and not turn.name:
        return "assistant"
    return "person" if turn.name and not (heard and turn.role == "user") else "user"


def _is_task(turn: Turn) -> bool:
    """Is it a prompt that sets a task, or a pasted text? Its rules are those of the task."""
    return len(turn.text) > (TASK_CHARS if turn.text.isascii() else TASK_CHARS // 2)


def _who(turn: Turn) -> str:
    return turn.name or turn.role.capitalize()


def _entities(text: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for match in _ENTITY.finditer(text):
        if match.start() == 0 and match.group().isalpha() and text.isascii():
            continue  # the first word of a sentence is written large, whatever it is
        found.setdefault(match.group().strip("`"), None)
        if len(found) == MAX_ENTITIES:
            break
    return tuple(found)
