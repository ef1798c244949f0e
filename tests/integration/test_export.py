"""A space goes into one file and comes back elsewhere, under another name, twice; what is no archive is refused."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lamina import events, ids, times
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.errors import Invalid, LaminaError
from lamina.events import MemoryForgotten
from lamina.export.archive import export
from lamina.export.check import checked
from lamina.export.records import Manifest, Member
from lamina.export.restore import restore
from lamina.export.text import _fenced, jsonl, markdown, write
from lamina.home import Home
from lamina.runtime.registry import fold_services
from lamina.runtime.trim import trim
from lamina.verify.digests import digest
from lamina.verify.run import verify
from tests.support.mixed import SPACE, files, folded, put, spoken


class Place:
    """A home and a log of its own."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder)
        self.home.prepare()
        self.log = MemoryLog()
        self.bus = MemoryBus(self.log)

    def events(self, space: str = SPACE) -> list[bytes]:
        subject = f".{ids.token(space)}."
        return [one.data for one in self.log.messages.values() if ".ev." in one.subject and subject in one.subject]


@pytest.fixture
async def here(tmp_path: Path) -> Place:
    place = Place(tmp_path / "here")
    await spoken(place.bus)
    await folded(place.home, place.log)
    return place


@pytest.fixture
def there(tmp_path: Path) -> Place:
    return Place(tmp_path / "there")


@pytest.mark.parametrize("trimmed", [False, True])
async def test_a_space_comes_back_elsewhere_as_it_was(
    here: Place, there: Place, tmp_path: Path, *, trimmed: bool
) -> None:
    if trimmed:
        await trim(here.home, here.bus, [SPACE], tuple(fold_services()), 25)
    done = await export(here.home, here.bus, SPACE, tmp_path / "a.tar")

    back = await restore(there.home, there.bus, tmp_path / "a.tar")
    await folded(there.home, there.log)

    assert back.published == done.events - 1, "a repetition is not published again"
    assert (await verify(there.home, there.bus, [SPACE])).findings == ()
    one, other = files(here.home.spaces / SPACE), files(there.home.spaces / SPACE)
    for path in (path for path in one if not path.startswith("log/")):
        assert other[path] == one[path]
    assert words(there) == words(here)


def words(place: Place) -> dict[str, str]:
    """What keyword recall finds: positions are another log's, what was said is not."""
    return {"sessions": digest(place.home.spaces / SPACE / "views" / "journal.db")["sessions"]}


async def test_restoring_again_changes_nothing(here: Place, there: Place, tmp_path: Path) -> None:
    await export(here.home, here.bus, SPACE, tmp_path / "a.tar")
    first = await restore(there.home, there.bus, tmp_path / "a.tar")
    log = there.events()

    again = await restore(there.home, there.bus, tmp_path / "a.tar")

    assert (again.published, again.known) == (0, first.events)
    assert there.events() == log


async def test_into_another_space_of_the_same_home(here: Place, tmp_path: Path) -> None:
    await export(here.home, here.bus, SPACE, tmp_path / "a.tar")

    back = await restore(here.home, here.bus, tmp_path / "a.tar", "Алиса 2")
    again = await restore(here.home, here.bus, tmp_path / "a.tar", "Алиса 2")
    await folded(here.home, here.log, "Алиса 2")

    moved = [event for event in map(decoded, here.events("Алиса 2")) if event]
    source = {event.id: event for event in map(decoded, here.events()) if event}
    assert {event.space for event in moved} == {"Алиса 2"}
    assert {event.id for event in moved} == set(source)
    assert again.published == 0 < back.published
    assert (await verify(here.home, here.bus, [ids.token("Алиса 2")])).findings == ()


def decoded(raw: bytes) -> events.Event | None:
    try:
        return events.decode(raw)
    except Invalid:
        return None


async def test_what_was_forgotten_does_not_come_back(here: Place, there: Place, tmp_path: Path) -> None:
    await export(here.home, here.bus, SPACE, tmp_path / "a.tar")
    await put(there.bus, MemoryForgotten(ids=("u0", "u1")), "gone", "", 0, SPACE)

    back = await restore(there.home, there.bus, tmp_path / "a.tar")

    assert back.forgotten == 2
    assert not {"u0", "u1"} & {event.id for event in map(decoded, there.events()) if event}


async def test_as_text(here: Place, tmp_path: Path) -> None:
    root = here.home.spaces / SPACE
    count, _ = await write(jsonl(here.bus, root), tmp_path / "a.jsonl")
    await write(markdown(here.bus, root, SPACE), tmp_path / "a.md")

    lines = (tmp_path / "a.jsonl").read_bytes().splitlines()
    assert len(lines) == count
    assert lines == [raw for raw in here.events() if decoded(raw)]
    text = (tmp_path / "a.md").read_text(encoding="utf-8")
    assert text.startswith("# alice\n")
    assert "주문은 PostgreSQL에 있다" in text
    assert "line 16 89 of a result" in text


def test_a_fence_cannot_be_closed_by_what_it_holds() -> None:
    assert _fenced("``` a\n````").startswith("`````\n")


# -- what anybody may have made


def member(name: str, data: bytes = b"x", **more: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def forged(path: Path, *members: tuple[tarfile.TarInfo, bytes], manifest: bool = True) -> Path:
    """An archive of these members, with the manifest that fits them."""
    named = {info.name: Member(len(data), hashlib.sha256(data).hexdigest()) for info, data in members}
    document = Manifest(
        format="lamina-space", version=1, space="alice", events=0, epoch="e", seq=0, made="now", members=named
    )
    with tarfile.open(path, "w") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
        if manifest:
            info, data = member("manifest.json", msgspec.json.encode(document))
            tar.addfile(info, io.BytesIO(data))
    return path


EVENTS = member("events.jsonl", b"")
LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd", "size": 0}
HARD = {"type": tarfile.LNKTYPE, "linkname": "events.jsonl", "size": 0}
HOSTILE = {
    "a path upwards": (EVENTS, member("../evil")),
    "a path upwards below ours": (EVENTS, member("files/../../evil")),
    "an absolute path": (EVENTS, member("/tmp-evil")),
    "a path into the space": (EVENTS, member("files/log/2026-01-01.jsonl")),
    "a symbolic link": (EVENTS, member("files/persona.md", b"", **LINK)),
    "a hard link": (EVENTS, member("files/persona.md", b"", **HARD)),
    "a device": (EVENTS, member("files/persona.md", b"", type=tarfile.CHRTYPE)),
    "a folder": (EVENTS, member("blobs", b"", type=tarfile.DIRTYPE)),
    "a member twice": (EVENTS, EVENTS),
    "no events": (member("files/persona.md"),),
    "a blob of another name": (EVENTS, member("blobs/abc")),
    "a strange name": (EVENTS, member("files/refs/\u202e.md")),
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_archive_is_refused(tmp_path: Path, members: tuple[tuple[tarfile.TarInfo, bytes], ...]) -> None:
    with pytest.raises(LaminaError):
        checked(forged(tmp_path / "a.tar", *members))


def flip(raw: bytes) -> bytes:
    """A bit in the bytes of the events."""
    at = raw.index(b'"turn.recorded"')
    return raw[:at] + bytes([raw[at] ^ 4]) + raw[at + 1 :]


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda raw: b"",
    "no tar": lambda raw: b"hello" * 1_000,
    "half": lambda raw: raw[: len(raw) // 2],
    "without its manifest": lambda raw: raw[: raw.rindex(b"manifest.json")],
    "a bit flipped": flip,
    "zeros": lambda raw: b"\0" * len(raw),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
async def test_a_partial_archive_is_refused_and_nothing_is_published(
    here: Place, there: Place, tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "a.tar"
    await export(here.home, here.bus, SPACE, path)
    path.write_bytes(spoil(path.read_bytes()))

    with pytest.raises(LaminaError):
        await restore(there.home, there.bus, path)
    assert there.events() == []
    assert list(there.home.run.glob("restore-*")) == []


async def test_every_cut_of_an_archive_is_refused(here: Place, tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    await export(here.home, here.bus, SPACE, path)
    raw = path.read_bytes()
    end = raw.rindex(b'"members"')
    for size in range(0, end, max(1, end // 40)):
        path.write_bytes(raw[:size])
        with pytest.raises(LaminaError):
            checked(path)


async def test_an_archive_holds_nothing_of_the_machine(here: Place, tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    await export(here.home, here.bus, SPACE, path)
    with tarfile.open(path) as tar:
        infos = tar.getmembers()

    assert {(info.uid, info.gid, info.uname, info.mtime) for info in infos} == {(0, 0, "", 0)}
    assert infos[-1].name == "manifest.json"
    assert str(tmp_path).encode() not in path.read_bytes()
    assert times.parse(checked(path).made)
