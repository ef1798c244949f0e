"""Greetings and questions in four languages, by their form alone: what no extractor may keep."""

from __future__ import annotations

import re

_CLOSING = " \t\r\n\"'”’」』)）]~〜….!！。"
_CHATTER = re.compile(r"(?:[ㅋㅎㅠㅜㅇwW笑哈]+|[\U0001F300-\U0001FAFF\u2600-\u27BF\uFE0F]+|\b(?:lol|haha+)\b)$")
_GREETING = re.compile(
    r"(?:(?:hi|hey|hello|good (?:morning|evening|night)|evening|thanks?|thank you|thx|ta|cheers|bye)\b[^,.!?]{0,20}"
    r"|(?:안녕|굿모닝|감사|고마|고맙|ㄱㅅ|수고)\S{0,12}"
    r"|(?:你好|您好|哈喽|嗨|早上好|晚上好|谢谢|多谢|谢啦|辛苦)\S{0,4}"
    r"|(?:こんにちは|こんばんは|おはよう|ありがと|おつかれ|お疲れ|助かり)\S{0,12})",
    re.IGNORECASE,
)
_ASKING = re.compile(r"(?:吗|呢|ですか|ますか|ますかね|ですかね|でしょうか|나요|까요|는지요|을래|인가요)$")


def _bare(text: str) -> str:
    last = ""
    while text != last:
        last = text
        text = _CHATTER.sub("", text.strip(_CLOSING))
    return text


def is_greeting(text: str) -> bool:
    """Whether the whole of `text` is a greeting or thanks."""
    return _GREETING.fullmatch(_bare(text)) is not None


def is_question(text: str) -> bool:
    """Whether `text` ends as a question does, with or without its mark."""
    bare = _bare(text)
    return bare.endswith(("?", "？")) or _ASKING.search(bare) is not None
