"""How a user wants things done, said in passing: what they use and nothing else, how an answer is to look.

A request about one answer is no standing rule; it is kept with a slot of its own, so that asked for again and again
it can be told from a whim. It ends no rule: `request.explanation` is another slot than any that a rule fills.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lamina.atoms.builtin.judgement import Judgement
from lamina.text.language import Language

_ONLY: Mapping[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"\b(?:I|we)(?:'ll| will)? (?:only|exclusively) (?:ever )?(?:use|write|work with|code in|buy|wear|drink|eat) "
        r"(?!(?:it|this|that|them|these|those|there|one|what)\b)(?P<what>[^,.;:!?\n]{2,40}?)(?= (?:for|in|on|with|and|so|because|when)\b|[,.;:!?]|$)",
        re.IGNORECASE,
    ),
    "ko": re.compile(
        r"(?:^|\s)(?:저는|나는|전|난|우리는|저희는)?\s?(?P<what>[^\s,.]{1,20}(?: [^\s,.]{1,20}){0,2}?)만\s?"
        r"(?:써요|씁니다|써(?=[\s,.]|$)|쓴다|쓰니까|쓰거든|쓰고|사용해요|사용합니다|사용해(?=[\s,.]|$)|사용하니까)"
    ),
    "zh": re.compile(r"我(?:们)?(?:一直|从来)?只(?:用|使用|写|买|穿|喝|吃)(?P<what>[^，。；！？,.;!?\n]{1,30})"),
    "ja": re.compile(
        r"(?P<what>[^、。,\s]{1,30}(?: [^、。,\s]{1,20}){0,2}?)(?:しか使(?:わない|いません|わず)|(?:だけ|のみ)を?使(?:う|います|って))"
    ),
}
_BARE: Mapping[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"\b(?:skip|omit|leave out|spare me|cut|no need for|without|no)\s+(?:(?:the|any|all|your|long|further)\s+){0,2}"
        r"explanations?\b|\b(?:don't|do not) explain\b|\b(?:just|only)\s+(?:(?:give|show|send)\s+me\s+)?(?:the\s+)?code\b"
        r"|\bcode only\b|\bgive me (?:just |only )?(?:the )?code\s*[.!]?$",
        re.IGNORECASE,
    ),
    "ko": re.compile(
        r"설명(?:은|을|도)?\s?(?:생략|빼|말고|없이|하지\s?마|하지\s?말|필요\s?없|건너뛰|됐)|코드만\s?(?:주|줘|보여|알려|달라)"
    ),
    "zh": re.compile(
        r"(?:不用|不要|别|省略|跳过|无需|不需要|免)\S{0,2}(?:解释|说明)|(?:只要|只给|直接给|直接上|只发)\S{0,3}代码"
    ),
    "ja": re.compile(
        r"説明(?:は|を|も)?\s?(?:省|いら|要ら|不要|なし|抜き|しないで|飛ばし)|コードだけ(?:を)?(?:くだ|下さ|ちょうだい|見せ|お願い|で)"
    ),
}


def manner(text: str, spoken: Language) -> Judgement | None:
    """What a clause of the user's says of how they want things done, as far as no rule has it."""
    only = _ONLY[spoken].search(text)
    if only is not None:
        what = " ".join(only["what"].casefold().split())
        return Judgement(type="persona", priority=60, slot=f"preference:{what}", value="only")
    if _BARE[spoken].search(text) is not None:
        return Judgement(type="instruction", priority=60, polarity=-1, slot="request.explanation", value="no")
    return None
