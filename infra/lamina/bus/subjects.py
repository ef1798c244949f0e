"""Subjects: what may be published, what may be asked for, and which of them a pattern covers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from lamina.errors import Invalid
from lamina.ids import SUBJECT_ROOT

STREAM = "LAMINA"
STREAM_SUBJECTS = (f"{SUBJECT_ROOT}.ev.>", f"{SUBJECT_ROOT}.blob.>")
MAX_SUBJECT_BYTES = 1024
"""Far above any subject that `lamina.ids` makes, and far below the server's control line (4,096)."""

_PART = r"[!-)+\-/-=?-~]+"  # printable ASCII but the space, `.`, `*` and `>`
_PLAIN = re.compile(rf"{_PART}(?:\.{_PART})*")
_LOGGED = re.compile(rf"{SUBJECT_ROOT}\.(?:ev|blob)(?:\.{_PART})+")
_PATTERN = re.compile(rf"(?:(?:{_PART}|\*)\.)*(?:{_PART}|\*|>)")


def check_logged(subject: str) -> None:
    """`Invalid` unless the stream takes messages on this subject."""
    if len(subject) > MAX_SUBJECT_BYTES or not _LOGGED.fullmatch(subject):
        raise Invalid(f"{subject[:200]!r} is no subject of the log ({', '.join(STREAM_SUBJECTS)}; no wildcards)")


def check_plain(subject: str) -> None:
    """`Invalid` unless this is a subject without wildcards."""
    if len(subject) > MAX_SUBJECT_BYTES or not _PLAIN.fullmatch(subject):
        raise Invalid(f"{subject[:200]!r} is no plain subject: tokens of printable ASCII joined by dots")


def check_pattern(pattern: str) -> None:
    """`Invalid` unless this is a subject, wildcards allowed (`*` one token, a last `>` one or more)."""
    if len(pattern) > MAX_SUBJECT_BYTES or not _PATTERN.fullmatch(pattern):
        raise Invalid(f"{pattern[:200]!r} is no pattern: tokens of printable ASCII, `*`, or a last `>`")


def has_wildcard(pattern: str) -> bool:
    """Whether `pattern` covers more than one subject."""
    return "*" in pattern or pattern.endswith(">")


def check_filters(patterns: Sequence[str]) -> None:
    """`Invalid` unless these are one or more patterns, none overlapping another."""
    if not patterns:
        raise Invalid("a reader needs at least one subject")
    by_head: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for pattern in patterns:
        check_pattern(pattern)
        head = tuple(pattern.split(".")[:3])
        by_head[() if {"*", ">"} & set(head) else head].append(pattern)
    anywhere = by_head.pop((), [])
    for group in [*by_head.values(), *([anywhere] if anywhere else [])]:
        others = group if group is anywhere else group + anywhere
        for at, one in enumerate(group):
            for other in others[at + 1 :]:
                if overlap(one, other):
                    raise Invalid(f"the subjects {one!r} and {other!r} of one reader overlap")


def matches(pattern: str, subject: str) -> bool:
    """Whether `pattern` covers the plain `subject`."""
    return overlap(pattern, subject)


def overlap(one: str, other: str) -> bool:
    """Whether some subject is covered by both patterns."""
    left, right = one.split("."), other.split(".")
    for a, b in zip(left, right, strict=False):
        if a == ">" or b == ">":
            return True
        if a != b and a != "*" and b != "*":
            return False
    return len(left) == len(right)
