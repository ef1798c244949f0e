"""The vector leg by itself: when it reads a space, what it keeps, and what a question without time leaves behind."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pytest

from lamina.embedding import Embedding
from lamina.home import Home
from lamina.query.positions import Positions
from lamina.query.vectors import VectorLeg
from lamina.runtime.embedcache import EmbedCache
from lamina.store.driver import connect
from lamina.store.view import RUNTIME_DDL
from lamina.vectors.fold import TABLES

T = TypeVar("T")
DIMS = 4


class Model:
    """Knows every question by its number."""

    identity, dims, batch = "m", DIMS, 8

    def __init__(self) -> None:
        self.asked = 0

    def passages(self, texts: Any) -> Any:
        raise AssertionError("nothing is embedded here")

    def query(self, text: str) -> Any:
        self.asked += 1
        return np.eye(DIMS, dtype=np.float32)[int(text)]


class Views:
    """What the leg asks of the positions, on one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reads = self.written = 0
        self.begun = asyncio.Event()
        self.going = asyncio.Event()
        self.going.set()
        path.parent.mkdir(parents=True)
        db = connect(path, readonly=False)
        for ddl in (RUNTIME_DDL, *(table.ddl for table in TABLES)):
            for statement in ddl.split(";"):
                db.execute(statement)
        db.close()

    def link(self, space: str, service: str) -> Path:
        return self.path

    async def touch(self, space: str, service: str) -> None:
        """Nobody fills the space."""

    async def read(self, space: str, service: str, work: Callable[[sqlite3.Connection], T]) -> T:
        self.begun.set()
        await self.going.wait()
        self.reads += 1
        db = connect(self.path, readonly=True)
        try:
            return work(db)
        finally:
            db.close()

    def write(self, *seqs: int) -> None:
        db = connect(self.path, readonly=False)
        rows = [(f"e{n}", n, f"h{n}", "other", "text") for n in seqs]
        db.executemany("INSERT INTO texts VALUES(?, ?, ?, ?, ?)", rows)
        db.close()
        self.written += 1
        self.settle()

    def settle(self) -> None:
        """As if what was written had been written long ago."""
        for file in (*self.path.parent.iterdir(), *(self.path.parent.parent / "cache").glob("*")):
            os.utime(file, ns=(0, self.written))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def leg(home: Home, *seqs: int) -> tuple[VectorLeg, Views, Model]:
    views = Views(home.spaces / "a" / "views" / "vectors.db")
    model = Model()
    cache = EmbedCache(home.spaces / "a", "m")
    await cache.open()
    await cache.put([f"h{n}" for n in seqs], np.eye(DIMS, dtype=np.float32)[list(seqs)])
    await cache.close()
    views.write(*seqs)
    return VectorLeg(home, cast("Positions", views), Embedding(lambda: model)), views, model


async def test_a_space_that_nobody_writes_to_is_read_once(home: Home) -> None:
    made, views, _ = await leg(home, 1, 2)
    near = [await made.near("a", "2"), await made.near("a", "1")]

    assert [one.cosine(1) for one in near] == [0.0, 1.0]
    assert views.reads == 1


async def test_what_was_written_since_is_read(home: Home) -> None:
    made, views, _ = await leg(home, 1, 2)
    await made.near("a", "2")
    views.write(3)
    near = await made.near("a", "2")

    assert near.texts == 3
    assert views.reads == 2


async def test_files_that_were_written_a_moment_ago_are_not_relied_upon(home: Home) -> None:
    made, views, _ = await leg(home, 1)
    os.utime(views.path)
    await made.near("a", "2")
    await made.near("a", "2")

    assert views.reads == 2


async def test_a_reading_goes_on_when_the_question_has_no_more_time(home: Home) -> None:
    made, views, _ = await leg(home, 1)
    views.going.clear()
    first = asyncio.create_task(made.near("a", "2"))
    await views.begun.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    views.going.set()
    second = await made.near("a", "2")

    assert second.cosine(1) == 0.0
    assert views.reads == 1


async def test_a_question_is_embedded_once(home: Home) -> None:
    made, _, model = await leg(home, 1)
    await asyncio.gather(*(made.near("a", "2") for _ in range(3)))
    await made.near("a", "2")
    await made.near("a", "1")

    assert model.asked <= 4  # three at once may each ask; the fourth and later never do
    before = model.asked
    await made.near("a", "1")
    assert model.asked == before
