"""A shadow: what is decided anew over the sources of a space, in a folder of its own, with a log of its own.

`spaces/<space>/shadow/<name>/` holds `about.json`, the decisions in `decisions.jsonl` (lines as in a ledger, each
with the event of the log that it came behind), and the views that follow from both.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from lamina import events
from lamina.bus import Ack, Bus, Message
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.bus.port import Outgoing
from lamina.errors import Conflict, Invalid
from lamina.home import Home
from lamina.ids import event_subject, token, untoken
from lamina.runtime.history import arrival_us, history, space_subject
from lamina.runtime.pasts import SHADOWS
from lamina.store.files import AppendFile, write_atomic
from lamina.times import micros, parse, text_of_micros

ABOUT, DECISIONS = "about.json", "decisions.jsonl"
OF_ATOMS = ("atoms.extracted", "atoms.reconciled")


class About(Struct, frozen=True, kw_only=True):
    """What a shadow is: settings that differ from the home's, and up to where it saw the log of an epoch."""

    name: str
    epoch: str
    settings: dict[str, str]
    seq: int = 0


class Decided(Struct, frozen=True):
    """A decision of a shadow: behind which event of the space's log it was made, when, and its event."""

    behind: int
    at: str
    event: Raw


_line = msgspec.json.Decoder(Decided)


class Shadow:
    """One shadow of one space, which must be there."""

    def __init__(self, home: Home, space: str, name: str) -> None:
        self.space = space
        self.name = name
        self.root = home.spaces / space
        self.folder = self.root / SHADOWS / token(name)
        self.home = Home(self.folder)

    @property
    def about(self) -> About:
        """`Invalid` where there is no such shadow."""
        try:
            return msgspec.json.decode((self.folder / ABOUT).read_bytes(), type=About)
        except FileNotFoundError as error:
            there = ", ".join(names(self.root)) or "none"
            raise Invalid(
                f"space {untoken(self.space)!r} has no shadow {self.name!r} (there are: {there}); "
                f"`lamina replay rederive {self.name}` makes it"
            ) from error
        except msgspec.MsgspecError as error:
            raise Invalid(f"{self.folder / ABOUT} is damaged; drop the shadow and make it again") from error

    def view(self, service: str) -> Path:
        return self.home.spaces / self.space / "views" / f"{service}.db"

    def begin(self, epoch: str, settings: Mapping[str, str]) -> About:
        """The shadow as it was left, or a new one. `Conflict` where it was begun with other settings."""
        if not (self.folder / ABOUT).exists():
            self.home.prepare()
            blobs = self.home.spaces / self.space / "blobs"
            blobs.parent.mkdir(parents=True, exist_ok=True)
            if not blobs.is_symlink():
                blobs.symlink_to(self.root / "blobs")  # read there, and never written
            self.keep(About(name=self.name, epoch=epoch, settings=dict(settings)))
        about = self.about
        if about.epoch != epoch:
            raise Conflict(f"shadow {self.name!r} is of another epoch of the log: drop it and make it again")
        if settings and about.settings != dict(settings):
            raise Conflict(f"shadow {self.name!r} was begun with {about.settings}; take another name for {settings}")
        return about

    def keep(self, about: About) -> None:
        write_atomic(self.folder / ABOUT, msgspec.json.encode(about))

    def decided(self) -> Iterator[Decided]:
        """Its decisions in their order. A torn last line is none."""
        with contextlib.suppress(FileNotFoundError), (self.folder / DECISIONS).open("rb") as file:
            for raw in file:
                if raw.endswith(b"\n"):
                    try:
                        yield _line.decode(raw)
                    except msgspec.MsgspecError as error:
                        raise Invalid(f"{file.name} is damaged; drop the shadow and make it again") from error

    async def log(self, bus: Bus, until: int) -> MemoryLog:
        """Sources of the space up to `until`, and the shadow's decisions where they were made, as a log in memory."""
        now = [0]
        log = MemoryLog(now_us=lambda: now[0])
        waiting = list(self.decided())
        waiting.reverse()

        def put(raw: bytes, event: events.Event, at_us: int) -> None:
            now[0] = at_us
            log.append(Outgoing(event_subject(self.space, event.type), raw))

        def decisions(before: int) -> None:
            while waiting and waiting[-1].behind < before:
                one = waiting.pop()
                event = events.decode(bytes(one.event))
                data = events.decode_data(event)
                if not isinstance(data, events.StepFailed) or data.dead:  # what failed is tried again at once
                    put(bytes(one.event), event, micros(parse(one.at)))

        parts = history(bus, self.root, after=0, until=until + 1, name="rederive")
        async with contextlib.aclosing(parts):
            async for messages in parts:
                for message in messages:
                    decisions(message.seq)
                    event = source(message)
                    if event is not None:
                        put(message.data, event, arrival_us(message))
        decisions(1 << 62)
        return log

    async def drop(self) -> None:
        self.about  # noqa: B018 - says so where there is none
        await asyncio.to_thread(shutil.rmtree, self.folder)


class ShadowBus(MemoryBus):
    """What is published to it is kept in the shadow's own log before it is acknowledged."""

    def __init__(self, log: MemoryLog, shadow: Shadow, behind: int) -> None:
        super().__init__(log)
        self._file = AppendFile(shadow.folder / DECISIONS)
        self._file.mend()
        self._behind = behind
        self.made = 0

    async def publish(
        self,
        subject: str,
        data: bytes,
        *,
        id: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 5.0,
    ) -> Ack:
        if self.log.known(id) is None:  # kept before it can be seen: nothing is awaited between its place and its ack
            line = Decided(self._behind, text_of_micros(self.log.now_us()), Raw(data))
            await asyncio.to_thread(self._file.append, msgspec.json.encode(line) + b"\n")
            self.made += 1
        return await super().publish(subject, data, id=id, headers=headers, timeout_s=timeout_s)

    async def close(self) -> None:
        await super().close()
        self._file.close()


def names(root: Path) -> list[str]:
    """The shadows of a space."""
    return sorted(untoken(path.parent.name) for path in (root / SHADOWS).glob(f"*/{ABOUT}"))


async def head(bus: Bus, space: str) -> int:
    last = await bus.last(space_subject(space))
    return last.seq if last is not None else 0


def source(message: Message) -> events.Event | None:
    """An event that is derived anew from; None for what was derived before, or tells of that."""
    try:
        event = events.decode(message.data)
        data = events.decode_data(event)
    except Invalid:
        return None
    if event.type in OF_ATOMS or isinstance(data, events.MemoryUndone):
        return None
    of = data.step.split(".")[0] if isinstance(data, events.StepFailed) else None
    if isinstance(data, events.DeadRetried | events.DeadDropped):
        of = data.service
    return None if of == "atoms" else event
