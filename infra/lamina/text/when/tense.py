"""On which side of today a statement puts a day that it names without its week or year."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lamina.text.language import Language
from lamina.text.when.spans_of_time import Side

_PERFECT = "".join(
    chr(code) for code in range(0xAC00, 0xD7A4) if (code - 0xAC00) % 28 == 20 and chr(code) not in "있겠"
)
"""Every Korean syllable that ends in the mark of the past, but those of being there and of what will be."""
MOVED = (
    r"(?:moved|pushed|shifted|changed|bumped|set|brought forward|put off)(?: [\w'-]+){0,7}? (?:to|until|for|till) "
    r"(?=(?:the )?(?:\d|next|this|tomorrow|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:early |mid-?|late )?"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)))"
)
# What was arranged in the past lies ahead: these win over a past tense.
_ARRANGED: Mapping[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"\b(?:will|won't|shall|going to|gonna|about to|upcoming|coming up)\b|'ll\b|"
        r"\b(?:booked|reserved|scheduled|rescheduled|postponed|delayed|deferred|planned|registered|signed up|got tickets|slated|"
        r"arranged|on track|tickets?|(?<!was )(?<!were )due)(?: (?!was|were|since)[\w'-]+){0,6}? (?:for|on|in|by|until|till|to|from|"
        r"before|back|this|next|at)\b|\bdeadline (?:is|moved)\b|\bdue (?:next|tomorrow|today|mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|"
        r"apr|may|jun|jul|aug|sep|oct|nov|dec)|"
        rf"\b{MOVED}|"
        r"\b(?:need|needs|have|has|'ve got|got|want|wants|hope|hoping|plan|plans|planning|expect|expects|intend|aim) to\b|"
        r"\bmust\b|\b(?:am|is|are|'m|'s|'re) (?:(?!done|over)\w+ ){0,2}?(?!being|during)\w{2,}ing\b|"
        r"\b(?:i've|we've|i have|we have|i've got|there's|there is|she has|he has|has got) (?:got )?(?:an?|my|our|the|two|three|another) "
        r"(?:[\w'-]+ ){0,4}?(?:appointment|interview|exam|flight|meeting|surgery|wedding|deadline|recital|race|checkup|check-up|"
        r"date|trip|reservation|class|concert|game|match|party|call|presentation|demo|release|test|scan|hearing|viewing)\b",
        re.IGNORECASE,
    ),
    "ko": re.compile(
        r"예정|예약|기로 ?(?:했|함|결정|정|약속)|[할갈볼올될낼쓸열칠만날] ?(?:거|것|계획|생각|예정|참)|을 ?(?:거|것|계획|예정)|려고|[할갈볼올될낼쓸]게|겠(?!더|지|네)|"
        r"(?:으로|로) ?(?:미뤄|미뤘|미루|연기|변경|옮|바뀌|바꾸|바꿨|당겨|당겼|앞당|잡|확정|정해|정했|조정|늦)|잡혔|잡혀|잡아|잡았|미뤄졌|연기됐|약속|"
        r"신청했|등록했|앞두|다가오|마감(?!했)|(?:오픈|출시|배포|제출|발표|시험|면접|결혼식|이사|수술|공연|콘서트)(?:은|는|이|가)? ?(?:\S{1,10} ){0,3}(?:이야|이에요|예요|입니다|임|있어|있다|있음|있습)"
    ),
    "zh": re.compile(
        r"(?<![只需首主重想不])要(?!求|是|点|素|么)|(?<!机)会(?!议|議|员|員|计|話|话|场|场|面|上|后|前)|[將将](?!来|軍|军|近)|打算|准备|準備|计划|計劃|安排|预定|預定|预约|預約|约[了在好]|約[了在好]|"
        r"定(?:在|于|於|到)|得(?:在|把|先|去|交)|必须|必須|截止|deadline|改(?:到|在|至|期|为|成)(?=\S{0,3}[\d下明后後周週一二三四五六七八九十])|推迟|推遲|延(?:到|期|后|至)|提前到|即将|即將|就要|快要|"
        r"[之以]前(?:要|得|必|完|交|提|上|搞|把|做|给)|(?:订|訂|买|買|抢|搶)(?:了|好|到)\S{0,8}(?:票|机票|酒店|位)|还有|倒计时",
        re.IGNORECASE,
    ),
    "ja": re.compile(
        r"予定|予約|つもり|ことにし|ことにな|(?:に|へ)(?:変更|延期|延び|ずれ|ずら|前倒|決ま|決め|移動し|なりました|なった|リスケ|設定)|延期|締め?切|期限|納期|"
        r"までに|まで[^。]{0,12}(?:ない|必要|提出|お願い|渡|出|終)|なければ|なきゃ|ないと|必要があ|(?:入れ|取れ|取り|押さえ|申し込|申込|とっ)(?:た|て|まし)|控えて|"
        r"(?:リリース|公開|発売|提出|試験|面接|発表会?|結婚式|引っ越し|手術|ライブ|出張|会議|検診)(?:日)?は(?!.*(?:でした|だった|ました|した))|ましょう|たい(?:です|と思|。|$)"
    ),
}
_PAST: Mapping[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"\b(?:was|were|had|did|didn't|went|got|left|quit|ran|took|made|bought|sold|met|lost|won|gave|came|began|broke|flew|"
        r"ago|been|saw|said|told|found|wrote|read|fell|hurt|tore|drove|swam|spent|built|caught|taught|thought|sent|paid|put|set|cut|"
        r"ate|drank|slept|chose|spoke|grew|knew|became|held|kept|felt|heard|led|hit|let|shut|split|sank|rode|rose|threw|woke|wore|"
        r"(?!need|bed|red|speed|feed|seed|indeed|hundred|united|exceed|proceed|succeed|embed|naked|wicked|shared|weed|breed)\w{2,}ed)\b",
        re.IGNORECASE,
    ),
    "ko": re.compile(f"[{_PERFECT}]|[된던]\\s|(?:함|됨|옴|감)[.!~\\s]*$"),
    "zh": re.compile(
        r"了|过(?!敏|去|年|程|来|滤|期|度|两|几|三)|已经|已經|刚|剛|的时候是|是\S{0,8}的[。.!！~～，,\s]*$|(?:办|买|买到|到|生|搬|去|来|回|辞|结|领|考|订|装|换|签|拿|入职|离职)的|曾|没(?!有\S{0,6}安排)"
    ),
    "ja": re.compile(
        r"(?:(?<!ま)た|[一-鿿しこ]んだ|だった)(?:よ|ね|ー|んだ|んです|の|けど|ので|から|！|!|。|、|わ|し|ばかり|って|笑|w|〜|～|が|と|\s|$)|"
        r"から[^。]{0,30}(?:ずっと|[てで]い?(?:る|ます|て|ま)|[てで]おり)"
    ),
}


_BREAK: Mapping[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"[,;:]\s|\b(?:and|but|so|because|although) (?=(?:i|we|my|she|he|they|the|it)\b)", re.IGNORECASE
    ),
    "ko": re.compile(
        rf"[,;]|[{_PERFECT}](?:어|지|다|음|네|던데)\s|(?:[^\s]고|지만|는데|은데|인데|니까|어서|아서|해서|으며)\s"
    ),
    "zh": re.compile(r"[，,；;]|(?<=[一-鿿])\s(?=[一-鿿])"),
    "ja": re.compile(r"[、；;]|(?:けど|が、|ので|から、)"),
}


def side(text: str, language: Language, at: int) -> Side:
    """Where the day lies that is named at the character `at`: behind (-1), ahead (1), or 0 where nothing says it.

    The clause it stands in says it; where that does not, the ones behind it, then the whole.
    """
    breaks = [0, *(found.end() for found in _BREAK[language].finditer(text)), len(text)]
    start = max(place for place in breaks if place <= at)
    end = min((place for place in breaks if place > at), default=len(text))
    for clause in (text[start:end], text[start:], text):
        told = _told(clause, language)
        if told:
            return told
    return 0


def _told(text: str, language: Language) -> Side:
    if _ARRANGED[language].search(text):
        return 1
    return -1 if _PAST[language].search(text) else 0
