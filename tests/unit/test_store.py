"""Views: whole transactions, typed errors, nothing left open by a cancelled await; readers follow the link."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.errors import Busy, Closed, DiskFull, Permanent, Transient, Unavailable
from lamina.store import Damaged, Table, View, ViewReader
from lamina.store.driver import SQLITE_VERSION, driver
from lamina.store.view import generation, generation_path, identity, remove_generation, switch, unused_generation

ROWS = Table(name="r", columns=("k", "v"), key=1, ddl="CREATE TABLE r(k INTEGER PRIMARY KEY, v TEXT NOT NULL) STRICT")


@pytest.fixture
async def view(tmp_path: Path) -> AsyncIterator[View]:
    one = View(tmp_path / "views" / "toy.db", (ROWS,), n=1)
    await one.open()
    switch(one.link, 1)
    yield one
    await one.close()


def count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM r").fetchone()[0])


def add(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO r VALUES((SELECT coalesce(max(k), 0) + 1 FROM r), 'x')")


async def test_a_transaction_is_all_or_nothing(view: View) -> None:
    def half(db: sqlite3.Connection) -> None:
        add(db)
        raise ValueError("in the middle")

    await view.transaction(add)
    with pytest.raises(ValueError, match="middle"):
        await view.transaction(half)

    assert await view.read(count) == 1
    await view.transaction(add)
    assert await view.read(count) == 2


async def test_cancelling_leaves_nothing_open(view: View) -> None:
    entered, go = threading.Event(), threading.Event()

    def slow(db: sqlite3.Connection) -> None:
        add(db)
        entered.set()
        go.wait(10)

    task = asyncio.create_task(view.transaction(slow))
    await asyncio.to_thread(entered.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()

    assert await view.read(count) == 1, "it ran to its own end"
    assert not await view.read(lambda db: db.in_transaction)


async def test_many_tasks_never_mix_their_transactions(view: View) -> None:
    await asyncio.gather(*(view.transaction(add) for _ in range(50)))

    assert await view.read(count) == 50


async def test_driver_errors_are_ours(view: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Permanent, match="no such table"):
        await view.transaction(lambda db: db.execute("SELECT * FROM missing"))
    with pytest.raises(Permanent, match="NOT NULL"):
        await view.transaction(lambda db: db.execute("INSERT INTO r VALUES(1, NULL)"))
    other = driver.connect(str(view.path), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    await view.read(lambda db: db.execute("PRAGMA busy_timeout=10"))
    with pytest.raises(Busy, match=r"toy\.1\.db"):
        await view.transaction(add)
    other.close()
    await view.close()
    with pytest.raises(Closed):
        await view.read(count)


async def test_a_file_that_is_no_database_is_damaged(tmp_path: Path) -> None:
    link = tmp_path / "toy.db"
    generation_path(link, 1).write_bytes(b"no database at all" * 1000)
    one = View(link, (ROWS,), n=1)
    with pytest.raises(Damaged):
        await one.open()
    await one.close()


async def test_a_checkpoint_that_could_not_end_is_busy(view: View) -> None:
    await view.transaction(add)
    reading = driver.connect(str(view.path), isolation_level=None)
    reading.execute("BEGIN")
    reading.execute("SELECT * FROM r").fetchall()
    await view.transaction(add)
    await view.read(lambda db: db.execute("PRAGMA busy_timeout=10"))
    with pytest.raises(Busy):
        await view.checkpoint()
    reading.close()
    await view.checkpoint()
    await view.checkpoint()


class TestReader:
    async def test_is_unavailable_until_there_is_a_view_and_then_follows(self, tmp_path: Path) -> None:
        reader = ViewReader(tmp_path / "views" / "toy.db")
        with pytest.raises(Unavailable):
            await reader.read(count)
        for n in (1, 2):
            view = View(reader.link, (ROWS,), n=n)
            await view.open()
            for _ in range(n):
                await view.transaction(add)
            switch(view.link, n)
            assert await reader.read(count) == n
            assert reader.n == n
            await view.close()
        assert identity(generation_path(reader.link, 1)) is None
        reader.link.unlink()
        with pytest.raises(Unavailable):
            await reader.read(count)
        await reader.close()
        await reader.close()

    async def test_never_writes(self, view: View) -> None:
        reader = ViewReader(view.link)
        with pytest.raises(Permanent):
            await reader.read(add)
        assert await reader.read(count) == 0
        await reader.close()

    async def test_ends_in_time_and_works_on(self, view: View) -> None:
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
        reader = ViewReader(view.link)
        with pytest.raises(Transient):
            await reader.read(lambda db: db.execute(endless).fetchone(), until_s=time.monotonic() + 0.05)
        assert await reader.read(count) == 0
        await reader.close()

    async def test_a_damaged_file_is_said_to_be(self, view: View) -> None:
        await view.transaction(add)
        await view.close()
        view.path.write_bytes(b"\xff" * 8192)
        reader = ViewReader(view.link)
        for _ in range(2):
            with pytest.raises(Damaged):
                await reader.read(count)
        assert reader.n == 1
        await reader.close()

    async def test_sees_one_moment(self, view: View) -> None:
        reader = ViewReader(view.link)
        first_read, go_on = threading.Event(), threading.Event()

        def twice(db: sqlite3.Connection) -> tuple[int, int]:
            before = count(db)
            first_read.set()
            go_on.wait(10)
            return before, count(db)

        task = asyncio.create_task(reader.read(twice))
        await asyncio.to_thread(first_read.wait, 10)
        await view.transaction(add)
        go_on.set()

        assert await task == (0, 0)
        assert await reader.read(count) == 1
        await reader.close()


def test_generations_are_never_used_again(tmp_path: Path) -> None:
    link = tmp_path / "toy.db"
    assert (generation(link), unused_generation(link)) == (0, 1)
    for n in (1, 2, 7):
        generation_path(link, n).write_bytes(b"")
    (tmp_path / "toy.x.db").write_bytes(b"")
    switch(link, 2)
    assert (generation(link), unused_generation(link)) == (2, 8)
    assert identity(generation_path(link, 1)) is None
    link.unlink()
    assert (generation(link), unused_generation(link)) == (0, 8)
    remove_generation(link, 7)
    assert unused_generation(link) == 3


def test_sqlite_is_new_enough_for_strict_tables_and_full_text() -> None:
    assert SQLITE_VERSION >= (3, 43)


async def test_a_generation_that_goes_while_it_is_read_is_followed_by_the_new_one(tmp_path: Path) -> None:
    link = tmp_path / "v.db"
    for n in (1, 2):
        view = View(link, (), n=n)
        await view.open()
        await view.transaction(lambda db, n=n: db.execute("INSERT INTO meta VALUES('n', ?)", (n,)))  # type: ignore[misc]
        await view.close()
    switch(link, 1)
    reader = ViewReader(link)

    def work(db: sqlite3.Connection) -> int:
        n = int(db.execute("SELECT value FROM meta WHERE key = 'n'").fetchone()[0])
        if n == 1:
            switch(link, 2)
            raise DiskFull("v.1.db: disk I/O error")  # what SQLite says when its files go under it
        return n

    try:
        assert await reader.read(work) == 2
    finally:
        await reader.close()


async def test_an_error_of_a_view_that_stays_is_raised(tmp_path: Path) -> None:
    link = tmp_path / "v.db"
    view = View(link, (), n=1)
    await view.open()
    switch(link, 1)
    reader = ViewReader(link)
    calls = 0

    def work(_: sqlite3.Connection) -> int:
        nonlocal calls
        calls += 1
        raise DiskFull("v.1.db: disk I/O error")

    try:
        with pytest.raises(DiskFull):
            await reader.read(work)
    finally:
        await reader.close()
        await view.close()

    assert calls == 1


async def test_a_closed_reader_opens_nothing_any_more(tmp_path: Path) -> None:
    reader = ViewReader(tmp_path / "views" / "toy.db")
    await reader.close()
    with pytest.raises(Closed):
        await reader.read(lambda db: db.execute("SELECT 1").fetchone())
