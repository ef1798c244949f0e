"""The words and forms of English time phrases."""

from __future__ import annotations

import re

from lamina.text.when.dates_words import SEASONS as _SEASONS
from lamina.text.when.spans_of_time import Part, Yearly

DAY_NUMBER = {name: number for number, name in enumerate(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])}
MONTH_NUMBER = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_SMALL = (
    *(
        "",
        "a an one",
        "two couple",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
NUMBERS = {word: number for number, words in enumerate(_SMALL) for word in words.split()}
NUMBERS |= {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90}
SEASONS: dict[str, Yearly] = {**_SEASONS, "fall": _SEASONS["autumn"]}
SEASONS |= {"summer vacation": (7, 1, 8, 31), "summer break": (7, 1, 8, 31), "winter break": (12, 20, 1, 5)}
HOLIDAYS: dict[str, Yearly] = {
    **{"christmas": (12, 25, 12, 25), "christmas day": (12, 25, 12, 25), "christmas eve": (12, 24, 12, 24)},
    **{"boxing day": (12, 26, 12, 26), "new years eve": (12, 31, 12, 31), "new years day": (1, 1, 1, 1)},
    **{
        "new years": (1, 1, 1, 1),
        "halloween": (10, 31, 10, 31),
        "valentines day": (2, 14, 2, 14),
        "valentines": (2, 14, 2, 14),
    },
    **{"independence day": (7, 4, 7, 4), "the fourth of july": (7, 4, 7, 4), "st patricks day": (3, 17, 3, 17)},
    **{"april fools day": (4, 1, 4, 1), "april fools": (4, 1, 4, 1), "veterans day": (11, 11, 11, 11)},
}
PARTS: dict[str, Part] = {
    **{word: "start" for word in ("start", "beginning", "very start", "very beginning")},
    **{"early": "early", "mid": "mid", "middle": "mid", "late": "late", "end": "end", "very end": "end"},
    **{
        "tail end": "end",
        "first half": "first half",
        "second half": "second half",
        "earlier in": "early",
        "later in": "late",
    },
}

_DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
_LONG_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_FULL_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec)"
_YEAR = r"(?:19|20)\d\d"
_YEAR_WORD = r"(?:(?:of )?(?:last|this|next) year)"
_ORD = r"(?P<{0}>\d{{1,2}})(?:st|nd|rd|th)?"
_WORD_COUNT = "|".join(sorted((word for word in NUMBERS if word != "couple"), key=len, reverse=True))
_COUNT = rf"(?:a couple(?: of)?|couple(?: of)?|{_WORD_COUNT}|\d{{1,4}})"
_UNIT = r"(?:day|week|weekend|month|year|night|fortnight|quarter|decade)"
_SEASON = "summer vacation|summer break|winter break|spring|summer|fall|autumn|winter"
_PART = r"(?:(?:the )?(?:very )?(?:start|beginning|middle|end|tail end|first half|second half) of|early|mid|late)"
_HOLIDAY = (
    r"christmas eve|christmas day|christmas|boxing day|new year[’']?s eve|new year[’']?s day|new year[’']?s|halloween|"
    r"valentine[’']?s day|valentine[’']?s|independence day|the fourth of july|thanksgiving day|thanksgiving|st patrick[’']?s day|"
    r"april fools[’']? day|april fools|veterans day"
)

PHRASE = re.compile(
    "|".join(
        (
            r"\b(?P<iso>\d{4}(?:-\d\d-\d\d|/\d\d?/\d\d?))(?!\d)",
            rf"\b(?P<mdy>(?P<m1>{_MONTH})\.? (?:the )?{_ORD.format('d1')}(?:,? (?P<y1>\d{{4}}|{_YEAR_WORD}))?)\b(?![:\d]| ?(?:am|pm|%))",
            rf"\b(?P<dmy>(?:the )?{_ORD.format('d2')}[ -](?:of )?(?P<m2>{_MONTH})(?:,?[ -](?P<y2>\d{{4}}|{_YEAR_WORD}))?)\b",
            rf"\b(?P<my>(?:(?P<by3>by|before|until) )?(?:(?P<p3>{_PART})[ -])?(?P<m3>{_MONTH}),? (?:of )?(?P<y3>{_YEAR}|{_YEAR_WORD}))\b",
            r"(?<![\d/.-])(?P<slash>(?P<s1>\d{1,2})/(?P<s2>\d{1,2})/(?P<s3>\d{4}))(?![\d/])",
            r"\b(?P<named>(?:the )?day before yesterday|(?:the )?day after tomorrow|(?:the )?night before last|yesterday|today|tonight|"
            r"tomorrow|last night|this (?:morning|afternoon|evening)|earlier today|later today)\b",
            rf"\b(?P<half>(?:half an? (?P<hu>year|month|decade)|(?P<hn>{_COUNT})(?: (?P<hu2>year|month)s?)? and a half(?: (?P<hu3>year|month)s?)?) "
            rf"(?P<hd>ago|back|from now))\b",
            rf"\b(?P<from>(?P<fn>{_COUNT}) (?P<fu>weeks?|days?) (?:from|(?P<fa>ago)) (?:this |next |last )?(?P<fw>{_LONG_DAY}|today|tomorrow|yesterday))\b",
            rf"\b(?P<ago>(?P<n1>{_COUNT}) (?P<u1>{_UNIT})s? (?:ago|earlier today|back(?! and)|prior to today))\b",
            rf"\b(?P<in>in (?:about |around |roughly )?(?P<n2>{_COUNT}) (?P<u2>{_UNIT})s?(?:['’]?s?['’]? time)?|"
            rf"(?P<n3>{_COUNT}) (?P<u3>{_UNIT})s? (?:from now|from today|hence))\b",
            rf"\b(?P<ofweek>(?P<wk1>{_LONG_DAY}|weekend),? (?:of )?(?P<wr1>last|this|next) week|"
            rf"(?P<wr2>last|this|next) week(?:['’]s)?,? (?:on )?(?P<wk2>{_LONG_DAY}))\b",
            rf"\b(?P<rel>(?:(?P<rby>by|before|until) )?(?:(?P<rp>{_PART}|earlier in|later in)[ -])?"
            rf"(?P<r>last|this past|this|next|this coming|the coming|coming|past|previous|the previous) "
            rf"(?P<w>weekend|week|month|year|quarter|{_SEASON}|{_DAY}|{_MONTH}))\b(?!['’])",
            rf"\b(?P<wb>(?:the )?(?P<wu>{_LONG_DAY}|weekend|week|month|year) (?P<wd>before last|after next))\b",
            rf"\b(?P<gago>(?P<gn>{_COUNT}) (?P<gw>{_LONG_DAY})s (?P<gd>ago|back|from now))\b",
            rf"\b(?P<part>(?:(?P<pby>by|before|until) )?(?P<pp>{_PART})[ -](?P<pw>(?:the )?(?:week|month|year|quarter)|{_FULL_MONTH}))\b(?! \d| of)",
            r"\b(?P<early>(?:earlier|later) this (?P<ew>week|month|year))\b",
            rf"\b(?P<quarter>(?:(?P<qh>q|h)(?P<qq>[1-4])|(?:the )?(?P<qq2>first|second|third|fourth) (?P<qh2>quarter|half))"
            rf"(?:,? (?:of )?(?P<qy>{_YEAR}|{_YEAR_WORD}))?)\b",
            rf"\b(?:in|during|over|since|until|by|back in) (?P<season>(?:the )?(?P<sw>{_SEASON})(?: of)?(?:,? (?P<sy>{_YEAR}|{_YEAR_WORD}))?)\b",
            rf"\b(?:(?:on|at|over|for|before|after|since|until|by|around|during|this|last|next) )?(?P<holiday>(?:(?P<hh>this|last|next) )?(?P<hw>{_HOLIDAY})(?:,? (?P<hy>{_YEAR}|{_YEAR_WORD}))?)"
            rf"\b(?! (?:present|gift|tree|card|party|dinner|market|song|movie|cookies?|lights|music|carol|resolution|costume))",
            r"\b(?:on|by|until|till|before|since|around|for|from) (?P<nth>the (?P<d5>\d{1,2})(?:st|nd|rd|th)(?: of (?P<dm>(?:last|this|next|the coming|the previous) month))?)\b(?! (?:of\b|floor|time|grade|birthday|anniversary|street|avenue|century|place))",
            r"\b(?:over|on|at|during|for|by) (?P<wend>the weekend)\b",
            rf"\b(?P<on>(?P<ol>on |by |until |till |before |after |since |every |from |for |this )?(?P<od>{_LONG_DAY})(?P<os>s)?)\b(?!['’]s (?:child|kid))",
            rf"\b(?P<im>(?P<ip>back in|in|since|by|until|during|of|for|from|last|around|through) "
            rf"(?:(?P<ipp>early|mid|late)[ -]?)?(?P<m4>{_MONTH}))\b(?! \d|,? (?:of )?(?:last|this|next) year)",
            rf"\b(?P<iy>(?P<yp>in|since|back in|until|by|from|of|during|around) (?:(?P<yp4>{_PART})[ -])?(?P<y4>{_YEAR}))\b(?![-/.:]\d)",
        )
    ),
    re.IGNORECASE,
)
HINT = re.compile(
    r"\d|day|night|week|month|year|morrow|last|next|this|coming|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|ago|"
    r"spring|summer|fall|autumn|winter|christmas|halloween|thanksgiving|valentine|quarter|half",
    re.IGNORECASE,
)
EVERY = re.compile(
    r"\b(?:every|each|most|any|alternate)(?: (?:other|single|second|early|late|in|on|last|first))?(?: of the)? $",
    re.IGNORECASE,
)
"""What stands before a time that comes back again and again."""
