"""Test, build and service logs, and stack traces: failures and the summary before progress and repeats."""

from __future__ import annotations

import re

from lamina.digest.kinds.plan import Content, Plan, any_of, probe, repeats

TROUBLE = re.compile(
    r"(?:^|[\s\[(:>\"✗×])(?:"
    + any_of(
        "error errors err! fatal fail failed failure failures panic panicked critical severe denied exception",
        "traceback aborted undefined cannot unable refused timeout rejected unresolved",
        "오류 실패 错误 失败 エラー 例外 失敗",
    )
    + r"|segmentation fault|core dumped|could not|not found|no such|timed out)(?:$|[\s\]):,.!\[(=\"])"
    r"|\w(?:Error|Exception|Failure)\b|^E\s{2,}|error\[\w+\]|\b[A-Z]{2,5}\d{3,5}\b",
    re.IGNORECASE,
)
WARNING = re.compile(r"(?:^|[\s\[(])(?:warn|warning|deprecated|경고|警告)(?:$|[\s\]):,!])", re.IGNORECASE)
SUMMARY = re.compile(
    r"=+ .*(?:passed|failed|error|warning|skipped).* =+|tests?(?: run| suites?|s)?:|\[\w+\] (?:BUILD|Tests run)"
    r"|BUILD (?:SUCCESS|FAIL)|test result:|ran \d+ tests?|\d+ (?:passed|failed|passing|failing|problems?)\b"
    r"|added \d+ packages|Successfully|make(?:\[\d+\])?: \*\*\*|exit (?:code|status)|process exited|OK$"
    r"|npm ERR! code|error: (?:could|aborting)|\[ERROR\].*goal|found \d+ (?:errors?|vulnerabilit)",
    re.IGNORECASE,
)
# Any one of these makes a log of the text around it.
BANNER = re.compile(
    r"=+ (?:test session starts|FAILURES|ERRORS|short test summary)|=+ .*\d (?:passed|failed).* in [\d.]+|npm ERR! "
    r"|\[INFO\] |\[ERROR\] |BUILD FAIL|--- FAIL: |Tests run: \d|Caused by: |error\[E\d+\]|error: could not compile"
    r"|[\w./@+-]+:\d+:(?:\d+:)? (?:fatal )?(?:error|warning): |[\w./@+-]+\(\d+,\d+\): error |make(?:\[\d+\])?: \*\*\*"
    r"|panic: |thread '.*' panicked|\s*✗ |Unhandled exception|E999 "
)
LEVEL = re.compile(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|\w{3} +\d+ \d\d:\d\d:\d\d|\d{1,3}(?:\.\d{1,3}){3} - "
    r"|\[?(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\b|[IWEF]\d{4} |npm (?:ERR|WARN|notice)|level=|time=|> Task :"
    r"|(?:"
    + any_of("Compiling Downloading Downloaded Installing Building Fetching Collecting Unpacking Preparing Selecting")
    + r"|checking (?:for|whether)|Setting up|Get:\d|Hit:\d|Ign:\d|Requirement already|Step \d|#\d+) "
    r"|.*(?:PASSED|FAILED|SKIPPED|ERROR)(?:\s+\[ *\d+%\])?$|\S+ [.FEsx]{5,}|[.FEsx]{8,}|(?:not )?ok \d+"
    r"|--- (?:PASS|FAIL|SKIP)|=== RUN|[✓✔✗✕×] |.*: (?:error|warning|note|fatal error)(?:\[\w+\])?:|make(?:\[\d+\])?: "
)
FRAME = re.compile(
    r"at\s+[\w.$<>/@ \[\]-]+\(|at .*:\d+:\d+|File \"[^\"]+\", line \d+|\S+\.go:\d+|\d+: +0x|#\d+ +(?:0x|\S+ \()"
    r"|from \S+:\d+:in|\.{3} \d+ more|goroutine \d+|[\w./-]+\.\w+:\d+: (?:in|\w*(?:Error|Exception))"
)
RAISED = re.compile(
    r"Traceback \(most recent|(?:Uncaught |Unhandled )?[\w.$]*(?:Error|Exception|Failure|Panic)\b(?:[:\s]|$)"
    r"|Caused by:|panic:|thread '.*' panicked|fatal error:|Exception in thread|E\s{2,}\S"
)
FOREIGN = re.compile(
    any_of("site-packages dist-packages node_modules /usr/lib node:internal /rustc/ runtime/ <frozen")
    + r"|java\.base|\b(?:java|javax|sun|jdk\.internal|org\.(?:junit|apache\.maven|gradle|springframework))\."
    r"|lib/python\d|\.cargo/registry|/go/src/runtime|\[native code\]"
)
EXTRA = 300  # characters: what failed is worth more than what worked
LEADING = 4  # lines of failures that come before everything else


def looks(content: Content) -> bool:
    """A third of the lines are log lines, or one line is what only tools print when they fail or finish."""
    if content.lines.own or content.text[:1] in ("{", "<"):
        return False
    probed = probe(content.lines.lines)
    logged = framed = raised = 0
    for line in probed:
        if BANNER.match(line.body):
            return True
        logged += bool(LEVEL.match(line.body))
        framed += bool(FRAME.match(line.body))
        raised += bool(RAISED.match(line.body))
    return logged + framed >= max(2, 0.3 * len(probed)) or (raised > 0 and framed > 0)


def plan(content: Content) -> Plan:
    """Messages of failures, the summary and own frames count most; what repeats counts next to nothing."""
    lines = content.lines.lines
    again = repeats(lines)
    factors: list[float] = []
    first: list[int] = []
    summaries: list[int] = []
    for index, line in enumerate(lines):
        factor = rate(line.body, again=again[index])
        factors.append(factor)
        if SUMMARY.match(line.body):
            summaries.append(index)
        elif factor >= 3.0 and not line.body.startswith("Traceback"):
            first.append(index)
    lead = [*summaries[-1:], *first[:1], *first[-1:], *first[1:LEADING], *summaries[-2:-1]]
    if lines and not summaries:
        lead.append(len(lines) - 1)
    found = len(first)
    return Plan(f"log, {found} distinct errors" if found else "log", factors, lead, whole=True, extra=EXTRA)


def rate(body: str, *, again: bool) -> float:
    """How much a line of a log counts; `again` = an earlier line says the same, numbers aside."""
    if body.startswith(("===", "---", "___", "***")) and not SUMMARY.match(body):
        return 0.1
    if FRAME.match(body):
        return 0.1 if again or FOREIGN.search(body) else 1.5
    if RAISED.match(body) or TROUBLE.search(body):
        return 0.3 if again else 3.0
    if SUMMARY.match(body):
        return 2.0
    if WARNING.search(body):
        return 0.1 if again else 1.2
    return 0.05 if again else 0.4
