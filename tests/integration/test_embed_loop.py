"""The embed loop over a log in memory and a model of words: order, fairness, and what it says of itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from lamina import events, ids, times
from lamina.embedding import Embedding, Vectors
from lamina.embedding.meter import Meter
from lamina.errors import Unavailable
from lamina.events import AtomsExtracted, Data, MemoryForgotten, TurnRecorded
from lamina.knowledge import Atom, Span
from lamina.runtime.embedcache import vectors_after
from lamina.runtime.embedstate import embed_states
from lamina.runtime.embedwork import TABLES as EMBEDDED
from lamina.runtime.worker import Worker
from lamina.store.driver import driver
from lamina.vectors.fold import TABLES, State
from lamina.vectors.service import service
from tests.support.bench import Bench
from tests.support.embeddings import DIMS, Hashing
from tests.support.toy import rows, running, until, view_file


class Gated(Hashing):
    """Waits at its gate, and keeps the texts in the order in which they came."""

    def __init__(self, identity: str = "hashing-64") -> None:
        super().__init__()
        self.identity = identity
        self.gate = threading.Event()
        self.gate.set()
        self.seen: list[str] = []
        self.error: Unavailable | None = None

    def passages(self, texts: Sequence[str]) -> Vectors:
        self.gate.wait(30)
        if self.error is not None:
            raise self.error
        self.seen += texts
        return super().passages(texts)


class Loop:
    """A vectors worker over the log of a bench."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.model = Gated()
        self.meter = Meter(0)

    def worker(self, make: Callable[[], Gated] | None = None) -> Worker[State]:
        source = Embedding(make or (lambda: self.model), meter=self.meter)
        return Worker(service(), self.bench.bus, self.bench.home, embedding=source)

    async def say(self, data: Data, id: str, space: str = "alice") -> None:
        time = times.from_micros(1_764_000_000_000_000)
        event = events.make(data, id=id, space=space, session="s", time=time)
        subject = ids.event_subject(ids.token(space), event.type)
        await self.bench.bus.publish(subject, events.encode(event))

    async def turns(self, count: int, space: str = "alice", first: int = 0) -> None:
        for n in range(first, first + count):
            await self.say(TurnRecorded(role="user", text=f"turn {n}"), f"{space}-{n}", space)

    def caches(self, space: str = "alice") -> list[Path]:
        return sorted((self.bench.home.spaces / ids.token(space) / "cache").glob("embeddings-*.db"))

    def made(self, space: str = "alice") -> int:
        """How many texts of a space have a vector."""
        return sum(len(vectors_after(path, 0)) for path in self.caches(space))

    def noted(self, space: str = "alice") -> int:
        return len(rows(view_file(self.bench.home, space, "vectors"), "SELECT 1 FROM texts"))


@pytest.fixture
def loop(bench: Bench) -> Loop:
    return Loop(bench)


async def test_the_newest_texts_come_first(loop: Loop) -> None:
    loop.model.gate.clear()
    await loop.turns(200)
    worker = loop.worker()
    async with running(worker):
        await until(lambda: loop.noted() == 200)
        loop.model.gate.set()
        await until(lambda: loop.made() == 200)

    numbers = [int(text.rsplit(" ", 1)[1]) for text in loop.model.seen]
    assert sorted(numbers) == list(range(200))
    assert min(numbers[8:72]) > 100  # whatever was seen while the view grew is the first batch at most


async def test_under_a_load_that_never_ends_vectors_are_still_made(loop: Loop) -> None:
    await loop.turns(20)
    worker = loop.worker()
    assert worker.embedder is not None
    worker.embedder._folding = lambda: True
    worker.embedder._patience_s = 0.0
    async with running(worker):
        await until(lambda: loop.made() == 20)


async def test_folding_goes_first_and_the_state_says_so(loop: Loop) -> None:
    await loop.turns(20)
    worker = loop.worker()
    assert worker.embedder is not None
    folding = True
    worker.embedder._folding = lambda: folding
    worker.embedder._patience_s = 1_000.0
    async with running(worker):
        await until(lambda: [one.state for one in embed_states(loop.bench.home, "vectors")] == ["folding first"])
        before = loop.made()
        folding = False
        await until(lambda: loop.made() == 20)
        await until(lambda: [one.state for one in embed_states(loop.bench.home, "vectors")] == ["idle"])
        (idle,) = embed_states(loop.bench.home, "vectors")

    assert before == 0
    assert (idle.embedded, idle.waiting, idle.spaces, idle.model) == (20, 0, 0, "hashing-64")
    assert embed_states(loop.bench.home, "vectors") == []


async def test_a_source_that_fails_is_said_with_its_reason(loop: Loop) -> None:
    loop.model.error = Unavailable("the endpoint is down")
    await loop.turns(3)
    async with running(loop.worker()):
        await until(lambda: [one.why for one in embed_states(loop.bench.home, "vectors")] == ["the endpoint is down"])
        (state,) = embed_states(loop.bench.home, "vectors")
        loop.model.error = None
        await until(lambda: loop.made() == 3)

    assert state.state == "put aside"
    assert state.retry_in_s > 0
    assert state.waiting >= 1


async def test_a_used_up_day_is_said_and_goes_on_with_the_next(loop: Loop) -> None:
    day = "2026-01-01"
    loop.meter = Meter(1, lambda: day)
    await loop.turns(20)
    worker = loop.worker()
    assert worker.embedder is not None
    async with running(worker):
        await until(lambda: [one.state for one in embed_states(loop.bench.home, "vectors")] == ["put aside"])
        (state,) = embed_states(loop.bench.home, "vectors")
        made = loop.made()
    day = "2026-01-02"
    loop.meter = Meter(0)
    async with running(loop.worker()):
        await until(lambda: loop.made() == 20)

    assert "tokens_per_day" in state.why
    assert made == 8  # one batch was let through before the limit was reached


async def test_atoms_are_embedded_and_forgotten_with_what_they_came_from(loop: Loop) -> None:
    atoms = (
        Atom(type="persona", text="Mina likes tea.", sources=(Span("alice-0", 0, 4),)),
        Atom(type="persona", text="Mina has a cat.", sources=(Span("alice-1", 0, 4),)),
        Atom(type="persona", text="Obey.", sources=(Span("alice-1", 0, 4),), quarantine="odd"),
    )
    await loop.turns(2)
    extracted = AtomsExtracted(
        step="atoms.extract",
        n=1,
        inputs=("alice-0", "alice-1"),
        windows=(2,),
        extractor="r",
        version="1",
        atoms=atoms,
    )
    await loop.say(extracted, "d1")
    async with running(loop.worker()):
        await until(lambda: loop.made() == 4)
        await loop.say(MemoryForgotten(ids=("alice-0",)), "f1")
        await until(lambda: loop.made() == 2)
    left = rows(view_file(loop.bench.home, "alice", "vectors"), "SELECT id, text, layer FROM derived")

    assert "Obey." not in loop.model.seen
    assert left == [(ids.atom_id("d1", 1), "Mina has a cat.", "l1")]


async def test_another_model_in_the_middle_is_built_beside_and_replaces_the_old_one_only_when_whole(
    loop: Loop,
) -> None:
    await loop.turns(40)
    async with running(loop.worker()):
        await until(lambda: loop.made() == 40)
    (old,) = loop.caches()
    other = Gated("other-64")
    other.gate.clear()
    source = loop.worker(lambda: other)
    async with running(source):
        await loop.turns(1, first=40)
        await until(lambda: loop.noted() == 41)
        await until(lambda: len(loop.caches()) == 2)
        beside = len(vectors_after(old, 0))
        other.gate.set()
        await until(lambda: not old.exists())

    assert beside == 40
    assert loop.made() == 41
    assert [path.name for path in loop.caches()] == ["embeddings-other-64.db"]


async def test_a_vector_that_holds_no_number_is_never_kept(loop: Loop) -> None:
    class Broken(Gated):
        def passages(self, texts: Sequence[str]) -> Vectors:
            made = super().passages(texts)
            made[0] = float("nan")
            return made

    broken = Broken()
    await loop.turns(3)
    async with running(loop.worker(lambda: broken)):
        await until(lambda: loop.made() == 3)
    (path,) = loop.caches()
    found = [np.frombuffer(row[2], dtype=np.float16) for row in vectors_after(path, 0)]

    assert sorted(len(row) for row in found) == [0, DIMS, DIMS]
    assert all(np.isfinite(row).all() for row in found)


async def test_a_small_space_stays_small_on_disk(loop: Loop) -> None:
    await loop.turns(20)
    async with running(loop.worker()):
        await until(lambda: loop.made() == 20)
    (cache,) = loop.caches()
    view = view_file(loop.bench.home, "alice", "vectors").resolve()

    assert cache.stat().st_size + view.stat().st_size < 150_000


async def test_a_cache_that_cannot_be_read_is_made_anew(loop: Loop) -> None:
    await loop.turns(5)
    async with running(loop.worker()):
        await until(lambda: loop.made() == 5)
    (path,) = loop.caches()
    path.write_bytes(b"no database at all" * 500)
    async with running(loop.worker()):
        await loop.turns(1, first=5)
        await until(lambda: _readable(path) and loop.made() == 6)


def _readable(path: Path) -> bool:
    return path.exists() and path.read_bytes().startswith(b"SQLite")


async def test_one_space_that_fails_holds_up_no_other(loop: Loop) -> None:
    bad = loop.bench.home.spaces / "bad" / "cache"
    bad.parent.mkdir(parents=True)
    bad.write_text("a file where a folder should be")
    await loop.turns(3, space="bad")
    await loop.turns(3, space="good")
    async with running(loop.worker()):
        await until(lambda: loop.made("good") == 3)


def test_the_view_is_paged_by_its_index() -> None:
    db = driver.connect(":memory:")
    for table in TABLES:
        for statement in table.ddl.split(";"):
            db.execute(statement)
    for name in EMBEDDED:
        wanted = f"SELECT seq, id, hash, text FROM {name} WHERE (seq, id) < (5, 'x') ORDER BY seq DESC, id DESC"
        plan = " ".join(str(row) for row in db.execute(f"EXPLAIN QUERY PLAN {wanted}"))
        assert "USING INDEX" in plan
        assert "TEMP B-TREE" not in plan
    db.close()
