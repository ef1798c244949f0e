"""The time words of Chinese, simplified and traditional."""

from __future__ import annotations

from lamina.text.when.dates_words import SEASONS, Words, combined, number

_HEADS = {"上上": -2, "上": -1, "这": 0, "這": 0, "本": 0, "下": 1, "下下": 2}
_HEADS = {head + each: away for head, away in _HEADS.items() for each in ("", "个", "個", "一")} | {
    "上一个": -1,
    "下一个": 1,
}
_WEEK = ("周", "週", "星期", "礼拜", "禮拜")
_DAY_NAMES = {
    name: value for value, names in enumerate(("一1", "二2", "三3", "四4", "五5", "六6", "日天7")) for name in names
}
_WEEKDAYS = {f"{head}{name}": value for head in _WEEK for name, value in _DAY_NAMES.items()}
_NUMBER = r"\d{1,4}|[一二两兩三四五六七八九]?十[一二三四五六七八九]?|[一二两兩三四五六七八九]"
_TWO = r"\d{1,2}|[一二三]?十[一二三四五六七八九]?|廿[一二三四五六七八九]?|[一二三四五六七八九]"
_DAYS_OF = ("天", "日", "号", "號")
_NO_DAY = r"(?!间|間|楼|樓|线|線|店|机|機|门|門|位|码|碼|电池|公寓|仓|选手|馆|館|桌|程|以内|之内|内|多|常|志|報|报|本|元|语|語|文|前端)"

ZH = Words(
    hint=r"[天日年月周週期拜晚夜早晨号號末季\d夏冬春秋]|国庆|國慶|五一|元旦|双十|清明|圣诞|聖誕|暑假|寒假|半年|刚才|剛才",
    days={
        **{
            "大前天": -3,
            "前天": -2,
            "前日": -2,
            "前晚": -2,
            "昨天": -1,
            "昨日": -1,
            "昨晚": -1,
            "昨夜": -1,
            "昨儿": -1,
        },
        **{
            "今天": 0,
            "今日": 0,
            "今晚": 0,
            "今早": 0,
            "今晨": 0,
            "今夜": 0,
            "今儿": 0,
            "刚才": 0,
            "剛才": 0,
            "当天": 0,
        },
        **{
            "大后天": 3,
            "大後天": 3,
            "后天": 2,
            "後天": 2,
            "明天": 1,
            "明日": 1,
            "明早": 1,
            "明晚": 1,
            "明儿": 1,
            "明晨": 1,
        },
        **{"昨早": -1, "昨天夜里": -1, "后日": 2, "後日": 2},
    },
    weeks=combined(_HEADS, *_WEEK),
    months={**combined(_HEADS, "月"), "当月": 0, "當月": 0},
    quarters=combined(_HEADS, "季度", "季"),
    years={
        **{"大前年": -3, "前年": -2, "去年": -1, "上年": -1, "上一年": -1, "今年": 0, "本年": 0, "本年度": 0},
        **{"大后年": 3, "大後年": 3, "后年": 2, "後年": 2, "明年": 1, "来年": 1, "來年": 1, "下一年": 1},
    },
    near={
        **{f"上{each}": (-1, False) for each in ("个", "個", "一个", "次的", "次")},
        **{f"{this}{each}": (0, True) for this in ("这", "這", "本", "今") for each in ("个", "個", "")},
        **{f"下{each}": (1, True) for each in ("个", "個", "一个")},
    },
    weekdays={**_DAY_NAMES, **_WEEKDAYS},
    bare_weekdays={name: value for name, value in _WEEKDAYS.items() if not name[-1].isdecimal()},
    yearly={
        **{name: SEASONS[season] for name, season in zip("春夏秋冬", SEASONS, strict=True)},
        **{f"{name}天": SEASONS[season] for name, season in zip("春夏秋冬", SEASONS, strict=True)},
        **{f"{name}季": SEASONS[season] for name, season in zip("春夏秋冬", SEASONS, strict=True)},
        **{"暑假": (7, 1, 8, 31), "暑期": (7, 1, 8, 31), "寒假": (1, 15, 2, 29)},
    },
    holidays={
        **{"国庆": (10, 1, 10, 7), "國慶": (10, 1, 10, 7), "国庆节": (10, 1, 10, 7), "十一假期": (10, 1, 10, 7)},
        **{"元旦": (1, 1, 1, 1), "圣诞节": (12, 25, 12, 25), "聖誕節": (12, 25, 12, 25), "圣诞": (12, 25, 12, 25)},
        **{
            "平安夜": (12, 24, 12, 24),
            "跨年夜": (12, 31, 12, 31),
            "清明": (4, 4, 4, 6),
            "五一": (5, 1, 5, 5),
            "劳动节": (5, 1, 5, 1),
        },
        **{"情人节": (2, 14, 2, 14), "儿童节": (6, 1, 6, 1), "双十一": (11, 11, 11, 11), "双11": (11, 11, 11, 11)},
        **{"教师节": (9, 10, 9, 10), "妇女节": (3, 8, 3, 8), "万圣节": (10, 31, 10, 31)},
    },
    bare={
        **{"月初": ("month", "early"), "月中": ("month", "mid"), "月底": ("month", "end"), "月末": ("month", "end")},
        **{"年初": ("year", "start"), "年中": ("year", "mid"), "年底": ("year", "end"), "年末": ("year", "end")},
        **{"上半年": ("year", "first half"), "下半年": ("year", "second half")},
    },
    year_parts={
        **{"年初": "start", "初": "start", "年中": "mid", "年底": "end", "年末": "end", "底": "end", "末": "end"},
        **{"上半年": "first half", "下半年": "second half"},
    },
    month_parts={
        **{"初": "early", "月初": "early", "上旬": "early", "中旬": "mid", "月中": "mid", "下旬": "late"},
        **{"底": "end", "末": "end", "月底": "end", "月末": "end", "上半月": "first half", "下半月": "second half"},
    },
    week_parts={"初": "early", "中": "mid"},
    spans={"半年": (6, "m"), "大半年": (7, "m"), "半个月": (15, "d"), "半個月": (15, "d"), "半月": (15, "d")},
    units={
        **{"天": "d", "日": "d", "周": "w", "週": "w", "月": "m", "年": "y"},
        **{f"{each}{unit}": "w" for each in ("", "个", "個") for unit in ("星期", "礼拜", "禮拜")},
        **{f"{each}月": "m" for each in ("个", "個")},
        **{f"{each}半月": "hm" for each in ("个", "個")},
    },
    number=_NUMBER,
    amount=rf"(?<!第)(?<![\d.])(?P<an1>{_NUMBER})(?! ?月(?!前的半))",
    calendar_number=_TWO,
    month_number=rf"(?P<mn>{_TWO}) ?月(?!份额|份額|球|亮|饼|餅)(?:份)?(?:的? ?(?P<mdn>{_TWO}) ?[日号號])?",
    nth=rf"(?P<dn>\d{{1,2}}|[一二]?十[一二三四五六七八九]?|二十[一二三四五六七八九]?|三十一?) ?(?:号|號|日){_NO_DAY}",
    full_year=r"(?:(?:19|20)\d\d|[二一][〇零九][〇零一二三四五六七八九]{2}|[0-3]\d) ?年(?!代|级|款|版)(?:度)?",
    year_of=lambda said: _year_of(said),
    of=r"的? ?",
    year=" ?年",
    month=r" ?月(?!份额|份額)份?",
    day=r" ?[日号號]",
    quarter="(?:第 ?)?[一二三四1-4] ?季度?|[Qq][1-4]",
    half="半",
    weekend="(?:周|週)?末(?!尾|端)|(?:周|週)?六日",
    bare_weekend="(?:周|週)末(?!都|一般|通常|总|经常|常)",
    before=r" ?(?:之前|以前|前)(?!端|台|后|提|面|景|往|途|置|缀|几|天|晚)",
    after=r" ?(?:之后|以后|之後|以後|后|後)(?!端|台|面|来|續|续|果|天|期)",
    since=r"(?:以来|以來|开始|開始|起(?!床|来|飞|码))",
    deadline=r"(?:之前|以前|前|截止|为止)",
    every_before=r"每个?|每個?|每年的?|每月的?|每逢|逢",
    every_after=r"都会|的时候都|[\d一二三四五六七八九十]{1,3}(?:岁|歲)",
    slash=r"(?=之前|前|号|日|的|开|上线|到|\(|（|截止)",
    word_before=r"(?<!以)(?<!之)",
    bare_before=r"(?<![\d一二三四五六七八九十个個几半每])",
    weekday_before=r"(?<!(?<![上下这這本个個])[周週][一二三四五六日][到至~-])",
    weekday_after=r"(?!次|回|遍|倍|年|天|号|號|个月|個月)",
    weekday_alone=r"(?!(?:到|至|-|~)(?:周|週|星期))",  # Monday to Friday, without a week, is a habit
    season_after=r"(?=(?:之?前|之?后|开始|结束|要|去|会|我|准备|打算|回))",
    holiday_after=r"(?!礼物|禮物|树|樹|卡|歌|快乐|晚会|节目|帽)",
    passing="再过|再過|(?<![通超经經])(?:过|過)(?!了)",
)


def _year_of(said: str) -> int:
    digits = said.split("年")[0].strip()
    if digits.isdecimal():
        return int(digits) + (2000 if len(digits) == 2 else 0)
    return number(digits)
