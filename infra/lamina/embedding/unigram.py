"""Texts to the numbers of a SentencePiece vocabulary: the likeliest pieces of every word, by Viterbi's algorithm."""

from __future__ import annotations

import re
from functools import lru_cache

from lamina.embedding.packed import Vocabulary

SPACE = "\u2581"
_SPACES = re.compile(" {2,}")
_WORDS = re.compile(f"{SPACE}?[^{SPACE}]+|{SPACE}")
UNKNOWN_PENALTY = 10.0
CACHED_WORDS = 20_000
CACHED_CHARS = 24


class Unigram:
    """Safe from several threads. No piece goes over a space, so every word is a matter of its own."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._longest = max(map(len, vocabulary.pieces))
        self._unknown_score = min(vocabulary.scores) - UNKNOWN_PENALTY
        self._cached = lru_cache(CACHED_WORDS)(self._word)

    def tokens(self, text: str, most: int) -> list[int]:
        """The first `most` tokens of a text, between those of its begin and end, which count."""
        text = text[: most * self._longest].translate(self._vocabulary.normal)
        text = _SPACES.sub(" ", text)
        text = (text if text.startswith(" ") else f" {text}").replace(" ", SPACE)
        found = [self._vocabulary.begin]
        for word in _WORDS.findall(text):
            found += self._cached(word) if len(word) <= CACHED_CHARS else self._word(word)
            if len(found) >= most:
                break
        return [*found[: most - 1], self._vocabulary.end]

    def _word(self, word: str) -> tuple[int, ...]:
        pieces, scores, longest = self._vocabulary.pieces, self._vocabulary.scores, self._longest
        best = [0.0, *[float("-inf")] * len(word)]
        back = [(0, self._vocabulary.unknown)] * (len(word) + 1)
        for start in range(len(word)):
            for end in range(start + 1, min(len(word), start + longest) + 1):
                piece = pieces.get(word[start:end])
                if piece is not None and best[start] + scores[piece] > best[end]:
                    best[end] = best[start] + scores[piece]
                    back[end] = (start, piece)
            if best[start] + self._unknown_score > best[start + 1]:
                best[start + 1] = best[start] + self._unknown_score
                back[start + 1] = (start, self._vocabulary.unknown)
        found = []
        at = len(word)
        while at:
            at, piece = back[at]
            found.append(piece)
        return tuple(reversed(found))
