"""Random damage to a home: verification finds all of it, and what it names heals it, or says what is gone for good.

In CI a few homes; `./infra/test --faults` damages a hundred.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.home import Home
from lamina.rebuild.home import chosen_views
from lamina.rebuild.ledger import mend
from lamina.rebuild.view import rebuild_view
from lamina.runtime.registry import fold_services
from lamina.runtime.trim import trim
from lamina.store.driver import connect
from lamina.verify.digests import digest
from lamina.verify.run import verify
from tests.support.mixed import SPACE, files, folded, spoken

RUNS = int(os.environ.get("LAMINA_FAULTS", "6"))
Damage = Callable[[Path, random.Random], str]
LEDGER, RENDERED = "log/*.jsonl", "[rc]*s/*"


def chosen(root: Path, pattern: str, chance: random.Random) -> Path:
    return chance.choice(sorted(path for path in root.glob(pattern) if path.is_file() and not path.is_symlink()))


def flipped(pattern: str) -> Damage:
    def damage(root: Path, chance: random.Random) -> str:
        path = chosen(root, pattern, chance)
        raw = bytearray(path.read_bytes())
        at = chance.randrange(len(raw))
        raw[at] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(raw))
        return f"bit of byte {at} of {path.name}"

    return damage


def cut(pattern: str) -> Damage:
    def damage(root: Path, chance: random.Random) -> str:
        path = chosen(root, pattern, chance)
        size = chance.randrange(path.stat().st_size)
        path.write_bytes(path.read_bytes()[:size])
        return f"{path.name} cut to {size} bytes"

    return damage


def deleted(pattern: str) -> Damage:
    def damage(root: Path, chance: random.Random) -> str:
        path = chosen(root, pattern, chance)
        path.unlink()
        return f"{path.name} deleted"

    return damage


def views_deleted(root: Path, chance: random.Random) -> str:
    shutil.rmtree(root / "views")
    return "views deleted"


def lines(change: Callable[[list[bytes], int], None]) -> Damage:
    def damage(root: Path, chance: random.Random) -> str:
        path = chosen(root, LEDGER, chance)
        whole = path.read_bytes().splitlines(keepends=True)
        at = chance.randrange(len(whole) - 1)
        change(whole, at)
        path.write_bytes(b"".join(whole))
        return f"{change.__name__} at line {at + 1}"

    return damage


def dropped(whole: list[bytes], at: int) -> None:
    del whole[at]


def swapped(whole: list[bytes], at: int) -> None:
    whole[at], whole[at + 1] = whole[at + 1], whole[at]


def repeated(whole: list[bytes], at: int) -> None:
    whole.insert(at, whole[at])


def stale_log(root: Path, chance: random.Random) -> str:
    """A write-ahead log of an earlier day beside the database of today, as a careless restore leaves it."""
    link = root / "views" / f"{chance.choice(sorted(fold_services()))}.db"
    path = link.resolve()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        shutil.copy(path, copy)
        db = connect(copy, readonly=False)
        db.execute("UPDATE meta SET value = 1 WHERE key = 'applied_seq'")
        shutil.copy(f"{copy}-wal", f"{path}-wal")
        db.close()
    return f"stale write-ahead log beside {path.name}"


def row_changed(root: Path, chance: random.Random) -> str:
    db = connect((root / "views" / "journal.db").resolve(strict=True), readonly=False)
    sql = "DELETE FROM turns WHERE seq = (SELECT seq FROM turns ORDER BY seq LIMIT 1 OFFSET ?)"
    db.execute(sql, [chance.randrange(20)])
    db.close()
    return "a row deleted"


DAMAGES: list[Damage] = [
    *(flipped(pattern) for pattern in (LEDGER, LEDGER, RENDERED, "blobs/*")),
    *(cut(pattern) for pattern in (LEDGER, RENDERED, "blobs/*", "views/*.[0-9].db")),
    *(deleted(pattern) for pattern in (LEDGER, RENDERED, "blobs/*", "views/*.[0-9].db")),
    *(lines(change) for change in (dropped, swapped, repeated)),
    *(views_deleted, stale_log, row_changed),
]


async def healed(home: Home, bus: MemoryBus) -> None:
    """What the findings say, all of it."""
    await mend(bus, home, SPACE)
    for name in chosen_views([]):
        await rebuild_view(fold_services()[name], bus, home, SPACE, lambda _: None)


def digests(home: Home) -> dict[str, dict[str, str]]:
    return {name: digest(home.spaces / SPACE / "views" / f"{name}.db") for name in fold_services()}


async def one_home(seed: int, tmp_path: Path, *, trimmed: bool) -> None:
    """Damage a home, find it, heal it; the log holds everything, or its tail alone."""
    chance = random.Random(seed)
    home = Home(tmp_path / f"home{seed}")
    home.prepare()
    log = MemoryLog()
    bus = MemoryBus(log)
    await spoken(bus, 40)
    await folded(home, log)
    if trimmed:
        await trim(home, bus, [SPACE], tuple(fold_services()), chance.randrange(1, 30))
    root = home.spaces / SPACE
    before, wanted = files(root), digests(home)
    done = []
    for damage in chance.sample(DAMAGES, 1 if trimmed else chance.randint(1, 3)):
        with contextlib.suppress(IndexError, ValueError, OSError):  # an earlier one left nothing to damage
            done.append(damage(root, chance))
    changed = files(root) != before or any(not (root / "views" / f"{name}.db").exists() for name in wanted)

    found = (await verify(home, bus, [SPACE])).findings

    assert found or not changed, f"seed {seed}: {done} was not found"
    assert all(one.heal or one.lost for one in found), found
    await healed(home, bus)
    left = (await verify(home, bus, [SPACE])).findings
    if not trimmed:
        assert left == (), f"seed {seed}: after {done}: {left}"
        assert files(root) | kept(root) == before | kept(root), f"seed {seed}: after {done}"
        assert digests(home) == wanted, f"seed {seed}: after {done}"
    shutil.rmtree(home.path)


def kept(root: Path) -> dict[str, bytes]:
    """Copies of what could not be read, for whoever may repair it."""
    return {name: data for name, data in files(root).items() if name.startswith("log.damaged")}


@pytest.mark.parametrize("seed", range(RUNS))
async def test_damage_is_found_and_healed_from_the_log(tmp_path: Path, seed: int) -> None:
    await one_home(seed, tmp_path, trimmed=False)


@pytest.mark.parametrize("seed", range(1_000, 1_000 + RUNS // 2))
async def test_where_the_log_was_trimmed_damage_is_found_or_named_as_lost(tmp_path: Path, seed: int) -> None:
    await one_home(seed, tmp_path, trimmed=True)
