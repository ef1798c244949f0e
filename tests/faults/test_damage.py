"""Random damage to a home: verification finds all of it, and what it names heals it, or says what is gone for good.

In CI a few homes; `./infra/test --faults` damages a hundred.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shlex
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.errors import LaminaError
from lamina.home import Home
from lamina.rebuild.ledger import mend
from lamina.rebuild.view import rebuild_view
from lamina.runtime.history import ledger_messages
from lamina.runtime.registry import fold_services
from lamina.runtime.trim import trim
from lamina.store.driver import connect
from lamina.verify.digests import digest
from lamina.verify.records import Finding
from lamina.verify.run import verify
from tests.support.mixed import SPACE, decided, files, spoken

RUNS = int(os.environ.get("LAMINA_FAULTS", "6"))
Damage = Callable[[Path, random.Random], str]
ROUNDS = 2
"""One finding may hide another: what a damaged ledger hides is seen when it is whole."""
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


def decision_dropped(whole: list[bytes], at: int) -> None:
    """The next line at or behind `at`, around the end, that a step decided."""
    decided = [n for n, line in enumerate(whole) if b'"step":' in line]
    del whole[next((n for n in decided if n >= at), decided[0])]


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


def view_flipped(root: Path, chance: random.Random) -> str:
    """A bit of the database itself: nothing is left of it in a write-ahead log, which would hide it."""
    path = (root / "views" / f"{chance.choice(sorted(fold_services()))}.db").resolve(strict=True)
    db = connect(path, readonly=False)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    raw = bytearray(path.read_bytes())
    at = chance.randrange(100, len(raw))  # the head holds counters, which say nothing
    raw[at] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(raw))
    return f"bit of byte {at} of {path.name}"


FILES: dict[str, Damage] = {
    "flipped ledger": flipped(LEDGER),
    "flipped file": flipped(RENDERED),
    "flipped blob": flipped("blobs/*"),
    "flipped epoch": flipped("log/epoch"),
    "flipped mark": flipped("log/trimmed"),
    "flipped persona": flipped("persona.md"),
    "flipped scenario": flipped("scenarios/*.md"),
    "flipped view": view_flipped,
    "cut ledger": cut(LEDGER),
    "cut file": cut(RENDERED),
    "cut blob": cut("blobs/*"),
    "cut view": cut("views/*.[0-9].db"),
    "cut epoch": cut("log/epoch"),
    "cut persona": cut("persona.md"),
    "deleted ledger": deleted(LEDGER),
    "deleted file": deleted(RENDERED),
    "deleted blob": deleted("blobs/*"),
    "deleted view": deleted("views/*.[0-9].db"),
    "deleted epoch": deleted("log/epoch"),
    "deleted mark": deleted("log/trimmed"),
    "deleted persona": deleted("persona.md"),
    "dropped line": lines(dropped),
    "dropped decision": lines(decision_dropped),
    "swapped lines": lines(swapped),
    "repeated line": lines(repeated),
    "deleted views": views_deleted,
    "stale write-ahead log": stale_log,
    "deleted row": row_changed,
}


def of_log(log: MemoryLog) -> dict[str, Damage]:
    """Messages that the log itself lost: any, or a decision; never the last, by which it knows how far it came."""

    def lost(needle: bytes) -> Damage:
        def damage(root: Path, chance: random.Random) -> str:
            there = [seq for seq, one in log.messages.items() if needle in one.data and ".ev." in one.subject]
            seq = chance.choice(there[:-1])
            log.remove(seq)
            return f"message {seq} lost by the log"

        return damage

    return {"lost message": lost(b""), "lost decision": lost(b'"step":')}


KINDS = [*FILES, *of_log(MemoryLog())]


async def obeyed(home: Home, log: MemoryLog, found: Sequence[Finding]) -> None:
    """Do what the findings name, each command once, in the order named, and nothing else."""
    bus = MemoryBus(log)
    for command in dict.fromkeys(one.heal for one in found if one.heal):
        match shlex.split(command):
            case ["rm", path]:
                Path(path).unlink(missing_ok=True)  # noqa: ASYNC240 - nothing else runs
            case ["lamina", "replay", "rebuild", "ledger", "--space", space]:
                await mend(bus, home, space)
            case ["lamina", "replay", "rebuild", name, "--space", space]:
                await rebuild_view(fold_services()[name], bus, home, space, lambda _: None)
            case unknown:
                raise AssertionError(f"nobody can be told to run {unknown}")


def digests(home: Home) -> dict[str, dict[str, str]]:
    """What the views say; of one that is not there, or cannot be read, nothing."""
    found = {}
    for name in fold_services():
        with contextlib.suppress(LaminaError, OSError):
            found[name] = digest(home.spaces / SPACE / "views" / f"{name}.db")
    return found


async def one_home(seed: int, tmp_path: Path, *, trimmed: bool) -> None:
    """Damage a home, find it, heal it by what is named alone; the log holds everything, or its tail."""
    chance = random.Random(seed)
    home = Home(tmp_path / f"home{seed}")
    home.prepare()
    log = MemoryLog()
    bus = MemoryBus(log)
    await spoken(bus, 40)
    await decided(home, log)
    if trimmed:
        await trim(home, bus, [SPACE], tuple(fold_services()), chance.randrange(1, log.last_seq))
    root = home.spaces / SPACE
    before, said, there = files(root), dict(log.messages), held(root, log)
    wanted = digests(home)
    done = []
    damages = {**FILES, **of_log(log)}
    first = KINDS[seed % len(KINDS)]
    for kind in [first, *chance.sample(KINDS, 0 if trimmed else chance.randint(0, 2))]:
        with contextlib.suppress(IndexError, ValueError, OSError):  # there is nothing of the kind, or no more
            done.append(f"{kind}: {damages[kind](root, chance)}")
    changed = files(root) != before or log.messages != said or digests(home) != wanted
    gone = there - held(root, log)

    found = (await verify(home, bus, [SPACE])).findings

    assert found or not changed, f"seed {seed}: {done} was not found"
    assert all(one.heal or one.lost for one in found), found
    left = found
    for _ in range(ROUNDS):
        await obeyed(home, log, left)
        left = (await verify(home, bus, [SPACE])).findings
    lost = any(one.lost for one in found)
    assert all(one.lost for one in left), f"seed {seed}: after {done}: {left}"
    assert lost == bool(gone), f"seed {seed}: {done} took {gone}: {found}"
    if not lost:
        assert left == (), f"seed {seed}: after {done}: {left}"
        assert kept(files(root)) == kept(before), f"seed {seed}: after {done}"
        assert digests(home) == wanted, f"seed {seed}: after {done}"
    shutil.rmtree(home.path)


def held(root: Path, log: MemoryLog) -> set[int | str]:
    """Events, by their positions, and blobs that somebody has: the log, or a line or file that can be read."""
    known: set[int | str] = {seq for seq, one in log.messages.items() if ".ev." in one.subject}
    known |= {one.subject.rpartition(".")[2] for one in log.messages.values() if ".blob." in one.subject}
    with contextlib.suppress(OSError):
        known |= {one.seq for one in ledger_messages(root, after=0, until=1 << 62, damaged=[])}
    blobs = (path for path in root.glob("blobs/*") if not path.name.startswith("."))
    return known | {path.name for path in blobs if hashlib.sha256(path.read_bytes()).hexdigest() == path.name}


def kept(found: dict[str, bytes]) -> dict[str, bytes]:
    """Without the copies of what could not be read or was taken for an edit, and without the mark of what the ledger
    alone holds."""
    aside = ("log.damaged", ".edits/", "log/trimmed")
    return {name: data for name, data in found.items() if not name.startswith(aside) and ".broken-" not in name}


@pytest.mark.parametrize("seed", range(RUNS))
async def test_damage_is_found_and_healed_from_the_log(tmp_path: Path, seed: int) -> None:
    await one_home(seed, tmp_path, trimmed=False)


@pytest.mark.parametrize("seed", range(1_000, 1_000 + RUNS // 2))
async def test_where_the_log_was_trimmed_damage_is_found_or_named_as_lost(tmp_path: Path, seed: int) -> None:
    await one_home(seed, tmp_path, trimmed=True)
