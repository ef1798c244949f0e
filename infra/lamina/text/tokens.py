"""Words as the index knows them, for four languages and for code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import add

from lamina.text.normalise import compose, fold
from lamina.text.stem import stem

TOKEN_CHARS = 64  # a longer token is cut: nobody types it, and a base64 blob must not fill the index
INNER_SYMBOLS = "_./+#@:&-"  # may stand inside a whole identifier, path, version or address
_EDGES = "\"'.,;:!?()[]{}<>*`“”‘’…"  # never part of a token there: without them more words are met again
_CACHED_CHARS = 32  # longer runs without a space are rarely met twice
_CACHED_RUNS = 1 << 16

CJK = (
    "\u3005\u3006\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_EMOJI = "\u2600-\u27bf\u2b50\u2b55\U0001f1e6-\U0001f1ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff"
_CHUNK = re.compile(
    rf"_{{0,2}}[^\W_{CJK}]+(?:(?:[{re.escape(INNER_SYMBOLS)}'’\\,]|__)[^\W_{CJK}]+)*(?:\+\+|#)?|[{CJK}]+|[{_EMOJI}]"
)
_IS_CJK = re.compile(f"[{CJK}]")
_PART = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_PLAIN_JOIN = re.compile(r"[^\W\d_]+(?:[-'’,:&.][^\W\d_]+)+")  # well-being, O'Brien, yes,no, end.Next
_CLITIC = re.compile(r"['’](?:s|d|m|ll|re|ve)$", re.IGNORECASE)


def tokens(text: str) -> list[str]:
    """Return the search tokens of `text` in order, repeats kept.

    A word gives itself; a run of Han, kana or Hangul its overlapping bigrams (a single character itself);
    an identifier, path, version or number (`getUserName`, `src/app/main.py`, `v2.1.3`, `c++`, `1,500`)
    itself and its parts; an emoji itself; punctuation nothing. Every token is folded (see `normalise`),
    1 to 64 characters long, and free of spaces, quotes, control characters and lone surrogates.
    Never raises.
    """
    return [token for run in text.split() for token in _tokens(run.strip(_EDGES))]


def terms(text: str) -> list[str]:
    """Return `tokens(text)` with English endings cut: what the index holds and a query asks for."""
    line = terms_line(text)
    return line.split(" ") if line else []


def terms_line(text: str) -> str:
    """Return `terms(text)` joined by single spaces, as a column of the index holds them."""
    return " ".join(filter(None, map(_lines.__getitem__, text.split())))


def is_cjk(token: str) -> bool:
    """Whether a token comes from a run of Han, kana or Hangul."""
    return _IS_CJK.match(token) is not None


class _Lines(dict[str, str]):
    """A run without spaces -> its terms in a line. Short runs are kept: looking one up costs no Python call."""

    def __missing__(self, run: str) -> str:
        if len(run) > _CACHED_CHARS:
            return _line(run.strip(_EDGES))
        line = _short(run.strip(_EDGES))
        if len(self) >= _CACHED_RUNS:
            self.clear()  # those met often are soon there again, from `_short`
        self[run] = line
        return line


_lines = _Lines()


@lru_cache(_CACHED_RUNS)
def _short(run: str) -> str:
    return _line(run)


def _line(run: str) -> str:
    if run.isascii() and run.isalpha() and run[1:].islower():  # most words: what follows comes to the same
        return stem(run.lower()[:TOKEN_CHARS])
    found: list[str] = []
    for chunk in _CHUNK.findall(compose(run)):
        found += _bigrams(chunk) if _IS_CJK.match(chunk) else map(stem, _words(chunk))
    return " ".join(found)


def _tokens(run: str) -> Iterator[str]:
    for chunk in _CHUNK.findall(compose(run)):
        yield from _bigrams(chunk) if _IS_CJK.match(chunk) else _words(chunk)


def _bigrams(run: str) -> Iterable[str]:
    return map(add, run, run[1:]) if len(run) > 1 else (run,)


def _words(chunk: str) -> Iterable[str]:
    if chunk.isalpha() and (len(chunk) == 1 or chunk[1:].islower()):
        return (fold(chunk)[:TOKEN_CHARS],)
    return _structured(chunk)


def _structured(chunk: str) -> Iterator[str]:
    """Yield the tokens of a chunk that is more than one plain word: itself where it is a name, its parts."""
    chunk = _CLITIC.sub("", chunk)
    whole = fold(chunk)
    if whole.endswith(("n't", "n’t")):
        yield whole[:-2] + "t"
    elif _GROUPED.fullmatch(whole):
        yield whole.replace(",", "")[:TOKEN_CHARS]
    else:
        parts = _parts(chunk)
        is_name = not (_PLAIN_JOIN.fullmatch(chunk) or any(mark in whole for mark in "'’,"))
        if is_name and parts != [whole]:
            yield whole.replace("\\", "/")[:TOKEN_CHARS]
        for part in parts:
            yield part[:TOKEN_CHARS]


def _parts(chunk: str) -> list[str]:
    """Return the words inside an identifier, path or version: cut at symbols, humps and digits."""
    out: list[str] = []
    for part in _PART.findall(chunk):
        humps = _HUMP.findall(part)
        if len(humps) > 1 and part != chunk:
            out.append(fold(part))
        out += [fold(hump) for hump in humps if len(humps) == 1 or hump.isdigit() or len(hump) > 1]
    return out
