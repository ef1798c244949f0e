"""What memory is for: a wish said in passing is known the next day, and a long task keeps its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lamina.client import Memory
from lamina.home import Home
from tests.support.whole import daemon

WISHES = {
    "english": (
        ["I only use Tailwind CSS, skip the explanation, give me code", "Skip the explanation, give me code."],
        ["I only use Tailwind CSS", "Skip the explanation, give me code"],
    ),
    "korean": (
        ["저는 Tailwind CSS만 써요. 설명은 생략하고 코드만 주세요.", "설명은 생략하고 코드만 주세요."],
        ["Tailwind CSS만 써요", "설명은 생략하고 코드만 주세요"],
    ),
    "an instruction": (["결과물은 항상 한국어로 출력해 줘"], ["결과물은 항상 한국어로 출력해 줘"]),
}


@pytest.mark.parametrize("story", WISHES)
async def test_what_was_said_in_passing_is_known_the_next_day_without_any_search(home: Home, story: str) -> None:
    said, known = WISHES[story]
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        assert "Tailwind" not in (await memory.prompt("s0")).stable
        for day in (1, 2, 3):
            time = f"2026-11-0{day}T10:00:00+09:00"
            session = f"day-{day}"
            await memory.turn("user", "Can you build me a navigation bar?", session=session, time=time)
            await memory.turn("assistant", "Which framework should it use?", session=session, time=time)
            for text in said:
                await memory.turn("user", text, session=session, time=time)
            await memory.turn("assistant", "<nav class='flex'></nav>", session=session, time=time)
            await memory.end_session(session)
        await memory.settled(60.0)

        tomorrow = await memory.prompt("a new session")
        again = await memory.prompt("another one")
        chains = [
            await memory.why(line.rsplit(" · ", 1)[1]) for line in tomorrow.stable.splitlines() if " · p" in line
        ]

    for text in known:
        assert text in tomorrow.stable
    assert again.stable == tomorrow.stable
    assert [chain[-1].layer for chain in chains] == ["l0"] * len(chains)


def call(n: int, path: str) -> dict[str, Any]:
    arguments = json.dumps({"path": path})
    function = {"name": "read_file", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}],
    }


@pytest.mark.parametrize(
    ("goal", "status"),
    [
        ("Migrate the billing service from MySQL to PostgreSQL.", "28 of 28 files are read; next: port the queries."),
        ("결제 서비스를 MySQL에서 PostgreSQL로 옮겨 줘.", "파일 28개를 모두 읽었고 다음은 쿼리를 옮기는 일입니다."),
    ],
)
async def test_after_sixty_turns_goal_status_and_place_of_every_file_are_in_the_context(
    home: Home, goal: str, status: str
) -> None:
    window = 24_000
    paths = [f"billing/module_{n}/queries_{n}.sql" for n in range(28)]
    messages: list[dict[str, Any]] = [{"role": "user", "content": goal}]
    nodes: dict[str, str] = {}
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await memory.turn("user", goal, session="m")
        for n, path in enumerate(paths):
            lines = [
                f"SELECT a{row}, b{n} FROM t{row} WHERE c{row} = {n * row} LIMIT 1, {row};" for row in range(120)
            ]
            result = "\n".join(lines)
            stub = await memory.tool_result("read_file", {"path": path}, result, session="m", call_id=f"c{n}")
            nodes[path] = stub.node
            messages += [call(n, path), {"role": "tool", "tool_call_id": f"c{n}", "content": result}]
        messages += [{"role": "user", "content": "Where are we?"}, {"role": "assistant", "content": status}]
        messages.append({"role": "user", "content": "Go on."})
        for message in messages[-3:]:
            await memory.turn(message["role"], message["content"], session="m")
        await memory.settled(60.0)

        fitted = await memory.context(messages, session="m", window_tokens=window)
        prompt = await memory.prompt("m")
        part = await memory.read(nodes[paths[3]], lines="7")

    assert len(messages) == 60
    assert fitted.before > window
    assert fitted.tokens <= window
    text = json.dumps(fitted.messages, ensure_ascii=False)
    assert goal in text
    assert status in text
    assert [path for path in paths if nodes[path] not in text] == []
    assert f"Goal: {goal}" in prompt.dynamic
    assert f"Status: {status}" in prompt.dynamic
    assert "LIMIT 1, 6;" in part.text
