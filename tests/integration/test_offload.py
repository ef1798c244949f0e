"""Offloading through the client and a real log: stub, read-back, canvas, a context that fits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from lamina import ids
from lamina.client import Memory
from lamina.context import validate
from lamina.context.shapes import Provider
from lamina.errors import Invalid
from lamina.home import Home
from lamina.requests import Cuts, CutsAre, FitState, FitStateIs, Savings, SavingsAre
from tests.support.whole import daemon

SOURCE = "\n".join(f"def function_{n}(value):\n    return value + {n}" for n in range(400))


@pytest_asyncio.fixture
async def memory(home: Home) -> AsyncIterator[Memory]:
    async with daemon(home), Memory.open(space="alice", home=home.path) as opened:
        yield opened


def conversation(calls: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You fix bugs."}]
    messages.append({"role": "user", "content": "Fix the login."})
    for n in range(calls):
        function = {"name": "read_file", "arguments": json.dumps({"path": f"file{n}.py"})}
        call = {"id": f"call-{n}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call-{n}", "content": f"# file {n}\n{SOURCE[:6000]}"})
    return messages


async def test_the_stub_is_shorter_and_every_line_of_it_opens_the_result(memory: Memory) -> None:
    stub = await memory.tool_result("read_file", {"path": "a.py"}, SOURCE, session="s1", call_id="c1")
    part = await memory.read(stub.node, lines="1-800", max_tokens=50_000)

    assert len(stub.text) < len(SOURCE) / 10
    assert stub.node in stub.text
    assert part.total_lines == 800
    assert [line.split("|", 1)[1] for line in part.text.splitlines()] == SOURCE.splitlines()


async def test_read_finds_a_word_and_a_symbol_and_says_what_is_left_out(memory: Memory) -> None:
    stub = await memory.tool_result("read_file", {"path": "a.py"}, SOURCE, session="s1")
    found = await memory.read(stub.node, query="function_377", max_tokens=60)
    symbol = await memory.read(stub.node, symbol="function_12")

    assert "function_377" in found.text
    assert found.omitted
    assert "return value + 12" in symbol.text


@pytest.mark.parametrize("node", ["", "../../../etc/passwd", "n00000000000", "n" * 10_000, "a\x00b", "%"])
async def test_a_node_that_is_none_is_invalid_and_opens_nothing(memory: Memory, node: str) -> None:
    await memory.turn("user", "hello", session="s1")

    with pytest.raises(Invalid):
        await memory.read(node)


async def test_a_node_of_another_space_is_not_to_be_read(memory: Memory, home: Home) -> None:
    stub = await memory.tool_result("cat", {}, SOURCE, session="s1")
    async with Memory.open(space="bob", home=home.path) as other:
        await other.turn("user", "hello", session="s1")

        with pytest.raises(Invalid, match="no tool result"):
            await other.read(stub.node)


async def test_twenty_megabytes_come_back_exactly(memory: Memory, home: Home) -> None:
    text = "".join(f"{n:07d} the quick brown fox jumps over the lazy dog\n" for n in range(380_000))
    stub = await memory.tool_result("cat", {"path": "big"}, text, session="s1")
    part = await memory.read(stub.node, lines="379999-380000")

    assert len(stub.text) < 2_000
    assert "379998|" not in part.text
    assert f"{379_998:07d} the quick brown fox" in part.text
    blob = next((home.space("alice") / "blobs").iterdir())
    assert blob.read_text() == text


async def test_parallel_identical_calls_do_not_collide(memory: Memory) -> None:
    stubs = await asyncio.gather(*(memory.tool_result("ls", {}, SOURCE, session="s1") for _ in range(5)))

    assert len({stub.node for stub in stubs}) == 5


async def test_small_results_and_bytes(memory: Memory) -> None:
    small = await memory.tool_result("get", {"id": 7}, '{"ok":true}', session="s1")
    empty = await memory.tool_result("touch", {}, "", session="s1")
    binary = await memory.tool_result("cat", {}, b"\xff\xfe\x00" * 100, session="s1")

    assert small.text == '{"ok":true}'
    assert empty.text == ""
    assert "not text" in binary.text
    with pytest.raises(Invalid, match="is no text"):
        await memory.read(binary.node)


async def test_a_context_fits_stays_valid_and_is_the_same_for_the_next_client(memory: Memory, home: Home) -> None:
    messages = conversation(12)
    fitted = await memory.context(messages, session="s1", window_tokens=12_000)
    validate(fitted.messages, Provider.OPENAI)
    await memory.settled()
    async with Memory.open(space="alice", home=home.path) as other:
        again = await other.context(messages, session="s1", window_tokens=12_000)

    assert fitted.before > 12_000 >= fitted.tokens
    assert fitted.cuts
    assert again.messages == fitted.messages
    assert again.cuts == 0


async def test_what_a_context_cuts_was_recorded_first_and_can_be_read(memory: Memory) -> None:
    messages = conversation(12)
    await memory.context(messages, session="s1", window_tokens=12_000)
    node = ids.node_id(ids.source_id("alice", "s1", "call-0", "tool.returned"))
    part = await memory.read(node, lines="1-2")

    assert part.text.startswith("1|# file 0")


async def test_cuts_savings_and_canvas_are_told(memory: Memory, home: Home) -> None:
    await memory.turn("user", "Fix the login.", session="s1")
    await memory.context(conversation(12), session="s1", window_tokens=12_000)
    await memory.settled()
    cuts: CutsAre = await memory.ask("cuts", Cuts(session="s1"), CutsAre)
    saved: SavingsAre = await memory.ask("savings", Savings(), SavingsAre)
    state: FitStateIs = await memory.ask("fit-state", FitState(session="s1"), FitStateIs)

    assert cuts.cuts[0].before > cuts.cuts[0].after
    assert {cut["key"] for cut in cuts.cuts[0].cuts} >= {"call-0"}
    assert saved.result_tokens > 5 * saved.stub_tokens > 0
    assert state.canvas.startswith("flowchart TD")
    assert "Fix the login." in state.canvas
    assert (home.space("alice") / "canvas" / "s1.mmd").read_text() == state.canvas


async def test_a_list_no_provider_would_take_is_invalid_with_its_place(memory: Memory) -> None:
    with pytest.raises(Invalid, match="1"):
        await memory.context([{"role": "user", "content": "x"}, {"role": 7}], session="s1", window_tokens=1000)


async def test_secrets_never_leave_the_client(home: Home) -> None:
    home.config.write_text('[offload]\nredact = ["sk-[a-z0-9]+"]\n')
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        secret = "sk-" + "a1b2c3d4"
        stub = await memory.tool_result("sh", {"command": f"curl -H {secret}"}, f"{secret}\n{SOURCE}", session="s1")
        await memory.settled()
        part = await memory.read(stub.node, lines="1")

    assert part.text == "1|[redacted]"
    assert secret not in stub.text
    for path in home.path.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path
