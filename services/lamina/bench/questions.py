"""Questions with known evidence: made of a log's own turns, or read from a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.errors import Invalid
from lamina.requests import Turn

WORDS, MOST_WORDS = 8, 12
CHARS, MOST_CHARS = 16, 24
MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_QUESTIONS = 10_000


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """`evidence` are ids of turns: those of their source (`turn_id`) or of their events."""

    question: str
    evidence: tuple[str, ...]


def of_turns(turns: Sequence[Turn], count: int) -> list[Question]:
    """At most `count` questions, each with half of the words of a turn, which is to be found by them.

    The turns are spread evenly over the log, the same for the same log. Left out are those that are too short, and
    those of the same text as another, which no question could tell apart.
    """
    often = Counter(turn.text for turn in turns)
    fit = [turn for turn in turns if turn.role == "user" and often[turn.text] == 1 and half(turn.text)]
    step = max(1.0, len(fit) / count)
    chosen = [fit[int(n * step)] for n in range(min(count, len(fit)))]
    return [Question(half(turn.text), (turn.id,)) for turn in chosen]


def half(said: str) -> str:
    """Every other word of a text, or the middle of one without spaces; nothing of a short one."""
    words = said.split()
    if len(words) >= WORDS:
        return " ".join(words[: 2 * MOST_WORDS : 2])
    text = "".join(words)
    if len(text) < CHARS or text.isascii() or len(text) / len(words) < CHARS / 2:
        return ""
    middle = text[len(text) // 4 : -(len(text) // 4)]
    return middle[:MOST_CHARS]


def of_file(path: Path) -> list[Question]:
    """The questions of a file of JSON lines, `{"question": "...", "evidence": ["turn_id", ...]}`.

    `Invalid` names the line that is none, or says that the file cannot be read, is too large or has no line.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise Invalid(f"{path}: larger than {MAX_FILE_BYTES // 1024 // 1024} MiB; give fewer questions")
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise Invalid(f"{path}: cannot be read: {error.strerror}") from error
    questions = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            one = msgspec.json.decode(line, type=Question)
        except msgspec.MsgspecError as error:
            raise Invalid(f"{path}:{number}: {error}") from error
        if not one.question.strip() or not one.evidence:
            raise Invalid(f"{path}:{number}: a question needs words, and the id of a turn that answers it")
        questions.append(one)
    if not questions or len(questions) > MAX_QUESTIONS:
        raise Invalid(f"{path}: holds {len(questions)} questions; give 1 to {MAX_QUESTIONS:,}")
    return questions
