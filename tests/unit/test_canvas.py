"""The canvas: what it shows, that it stays small, and that Mermaid itself parses it."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from lamina.offload.canvas import CallSeen, Canvas, TurnSeen, fold, relabel, render, terms
from lamina.tokens import count

MERMAID = os.environ.get("LAMINA_MERMAID_DIR", "")  # taken before the tests are shielded from the caller's settings
HOSTILE = [
    'say "hi" end',
    "end",
    "`markdown` **b**",
    "a\nb\r\nc\u2028d",
    "%% comment %%{init: {'theme':'dark'}}%%",
    "%%{ init }%%",
    "click s1 call alert() href",
    "<script>alert(1)</script><br/>",
    "[[x]] ((y)) {z} |p| >flag]",
    "A --> B; C -.-> D & E",
    "style s1 fill:#f00; classDef x color:#123;",
    "#quot; #35; &lt; &amp; #9829;",
    "1. first - second",
    "- list",
    "subgraph x\nend",
    "---\ntitle: x\n---",
    "\ud800 lone \udfff",
    "\u202eright to left\u202c \u200b\ufeff\x00\x07\x1b[31m",
    "漢字と 한국어 和 emoji 👩‍👩‍👧‍👦",
    "C:\\Users\\x \\n \\\\",
    "x" * 10_000,
    "\"" * 200,
    "",
    " \n\t ",
    ":::class ::: @{ shape: x }",
    "$$x^2$$ ~~~ ==> --x --o o-- x--",
    "accTitle: a\naccDescr { b }",
    "default graph flowchart TD LR linkStyle 0",
]  # fmt: skip


def told(*seen: CallSeen | TurnSeen) -> Canvas:
    canvas = Canvas()
    for item in seen:
        canvas = fold(canvas, item)
    return canvas


def test_goal_calls_states_and_order_are_shown() -> None:
    canvas = told(
        TurnSeen("user", "Make the parser accept empty lines"),
        TurnSeen("assistant", "I look first"),
        CallSeen("n1", "open", '{"path":"src/parser.py"}', False),
        CallSeen("n2", "pytest", '{"args":"tests/test_parser.py"}', True),
        CallSeen("n3", "edit", '{"path":"src/parser.py","text":"x"}', None),
    )

    assert render(canvas) == (
        "flowchart TD\n"
        '  goal(["Make the parser accept empty lines"])\n'
        '  s1["open src/parser.py, done, n1"]\n'
        '  s2["pytest tests/test_parser.py, failed, n2"]\n'
        '  s3["edit src/parser.py, doing, n3"]\n'
        "  goal --> s1 --> s2 --> s3\n"
    )


def test_the_same_node_again_tells_how_the_call_ended() -> None:
    canvas = told(CallSeen("n1", "run", "make", None), CallSeen("n1", "run", "make", True))

    assert 's1["run make, failed, n1"]' in render(canvas)
    assert "s2" not in render(canvas)


def test_an_edge_shows_where_an_argument_first_stood_in_a_result() -> None:
    found = terms("src/deep/OrderMapper.java:41: class OrderMapper implements Mapper", 24)
    canvas = told(
        TurnSeen("user", "Fix the mapping of README.md"),
        CallSeen("n1", "find", "mapper", False, found),
        CallSeen("n2", "ls", ".", False, terms("README.md OrderMapper", 24)),
        CallSeen("n3", "grep", '{"pattern": "class OrderMapper"}', False),
        CallSeen("n4", "cat", "README.md", False),
    )

    assert "s1 -.-> s3" in render(canvas)
    assert "-.-> s4" not in render(canvas), "the user named the file before any result did"


def test_later_user_turns_are_phases_and_name_the_group_they_fold_into() -> None:
    canvas = told(TurnSeen("user", "First task"), *(CallSeen(f"a{i}", "ls", f"dir{i}") for i in range(3)))
    canvas = fold(canvas, TurnSeen("user", "Now the second task"))
    for i in range(14):
        canvas = fold(canvas, CallSeen(f"b{i}", "open", "x.py"))

    text = render(canvas)

    assert '"ls 3, dir0, a0 to a2"' in text
    assert '"Now the second task: open' in text
    assert "goal --> g1 --> g5" in text


@pytest.mark.parametrize(
    "said", ["fix src/main.py line 12", "수정해 주세요 테스트 파일을", "请修复这个测试文件里的错误"]
)
def test_canvas_and_state_stay_small_for_any_length(said: str) -> None:
    canvas = told(TurnSeen("user", said * 40))
    for i in range(2_000):
        canvas = fold(
            canvas, CallSeen(f"n{i:011d}", f"tool{i % 7}", said * 9, i % 9 == 0, terms(f"f/{i}.py m{i}x", 24))
        )
        if i % 50 == 0:
            canvas = fold(canvas, TurnSeen("user", said * 9))

    assert count(render(canvas)) < 900
    assert len(msgspec.json.encode(canvas)) < 40_000


def test_labels_change_words_and_nothing_else() -> None:
    canvas = told(TurnSeen("user", "go"), CallSeen("n1", "open", "a.py"), CallSeen("n2", "open", "b.py"))

    changed = relabel(canvas, {"n2": 'read "b"', "n9": "unknown"})

    assert render(changed) == render(canvas).replace("open b.py", "read 'b'")


def test_state_survives_json() -> None:
    canvas = told(*hostile_events(3))

    assert msgspec.json.decode(msgspec.json.encode(canvas), type=Canvas) == canvas


def hostile_events(seed: int) -> list[CallSeen | TurnSeen]:
    draw = random.Random(seed)
    events: list[CallSeen | TurnSeen] = []
    for _ in range(draw.randint(0, 30)):
        words = [draw.choice(HOSTILE) for _ in range(5)]
        if draw.random() < 0.2:
            events.append(TurnSeen("user", words[0]))
        else:
            arguments = words[3] if draw.random() < 0.5 else json.dumps({words[3][:20]: words[4]})
            events.append(
                CallSeen(words[1], words[2], arguments, draw.choice([True, False, None]), terms(words[0], 24))
            )
    return events


def test_mermaid_parses_every_canvas() -> None:
    node = shutil.which("node")
    if node is None or not Path(MERMAID, "node_modules", "mermaid").is_dir():
        pytest.skip("needs node and LAMINA_MERMAID_DIR, a folder with the npm packages mermaid and jsdom")
    texts = [render(told(TurnSeen("user", word), CallSeen(word, word, word))) for word in HOSTILE]
    texts += [render(told(*hostile_events(seed))) for seed in range(200)]
    script = Path(__file__).with_name("canvas_parses.mjs")

    env = {**os.environ, "LAMINA_MERMAID_DIR": MERMAID}
    ran = subprocess.run([node, script], input=json.dumps(texts), env=env, capture_output=True, text=True, check=True)

    assert json.loads(ran.stdout) == {"parsed": len(texts), "failures": []}
