"""Test, build and service logs, and stack traces: failures and the summary before progress and repeats."""

from __future__ import annotations

import re

from lamina.digest.kinds.plan import Content, Plan, probe, repeats

TROUBLE = re.compile(
    r"(?:^|[\s\[(:>✗×])(?:error|errors|err!|fatal|fail|failed|failure|failures|panic|panicked|critical|severe|denied"
    r"|exception|traceback|segmentation fault|core dumped|abort(?:ed)?|undefined|cannot|could not|unable|refused"
    r"|not found|no such|timed? ?out|오류|실패|错误|失败|エラー|例外|失敗)(?:$|[\s\]):,.!\[(=])|\w(?:Error|Exception|Failure)\b|^E\s{2,}|"
    r"error\[\w+\]|\b[A-Z]{2,5}\d{3,5}\b",
    re.IGNORECASE,
)
WARNING = re.compile(r"(?:^|[\s\[(])(?:warn|warning|deprecated|경고|警告)(?:$|[\s\]):,!])", re.IGNORECASE)
SUMMARY = re.compile(
    r"(?:=+ .*(?:passed|failed|error|warning|skipped).* =+|tests?(?: run| suites?|s)?:|\[INFO\] (?:BUILD|Tests run)"
    r"|BUILD (?:SUCCESS|FAIL)|test result:|ran \d+ tests?|ok\b.*\d|FAIL\b|PASS\b|\d+ (?:passed|failed|passing|failing)"
    r"|added \d+ packages|Successfully|Finished|make: \*\*\*|exit (?:code|status)|process exited|OK$|npm ERR!|error: (?:could"
    r"|aborting)|\[ERROR\].*goal)",
    re.IGNORECASE,
)
LEVEL = re.compile(
    r"(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|\w{3} +\d+ \d\d:\d\d:\d\d|\d{1,3}(?:\.\d{1,3}){3} - |\[(?:INFO|WARN"
    r"|WARNING|ERROR|DEBUG|TRACE)\]|(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\b|[IWEF]\d{4} |npm (?:ERR|WARN|notice)"
    r"|level=|time=|> (?:Task )?:|checking (?:for|whether)|(?:Compiling|Downloading|Downloaded|Installing|Building|Fetching"
    r"|Collecting|Unpacking|Setting up|Get:\d|Hit:\d|Requirement already|Step \d|#\d+ )|.*(?:PASSED|FAILED|SKIPPED|ERROR)"
    r"(?:\s+\[ *\d+%\])?$|[.FEsx]{5,}|(?:ok|not ok) \d+|--- (?:PASS|FAIL|SKIP)|=== RUN|\s*[✓✔✗✕×] |.*: (?:error|warning"
    r"|note|fatal error)(?:\[\w+\])?:|.*\(\d+,\d+\): (?:error|warning)|make(?:\[\d+\])?: )"
)
FRAME = re.compile(
    r"(?:at\s+[\w.$<>/@ \[\]-]+\(|at .*:\d+:\d+|File \"[^\"]+\", line \d+|\S+\.go:\d+|\d+: +0x|#\d+ +(?:0x|\S+ \()"
    r"|from \S+:\d+:in|\.{3} \d+ more|goroutine \d+)"
)
RAISED = re.compile(
    r"(?:Traceback \(most recent|Caused by:|(?:Uncaught |Unhandled )?[\w.$]*(?:Error|Exception|Failure|Panic)\b[:\s]"
    r"|panic:|thread '.*' panicked|fatal error:|Exception in thread)"
)
FOREIGN = re.compile(
    r"site-packages|dist-packages|node_modules|/usr/lib|java\.base|\bjava\.|\bjavax\.|\bsun\.|jdk\.internal|org\.junit|org\.apache"
    r"\.maven|org\.gradle|lib/python\d|node:internal|\.cargo/registry|/rustc/|/go/src/runtime|runtime/|\[native code\]|<frozen"
)


def looks(content: Content) -> bool:
    """A third of the lines are log lines, or frames of a stack follow a message."""
    probed = probe(content.lines.lines)
    logged = framed = raised = 0
    for line in probed:
        logged += bool(LEVEL.match(line.body))
        framed += bool(FRAME.match(line.body))
        raised += bool(RAISED.match(line.body))
    if content.lines.own:
        return False
    return logged + framed >= max(2, 0.3 * len(probed)) or (raised > 0 and framed > 0)


def plan(content: Content) -> Plan:
    """Messages of failures, summaries and own frames count most; what repeats counts next to nothing."""
    lines = content.lines.lines
    again = repeats(lines)
    factors: list[float] = []
    raised: list[int] = []
    summaries: list[int] = []
    failures = 0
    for index, line in enumerate(lines):
        body = line.body
        if RAISED.match(body):
            factors.append(4.0)
            if not again[index] and not body.startswith("Traceback"):
                raised.append(index)
        elif FRAME.match(body):
            factors.append(0.15 if FOREIGN.search(body) else 1.5)
        elif SUMMARY.match(body):
            factors.append(3.0)
            summaries.append(index)
        elif TROUBLE.search(body):
            factors.append(0.5 if again[index] else 3.0)
            failures += 1
        elif WARNING.search(body):
            factors.append(0.2 if again[index] else 1.2)
        else:
            factors.append(0.1 if again[index] else 0.5)
    lead = [*summaries[-2:], *raised[-1:], *raised[:2]]
    if lines and len(lines) - 1 not in lead:
        lead.append(len(lines) - 1)
    trouble = failures + len(raised)
    return Plan(f"log, {trouble} lines of trouble" if trouble else "log", factors, lead)
