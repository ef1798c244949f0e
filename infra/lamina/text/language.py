"""Which of the four languages a sentence is in, by its script."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "ko", "zh", "ja"]
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")


def language(text: str, around: str = "") -> Language:
    """The language of `text`; Han alone is Japanese where `around`, the text it stands in, has kana."""
    if text.isascii():
        return "en"
    if _HANGUL.search(text):
        return "ko"
    if _KANA.search(text):
        return "ja"
    if _HAN.search(text):
        return "ja" if _KANA.search(around[:2000]) else "zh"
    return "en"
