"""What is forgotten is gone: from the log, the ledger, the views and every file; the rest stays as it was."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import Raw

from lamina import events, ids
from lamina.atoms.act import BuiltinAct
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.client import Memory
from lamina.client.outbox import Outbox, Waiting
from lamina.errors import Forgotten, Invalid
from lamina.events import ContextCut, PersonaEdited, RecallAsked, TurnRecorded
from lamina.forget import anew, erase, run
from lamina.forget.run import forget, rest, resume, unfinished
from lamina.home import Home
from lamina.rebuild.home import connected
from lamina.requests import Forget
from lamina.runtime.embedcache import EmbedCache
from lamina.runtime.spec import Made, Wanted
from lamina.store import View
from lamina.times import aware, parse
from lamina.verify.run import verify
from tests.support.atoms import AtomsBench, plain
from tests.support.mixed import SPACE, folded, put, spoken
from tests.support.toy import rows, running, until, view_file
from tests.support.traces import traces
from tests.support.whole import daemon, sources

SECRETS = ("zqxmarmalade", "김오렌지마멀레이드", "橙子果酱的秘密", "オレンジマーマレード")


async def secrets(memory: Memory, n: int) -> None:
    """One session in which a secret is told in four languages, among much else."""
    for word in SECRETS:
        await memory.turn(
            "user", f"My favourite is {word}, and I live in Seoul.", session=f"s{n}", turn_id=f"{n}{word}"
        )
        await memory.turn("assistant", "Good to know.", session=f"s{n}")
    await memory.tool_result(
        "shell", {"n": n}, "\n".join(f"{SECRETS[0]} line {m}" for m in range(400)), session=f"s{n}", call_id=f"c{n}"
    )
    await memory.tool_result("shell", {}, f"{SECRETS[1]} " * 20_000, session=f"s{n}", call_id=f"big{n}")
    await memory.end_session(f"s{n}")


async def others(memory: Memory) -> None:
    for n in range(6):
        await memory.turn("user", f"I always drink tea number {n}.", session="other", turn_id=f"tea{n}")
    await memory.tool_result("shell", {}, "a result\n" * 200, session="other", call_id="kept")
    await memory.end_session("other")


async def test_a_session_is_gone_to_the_last_byte(home: Home) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await others(memory)
        await secrets(memory, 1)
        await memory.settled()
        before = await memory.recall("tea", limit=10, deadline_s=10, layers=["l0"])
        async with connected(home) as bus:
            assert await traces(home, bus, SECRETS)

            dry = await memory.forget(session="s1", dry_run=True)
            assert await traces(home, bus, SECRETS)
            done = await memory.forget(session="s1")

            assert (dry.said, dry.ids, dry.messages) == (done.said, done.ids, 0)
            assert done.said == {"session.ended": 1, "tool.returned": 2, "turn.recorded": 8}
            assert done.derived["atoms.extracted"] >= 1
            assert done.found == ()
            assert done.looked_for > 10
            assert await traces(home, bus, SECRETS) == []
            await memory.settled()
            assert (await verify(home, bus, ["alice"])).findings == ()
        after = await memory.recall("tea", limit=10, deadline_s=10, layers=["l0"])
        assert {item.text for item in after.items} == {item.text for item in before.items}
        assert (await memory.recall(SECRETS[0], limit=10, deadline_s=10)).items == ()
        assert "s1" not in json.dumps(sources(home, "alice"))
    assert not list((home.space("alice") / "canvas").glob("s1*"))
    assert await _found_on_disk(home, SECRETS) == []


async def _found_on_disk(home: Home, words: tuple[str, ...]) -> list[str]:
    files = [path for path in home.path.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path.name for path in files if any(word.encode() in path.read_bytes() for word in words)]


async def test_one_turn_goes_and_what_was_derived_with_it_is_derived_again(home: Home) -> None:
    """The extraction of a window that held the turn is erased; its other turns get their atoms anew."""
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        for n, text in enumerate(("I live in Busan.", "My cat is called Zqxnero.", "I work at a bakery.")):
            await memory.turn("user", text, session="s", turn_id=f"t{n}")
        await memory.end_session("s")
        await memory.settled()
        wanted = {"I live in Busan.", "I work at a bakery."}
        atoms = view_file(home, "alice", "atoms")
        old = {row[0] for row in rows(atoms, "SELECT id FROM atoms")}

        done = await memory.forget(turn="t1")

        await memory.settled()
        kept = rows(atoms, "SELECT id, text FROM atoms ORDER BY n")
        assert len(kept) == 2
        assert all("Zqxnero" not in text for _, text in kept)
        assert {id for id, _ in kept} - old, "the window is decided again"
        assert set(dict(rows(atoms, "SELECT text, outcome FROM turns")).values()) == {1}
        assert {row[0] for row in rows(view_file(home, "alice", "journal"), "SELECT text FROM turns")} == wanted
        async with connected(home) as bus:
            assert await traces(home, bus, ["Zqxnero", "zqxnero"]) == []
            assert (await verify(home, bus, ["alice"])).findings == ()
    assert done.said == {"turn.recorded": 1}


async def test_forgotten_ids_stay_dead(home: Home) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        accepted = await memory.turn("user", "the zqxcode is 1234", session="s", turn_id="t1")
        await memory.turn("user", "something else", session="s", turn_id="t2")
        await memory.settled()
        await memory.forget(event=accepted.id)

        with pytest.raises(Forgotten):
            await memory.turn("user", "the zqxcode is 1234", session="s", turn_id="t1")
        assert [item.text for item in (await memory.recall("zqxcode something", deadline_s=10)).items] == [
            "something else"
        ]


@pytest.mark.parametrize(
    "request_",
    [
        Forget(),
        Forget(events=("x",), sessions=("s1",)),
        Forget(matches=("",)),
        Forget(sessions=("nobody",)),
        Forget(events=("nothing",)),
        Forget(between=(parse("2026-01-02T00:00:00Z"), parse("2026-01-01T00:00:00Z"))),
    ],
)
async def test_what_means_nothing_changes_nothing(home: Home, request_: Forget) -> None:
    log = MemoryLog()
    await spoken(MemoryBus(log))
    await folded(home, log)
    last = log.last_seq

    with pytest.raises(Invalid):
        await forget(home, MemoryBus(log), SPACE, request_)
    assert log.last_seq == last


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Forget(turns=("nobody",), dry_run=True), 0),
        (Forget(sessions=("s1", "s2")), 20),
        (Forget(matches=("POSTGRESQL에",)), 5),
        (Forget(matches=("long text 9",)), 1),
        (Forget(matches=("no event",)), 1),
        (Forget(entities=("postgresql",)), 10),
        (Forget(entities=("postgres",)), 0),
        (Forget(nodes=(ids.node_id("t4"), ids.node_id("t10"))), 2),
        (Forget(between=(parse("2025-11-24T16:00:00Z"), parse("2025-11-24T16:00:02Z"))), 5),
    ],
)
async def test_ways_to_say_what_is_meant(home: Home, request_: Forget, said: int) -> None:
    log = MemoryLog()
    bus = MemoryBus(log)
    await spoken(bus)
    await folded(home, log)
    if request_.turns:
        with pytest.raises(Invalid):
            await forget(home, bus, SPACE, request_)
        return

    done = await forget(home, bus, SPACE, request_)

    assert sum(done.said.values()) == said
    assert done.found == ()
    assert (await verify(home, bus, [SPACE])).findings == ()


async def test_a_whole_space_is_emptied(home: Home) -> None:
    log = MemoryLog()
    bus = MemoryBus(log)
    await spoken(bus)
    await spoken(bus, space="bob")
    await folded(home, log)
    await folded(home, log, "bob")
    bob = {one.seq for one in log.messages.values() if ".bob." in one.subject}

    done = await forget(home, bus, SPACE, Forget(all=True))

    left = [one for one in log.messages.values() if ".alice." in one.subject]
    assert [one.subject.rsplit(".", 1)[1] for one in left] == ["memory-forgotten"]
    assert bob <= log.messages.keys()
    assert done.found == ()
    root = home.spaces / SPACE
    assert [path.name for folder in ("refs", "canvas", "blobs") for path in (root / folder).glob("*")] == []
    assert (await verify(home, bus, [SPACE, "bob"])).findings == ()


async def test_vectors_of_what_is_gone_are_dropped_to_the_last_byte(home: Home) -> None:
    log = MemoryLog()
    bus = MemoryBus(log)
    await spoken(bus)
    await folded(home, log)
    view = view_file(home, SPACE, "vectors")
    hashes = dict(rows(view, "SELECT id, hash FROM texts"))
    vectors = np.arange(len(hashes) * 64, dtype=np.float32).reshape(len(hashes), 64) + 1
    cache = EmbedCache(home.spaces / SPACE, "model")
    await cache.open()
    await cache.put(list(hashes.values()), vectors)
    await cache.close()
    before = dict(rows(cache.path, "SELECT hash, vector FROM vectors"))

    done = await forget(home, bus, SPACE, Forget(sessions=("s1",)))

    gone = {hash for id, hash in hashes.items() if id in done.ids} - set(
        dict(rows(view, "SELECT hash, id FROM texts"))
    )
    assert done.vectors == len(gone) > 3
    assert dict(rows(cache.path, "SELECT hash, vector FROM vectors")) == {
        hash: vector for hash, vector in before.items() if hash not in gone
    }
    raw = b"".join(path.read_bytes() for path in cache.path.parent.iterdir())
    assert not [hash for hash in gone if hash.encode() in raw or before[hash] in raw]


async def test_what_waits_in_an_outbox_is_forgotten_too(home: Home) -> None:
    """Its client died before the log had it; another client that lives is named, and left alone."""
    log = MemoryLog()
    bus = MemoryBus(log)
    await spoken(bus)
    await folded(home, log)
    dead, living = (Outbox(home.outbox, max_bytes=1 << 20, name=name) for name in ("1-dead", "2-living"))
    for n, outbox in enumerate((dead, living)):
        for session in ("s1", "other"):
            data = TurnRecorded(role="user", text=f"zqxwaits{n}{session}")
            event = events.make(data, id=f"w{n}{session}", space=SPACE, session=session, time=aware(None))
            subject = ids.event_subject(SPACE, event.type)
            outbox.put(Waiting(subject, event.id, Raw(events.encode(event))), [])
    dead.close()

    done = await forget(home, bus, SPACE, Forget(sessions=("s1",)))

    assert "w0s1" in done.ids
    assert "zqxwaits0s1" not in dead.path.read_text()
    assert "zqxwaits0other" in dead.path.read_text()
    assert any("2-living" in one for one in done.unseen)
    living.close()


async def test_a_question_and_a_cut_go_with_their_session(home: Home) -> None:
    log = MemoryLog()
    bus = MemoryBus(log)
    await spoken(bus)
    await put(bus, RecallAsked(query="where is zqxhouse of mine?", limit=8), "q1", "s1", 3, SPACE)
    await put(bus, RecallAsked(query="where is zqxhouse of mine?", limit=8), "q2", "s2", 3, SPACE)
    cut = ContextCut(window_tokens=9, before=8, after=7, cuts=(), state={"note": "zqxnote of the session"})
    await put(bus, cut, "c1", "s1", 4, SPACE)
    await folded(home, log)

    await forget(home, bus, SPACE, Forget(sessions=("s1",)))
    assert await traces(home, bus, ["zqxnote"]) == []
    done = await forget(home, bus, SPACE, Forget(matches=("ZQXhouse",)))

    assert (done.said, done.found) == ({"recall.asked": 1}, ())
    assert await traces(home, bus, ["zqxhouse"]) == []


async def test_an_edit_that_quotes_what_is_gone_goes_too(home: Home) -> None:
    log = MemoryLog()
    bus = MemoryBus(log)
    await spoken(bus)
    await put(bus, TurnRecorded(role="user", text="I live near the zqxharbour of Busan."), "t1", "mine", 1, SPACE)
    quoted = PersonaEdited(path="persona.md", removed=("- I live near the zqxharbour of Busan.",), added=("- No.",))
    own = PersonaEdited(path="persona.md", added=("- Call me by my first name.",))
    await put(bus, quoted, "edit1", "", 2, SPACE)
    await put(bus, own, "edit2", "", 3, SPACE)
    await folded(home, log)

    done = await forget(home, bus, SPACE, Forget(sessions=("mine",)))

    assert ("edit1" in done.ids, "edit2" in done.ids, done.found) == (True, False, ())
    assert await traces(home, bus, ["zqxharbour"]) == []
    assert (await verify(home, bus, [SPACE])).findings == ()


async def test_a_repeated_import_brings_nothing_back(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    said = [f"zqxword{n} is what I said" for n in range(6)]
    turns = [{"role": "user", "text": text, "session": "s", "turn_id": f"t{n}"} for n, text in enumerate(said)]
    file.write_text("".join(json.dumps(turn) + "\n" for turn in turns), encoding="utf-8")
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await imported(home, file)
        await memory.forget(turn=["t1", "t4"])

        done = await imported(home, file)

        assert (done["turns"], done["known"], done["skipped"]) == (0, 4, {"forgotten on request": 2})
        async with connected(home) as bus:
            assert await traces(home, bus, ["zqxword1", "zqxword4"]) == []
            assert await traces(home, bus, ["zqxword2"])
            again = await imported(home, file, "--again")
            once_more = await imported(home, file, "--again")

            assert (again["turns"], again["known"], once_more["turns"], once_more["known"]) == (2, 4, 0, 6)
            hits = await memory.recall("zqxword1", deadline_s=10, layers=["l0"])
            assert hits.items[0].text == said[1]
            assert (await verify(home, bus, ["alice"])).findings == ()


async def imported(home: Home, file: Path, *more: str) -> Any:
    command = [sys.executable, "-m", "lamina.cli", "--home", str(home.path), "--space", "alice", "import", str(file)]
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, *more, "--json", stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


class Killed(BaseException):
    """As if the process had died."""


STEPS = (
    (run, "_journaled"),
    (erase, "in_log"),
    (erase, "in_ledgers"),
    (erase, "in_outboxes"),
    (anew, "views"),
    (anew, "vectors"),
    (run, "spare"),
    (run, "prove"),
)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", STEPS, ids=[name for _, name in STEPS])
async def test_a_kill_anywhere_and_the_rest_is_done(
    home: Home, monkeypatch: pytest.MonkeyPatch, step: tuple[Any, str], after: bool
) -> None:
    """Whoever comes next, with the same command or none, finishes it."""
    log = MemoryLog()
    bus = MemoryBus(log)
    await spoken(bus)
    await folded(home, log)
    module, name = step
    whole = getattr(module, name)
    words = ["line 4 1 of", "line 10 1 of", "long text 19"]

    def killed(*given: Any, **more: Any) -> Any:
        if after and not asyncio.iscoroutinefunction(whole):
            whole(*given, **more)
        raise Killed

    async def killed_later(*given: Any, **more: Any) -> Any:
        if after:
            await whole(*given, **more)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(module, name, killed_later if asyncio.iscoroutinefunction(whole) else killed)
        with pytest.raises(Killed):
            await forget(home, bus, SPACE, Forget(sessions=("s1",)))
    assert unfinished(home) == [SPACE]

    if after:
        (done,) = await resume(home, bus)
    else:
        done = await forget(home, bus, SPACE, Forget(sessions=("s1",)))
    assert done.found == ()

    assert unfinished(home) == []
    assert await traces(home, bus, words) == []
    assert (await verify(home, bus, [SPACE])).findings == ()


async def test_what_comes_again_is_passed_over_and_erased_again(home: Home) -> None:
    """A client that kept an event in its outbox publishes it later: no view takes it, verify names it."""
    log = MemoryLog()
    bus = MemoryBus(log)
    await spoken(bus)
    await folded(home, log)
    late = next(one for one in log.messages.values() if b'"id":"u1"' in one.data)
    await forget(home, bus, SPACE, Forget(events=("u1",)))
    await bus.publish(late.subject, late.data)
    await folded(home, log)

    (found,) = (await verify(home, bus, [SPACE])).findings
    assert (found.what, found.heal) == ("log.erased", f"lamina forget --rest --space {SPACE}")
    assert rows(view_file(home, SPACE, "journal"), "SELECT * FROM turns WHERE id = 'u1'") == []
    assert b'"u1"' not in b"".join(path.read_bytes() for path in home.space(SPACE).glob("log/*.jsonl")).replace(
        b'"ids":["u1"]', b""
    )

    done = await rest(home, bus, SPACE)

    assert (done.messages, done.found) == (1, ())
    assert (await verify(home, bus, [SPACE])).findings == ()


async def test_what_is_decided_meanwhile_is_thrown_away(home: Home) -> None:
    """A slow extractor has read what is forgotten while it thinks: its answer is never published."""
    bench = AtomsBench(home)
    asked = asyncio.Event()
    go_on = asyncio.Event()

    class Slow(BuiltinAct):
        async def __call__(self, wanted: Wanted, view: View) -> Made:
            first = not asked.is_set()
            asked.set()
            if first:
                await go_on.wait()
            return await super().__call__(wanted, view)

    await bench.say("fact about zqxsecret", id="t1")
    await bench.say("fact about tea", id="t2")
    worker = bench.worker(Slow(plain, name="plain", version="1"))
    async with running(worker):
        await asked.wait()
        await forget(home, bench.bus, SPACE, Forget(events=("t1",)))
        go_on.set()

        def known() -> bool:
            bench.clock.pass_s(60)
            worker.decider.stop_waiting()
            return "fact about tea" in bench.atoms()

        await until(known)
    assert [one.inputs for one in bench.extractions()] == [("t2",)]
    assert await traces(home, bench.bus, ["zqxsecret"]) == []


async def test_the_daemon_does_the_rest_when_it_starts(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await others(memory)
        await secrets(memory, 1)
        await memory.settled()
        with monkeypatch.context() as patch:
            patch.setattr(erase, "in_ledgers", _killed)
            async with connected(home) as bus:
                with pytest.raises(Killed):
                    await forget(home, bus, "alice", Forget(sessions=("s1",)))
    assert unfinished(home) == ["alice"]

    async with daemon(home):
        await until(lambda: not unfinished(home))
        async with connected(home) as bus:
            assert await traces(home, bus, SECRETS) == []


def _killed(*_: Any) -> int:
    raise Killed


async def test_the_verb(home: Home) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await others(memory)
        await secrets(memory, 1)
        await memory.settled()

        dry = await lamina(home, "--session", "s1", "--dry-run")
        done = await lamina(home, "--session", "s1")
        text = await said(home, "--turn", "tea0", "--yes")

        assert dry["dry_run"]
        assert (dry["said"], dry["ids"]) == (done["said"], done["ids"])
        assert (done["found"], done["dry_run"]) == ([], False)
        assert not any(word in json.dumps([dry, done], ensure_ascii=False) for word in SECRETS)
        assert "1 turn.recorded" in text
        assert "found none" in text
        assert "tea number" not in text
        async with connected(home) as bus:
            assert await traces(home, bus, SECRETS) == []
            await memory.settled()
            assert (await verify(home, bus, ["alice"])).findings == ()


async def lamina(home: Home, *arguments: str) -> Any:
    return json.loads(await said(home, *arguments, "--json"))


async def said(home: Home, *arguments: str) -> str:
    command = [sys.executable, "-m", "lamina.cli", "--home", str(home.path), "--space", "alice", "forget", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()
