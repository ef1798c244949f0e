"""Which of some statements says best what they are about: the one to stand in a title. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from lamina.scenarios.grouping import telling

ENOUGH = 5
"""Words that a statement is about, for it to say much; one of fewer counts for less."""
NAMED = 0.15
"""What each name and number in a statement adds, up to `MOST_NAMED` of them."""
MOST_NAMED = 3
LEANING = 0.3
"""What is left of a statement that says how somebody feels, or leans on what was said before it."""

# Word stems that say how somebody takes a thing, not what it is.
_FELT = frozenset(
    re.findall(
        r"\w+",
        "love lov like lik enjoy glad happi excit thrill grate thank great amaz awesom wonder nice good best "
        "better realli super feel felt think thought know knew want wait hope look forward interest fascin proud "
        "sorry sure thing lot bit way time make made get got take took go went come came see saw try tri help "
        "start keep ",
    )
)
_NAME = re.compile(r"(?<=[\w,;:] )[A-Z][\w'-]+|\b\w*\d[\w.-]*|「[^」]{2,30}」|《[^》]{2,30}》|『[^』]{2,30}』")
_LEANS = re.compile(
    r"^(?:but |and |so )?(?:it|that|this|these|those|they|them|he|she|there)(?:'s|'re|'ll)?\b"
    r"|^(?:but |and )?(?:i|we)(?:'m| am| was|'ve been| were|'re| are| feel| felt) "
    r"(?:\w+ly |so |super |also |still |very |just )*"
    r"(?:glad|happy|excited|thrilled|grateful|thankful|proud|sorry|sure|lucky|blessed|curious|looking forward|"
    r"interested|worried|skeptical|scared|not sure)\b"
    r"|^(?:i|we)(?:'d| would| can't| cannot| could)? "
    r"(?:love|loved|like|enjoy|enjoyed|hope|wish|think|guess|believe|wait)\b"
    r"|!$"
    r"|^(?:그거|그게|그건|이거|이게|그래서|그것)|^(?:那|这|它|他们|她们)(?!里|边|天)|^(?:それ|これ|あれ|その)"
    r"|(?:기뻐|행복|좋아요|좋았|설레|감사)[^.]{0,6}[.!]?$|(?:开心|高兴|期待|喜欢|感谢)[^，。]{0,4}[。！]?$"
    r"|(?:嬉しい|楽しみ|好きです|幸せ)[^。]{0,6}[。！]?$",
    re.IGNORECASE,
)


def ranks(texts: Sequence[tuple[str, str]]) -> list[float]:
    """How well each statement (its text, who said it) says what all of them are about; higher is better.

    It does by the words that others have too, on average; if it has enough of them; and by names and numbers.
    """
    words = [telling(text, subject) - _FELT for text, subject in texts]
    often = Counter(word for held in words for word in held)
    return [round(_rank(text, subject, held, often), 6) for (text, subject), held in zip(texts, words, strict=True)]


def _rank(text: str, subject: str, held: frozenset[str], often: Counter[str]) -> float:
    said = text[len(subject) + 2 :] if subject and text.casefold().startswith(f"{subject}: ".casefold()) else text
    shared = sum(often[word] for word in held) / len(held) if held else 0.0
    named = NAMED * min(MOST_NAMED, len(_NAME.findall(said)))
    leaning = LEANING if _LEANS.search(said.strip()) else 1.0
    return shared * min(1.0, len(held) / ENOUGH) * (1.0 + named) * leaning
