"""Slots that are told alike in every language: versions, ports, tools of choice, birthdays, numbers, output language.

A slot makes a newer statement end an older one, so it is filled only where the sentence says plainly that something is
so now: what fails, is planned or is denied fills none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from lamina.atoms.builtin.judgement import Judgement
from lamina.text.language import Language

F = re.IGNORECASE
_DOUBT = re.compile(
    r"\b(?:not|n't|never|no longer|without|fails?|failed|broke|breaks?|bug|error|crash\w*|because|before|until|was|were|had|"
    r"requires?|needs?|supports?|compatible|deprecated|legacy|old)\b|"
    r"안 |않|못 |없|때문|버그|오류|실패|필요|지원|예정|전에는|不(?!用)|没|沒|因为|因為|报错|失败|支持|需要|之前|以前|打算|计划|"
    r"ない(?!で)|ません|ため|エラー|失敗|バグ|対応|必要|予定|以前",
    F,
)
# names by which a tool is called -> (name, what kind of thing there is one of at a time)
_TOOLS: Mapping[str, tuple[str, str]] = {
    alias: (names.split()[0], kind)
    for kind, rows in {
        "database": (
            "postgres postgresql 포스트그레스",
            "mysql",
            "mariadb",
            "sqlite",
            "mongodb mongo 몽고디비",
            "duckdb",
            "oracle",
            "dynamodb",
            "clickhouse",
        ),
        "cache": ("redis 레디스", "memcached", "valkey"),
        "runtime": (
            "python 파이썬 パイソン",
            "node node.js nodejs 노드",
            "java 자바 jdk openjdk",
            "ruby 루비",
            "go golang",
            "php",
            "rust 러스트",
            "kotlin 코틀린",
            "swift",
            "dart",
            "deno",
            "typescript 타입스크립트",
            ".net dotnet",
            "scala",
            "elixir",
        ),
        "framework": (
            "spring-boot 스프링부트 springboot",
            "django 장고",
            "rails",
            "react 리액트",
            "vue 뷰",
            "angular",
            "svelte",
            "next.js nextjs",
            "flutter 플러터",
            "fastapi",
            "flask",
            "laravel",
        ),
        "packages": ("npm", "pnpm", "yarn", "bun", "pip", "poetry", "uv", "conda", "maven", "gradle"),
        "editor": ("vim", "neovim", "emacs", "vscode", "intellij", "pycharm", "zed", "cursor"),
        "queue": ("kafka 카프카", "rabbitmq", "nats", "sqs"),
        "orchestrator": ("kubernetes k8s 쿠버네티스", "nomad"),
        "system": ("ubuntu 우분투", "debian", "fedora", "alpine"),
        "container": ("docker 도커", "podman"),
        "search": ("elasticsearch", "opensearch", "meilisearch"),
        "format": ("parquet", "csv", "avro", "orc"),
        "ci": ("github-actions", "gitlab-ci", "jenkins", "circleci"),
    }.items()
    for names in rows
    for alias in names.split()
}
_NAMES = "|".join(sorted(map(re.escape, _TOOLS), key=len, reverse=True))
_TOOL = re.compile(
    rf"(?<![\w./-])(?P<tool>{_NAMES}|스프링 부트|Spring Boot)(?: ?(?:は|を|が|은|는|을|를))?"
    r"(?: (?:version|버전|版本|バージョン))? ?v?(?P<version>\d{1,4}(?:\.\d{1,4}){0,3})?(?![\w/]|\.\d)",
    F | re.ASCII,
)
_STANDS = re.compile(
    r"\b(?:(?:we|i)(?:'re| are|'m| am| have| 've)? ?(?:now |still |currently |just )?(?:on|use|using|run|running|moved|upgraded|"
    r"switched|migrated|went|bumped|chose|picked|settled)|moved|upgraded|switched|migrated|bumped|replaced|standardi[sz]ed|"
    r"going with|decided (?:on|to use)|runs? on|uses?|is now|it's|are on|is on)\b|"
    r"(?:써|씁|쓰고|사용|올렸|올림|바꿨|바꾸|바뀌|옮겼|전환|교체|이전|업그레이드|가기로|쓰기로|저장하기로|입니다|이야)|"
    r"(?:用的?是?|升级到|升級到|升到|换成|換成|换到|改用|迁移到|遷移到|切到|切换到|采用|選用|选用|决定用|跑的?是)|"
    r"(?:使って|使い|上げ|にしま|にしたい?|にした|移行|乗り換え|切り替え|変更|採用|アップグレード|保存すること|です|で動い)",
    F,
)
_TARGET = re.compile(
    r"(?:\b(?:to|with|on|use|using|it's|chose|picked|settled on|over to) |到|成|改用|决定用|採用|采用)\s?$", F
)
_PORT = re.compile(
    r"(?:\bport(?: (?:is|was|to|number|changed to|moved to))?(?: now)? ?:?|포트(?:는|가|를|은)? ?(?:번호는 )?|"
    r"端口(?:号)?(?:是|为|改成|改为|换成|改到|：)? ?|ポート(?:番号)?(?:は|が|を|も)? ?)(\d{2,5})(?![\d.])",
    F,
)
_PLACES: Mapping[str, str] = {
    "staging": r"staging|스테이징|預發|预发|検証|ステージング",
    "test": r"\btest|테스트|测试|測試|テスト",
    "dev": r"\bdev|개발|开发|開発",
    "prod": r"\bprod|운영|线上|生产|本番",
    "api": r"\bapi\b",
    "db": r"\b(?:db|database|postgres|mysql)\b|데이터베이스|数据库|データベース",
    "admin": r"\badmin|관리자|管理",
    "web": r"\b(?:web|frontend|front-end)\b|프론트|前端|フロント",
}
_BIRTHDAY = re.compile(
    r"\bmy birthday(?:'s| is)(?: on)? (?P<en>(?:the )?[\w ]{3,24})|(?:제|내|나의|저의)?\s?생일은\s?(?P<ko>\d{1,2}월\s?\d{1,2}일)|"
    r"我?的?生日(?:是|在)?\s?(?P<zh>[\d一二三四五六七八九十]{1,3}月[\d一二三四五六七八九十]{1,3}[号日號])|"
    r"誕生日は\s?(?P<ja>\d{1,2}月\d{1,2}日)",
    F,
)
_JOBS: Mapping[Language, re.Pattern[str]] = {
    "ko": re.compile(
        r"(?:저는 |나는 |난 |전 |지금은 |현재 |이제 |^)([가-힣 ]{0,8}?(?:간호사|의사|교사|선생님|개발자|디자이너|기자|변호사|작가|번역가|요리사|"
        r"회계사|약사|엔지니어|연구원|교수|공무원|프리랜서|기획자|PD|셰프|사서))(?:예요|이에요|입니다|이야|야|로 일|로 근무)"
    ),
    "zh": re.compile(
        r"我(?:现在)?(?:是|当|做)(?:一?[名个位])?([一-鿿]{0,5}(?:老师|教师|护士|医生|律师|工程师|程序员|设计师|翻译|会计|厨师|司机|经理|教授|研究员|"
        r"记者|作家|编辑|药师|自由职业者|公务员|学生|產品經理|護士|醫生|工程師|設計師|老師))(?=$|[，,。！!\s了的])"
    ),
    "ja": re.compile(
        r"(?:^|私は|僕は|俺は|今は|現在は|、)([一-鿿ァ-ヶー]{0,8}?(?:看護師|医師|教師|教員|エンジニア|デザイナー|弁護士|作家|翻訳家|記者|会計士|薬剤師|研究者|"
        r"料理人|公務員|フリーランス|編集者|保育士|プログラマー|美容師))(?:です|をして|として|やって|になり|になった|だよ|$)"
    ),
}
_MEASURES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (
        name,
        re.compile(
            rf"(?:{words})(?:[^\d。.，,、]{{0,14}}?)(\d[\d.,]*\s?(?:%|[A-Za-z]{{1,7}}\b|[가-힣一-鿿ァ-ヶー]{{1,3}}(?=[으이을를로은는에でにをへが了。.,，]|$))?)",
            F,
        ),
    )
    for name, words in {
        "timeout": r"\btime-?out\b|타임아웃|超时(?:时间)?|逾時|タイムアウト",
        "budget": r"\bbudget\b|예산|预算|預算|予算",
        "rent": r"\brent\b|월세|房租|家賃",
        "limit": r"\b(?:rate limit|limit|quota)\b|한도|제한은|上限|限额|制限は",
        "retention": r"\bretention\b|보관 ?기간|保留(?:时间|期)|保存期間|保持期間",
        "team": r"\b(?:team size|headcount)\b|팀원은|团队人数|チームの人数",
        "weight": r"\bmy weight\b|몸무게|体重",
        "retries": r"\bretr(?:y limit|ies)\b|재시도 ?횟수|重试次数|リトライ回数",
    }.items()
)
_LANGUAGES: Mapping[str, str] = {
    "en": r"\benglish\b|영어|英文|英语|英語",
    "ko": r"\bkorean\b|한국어|한글로|우리말|韩语|韩文|韓国語",
    "zh": r"\b(?:chinese|mandarin)\b|중국어|中文|汉语|简体|繁体|中国語",
    "ja": r"\bjapanese\b|일본어|日语|日文|日本語",
    "de": r"\bgerman\b|독일어|德语|ドイツ語",
    "fr": r"\bfrench\b|프랑스어|불어|法语|フランス語",
    "es": r"\bspanish\b|스페인어|西班牙语|スペイン語",
}
_SAYS = re.compile(
    r"\b(?:answer|reply|respond|write|speak|talk|use|output|responses?|answers?|replies)\b|답|대답|말해|출력|작성|써|회답|쓰|"
    r"回答|回复|回覆|答复|输出|说话|交流|用|答え|回答|返事|返信|話|書|出力|で(?:お願い|頼)",
    F,
)


def filled(found: Judgement, sentence: str, language: Language) -> Judgement:
    """The judgement with its slot and value, where the sentence fills one and the rules of its language found none."""
    if found.slot:
        return found
    for slot, value in _candidates(found, sentence, language):
        type = "persona" if slot.startswith("user.") and found.type.startswith("work_") else found.type
        return replace(found, type=type, slot=slot, value=value.strip().casefold())
    return found


def is_yearly(slot: str) -> bool:
    """Whether the day that fills the slot comes back every year: it says nothing of when the statement holds."""
    return slot == "user.birthday"


def _candidates(found: Judgement, sentence: str, language: Language) -> Iterator[tuple[str, str]]:
    if found.type == "instruction":
        if found.scope != "scenario" and found.polarity > 0:
            yield from _output(sentence)
        return
    birthday = _BIRTHDAY.search(sentence)
    if birthday:
        yield "user.birthday", next(group for group in birthday.groups() if group)
    if found.type in ("persona", "episodic") and language in _JOBS and (job := _JOBS[language].search(sentence)):
        yield "user.job", job[1]
    port = _PORT.search(sentence)
    if port:
        place = next((name for name, words in _PLACES.items() if re.search(words, sentence, F)), "")
        yield f"port:{place}" if place else "port", port[1]
    if found.type not in ("work_method", "work_artifact", "work_task") and not _DOUBT.search(sentence):
        yield from _tools(sentence)
        for name, pattern in _MEASURES:
            if (number := pattern.search(sentence)) is not None:
                yield f"number:{name}", number[1]


def _tools(sentence: str) -> Iterator[tuple[str, str]]:
    """The version or tool that is told of: of two the one that was changed to."""
    if not _STANDS.search(sentence):
        return
    tools = list(_TOOL.finditer(sentence))
    tools.sort(key=lambda one: (_TARGET.search(sentence, 0, one.start()) is None, one.start()))
    for tool in tools:
        said = tool["tool"].casefold().replace(" ", "")
        name, kind = _TOOLS.get(said) or _TOOLS["springboot"]
        if tool["version"]:
            yield f"tool.version:{name}", tool["version"]
        elif kind in ("database", "cache", "packages", "editor", "queue", "format", "ci", "search"):
            yield f"tool.choice:{kind}", name


def _output(sentence: str) -> Iterator[tuple[str, str]]:
    if not _SAYS.search(sentence):
        return
    named = [code for code, words in _LANGUAGES.items() if re.search(words, sentence, F)]
    if len(named) == 1:
        yield "output.language", named[0]
