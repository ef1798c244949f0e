"""Who may do what on the bus: roles, and the users of a nats-server that keep them apart.

A client of one space publishes what happens in it, asks the query service about it, and hears of its views; it
reads no message of the log, erases none, and has an inbox of its own. A service reads the log and publishes its own
decisions. The operator, whose credentials the home keeps, may do everything.
https://docs.nats.io/running-a-nats-service/configuration/securing_nats/authorization
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from lamina import ids
from lamina.bus import api
from lamina.errors import Conflict, Denied, Invalid
from lamina.ids import SUBJECT_ROOT
from lamina.store.files import translated_os, write_atomic

OPERATOR = "lamina"
INBOX = "_INBOX"
SAID = (
    *("turn.recorded", "tool.returned", "session.ended", "context.cut"),
    *("memory.stated", "memory.corrected", "memory.undone"),
)
"""What a client of a space may publish. Erasing takes the operator: it reaches into the log's own bytes."""
FAILED = "step.failed"
MOST_GRANTS = 10_000
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


class Grant(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user of the bus. `role` "space": a client of `of`; "service": the service `of`, which decides `decisions`
    (empty for one that only answers)."""

    name: str
    role: Literal["space", "service"]
    of: str
    password: str
    decisions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Grant(name={self.name!r}, role={self.role!r}, of={self.of!r})"


class Permissions(Struct, frozen=True):
    """Subjects that may be published to and subscribed to; everything else is refused."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def inbox_of(name: str) -> str:
    """The prefix of the subjects on which the user `name`, and nobody else, gets answers."""
    return f"{INBOX}.{name}"


def permissions(grant: Grant) -> Permissions:
    """What a grant allows. A subject that stands in no list is refused by the server."""
    return _of_space(grant) if grant.role == "space" else _of_service(grant)


def _of_space(grant: Grant) -> Permissions:
    space = ids.token(grant.of)
    below = f"{ids.lane(space)}.{space}"
    return Permissions(
        publish=(
            *(ids.event_subject(space, kind) for kind in SAID),
            f"{SUBJECT_ROOT}.blob.{below}.*",
            f"{SUBJECT_ROOT}.rpc.{below}.*",
            f"{api.DIRECT_GET}.{SUBJECT_ROOT}.blob.{below}.*",  # is this blob there already?
        ),
        subscribe=(f"{inbox_of(grant.name)}.>", f"{SUBJECT_ROOT}.applied.{below}.*"),
    )


def _of_service(grant: Grant) -> Permissions:
    reads = (
        api.STREAM_INFO,
        api.MESSAGE_GET,
        api.DIRECT_GET,
        f"{api.DIRECT_GET}.>",
        *(f"{one}.>" for one in (api.CONSUMER_CREATE, api.CONSUMER_DELETE, api.CONSUMER_NEXT)),
    )
    own = inbox_of(grant.name)
    if not grant.decisions and grant.of == "query":
        return Permissions(
            publish=(*reads, f"{INBOX}.>", f"{SUBJECT_ROOT}.touch.>"),
            subscribe=(f"{own}.>", f"{SUBJECT_ROOT}.rpc.>", f"{SUBJECT_ROOT}.applied.>"),
        )
    kinds = [kind.replace(".", "-") for kind in (*grant.decisions, *((FAILED,) if grant.decisions else ()))]
    return Permissions(
        publish=(
            *reads,
            *(f"{SUBJECT_ROOT}.ev.*.*.{kind}" for kind in kinds),
            f"{SUBJECT_ROOT}.applied.*.*.{grant.of}",
        ),
        subscribe=(f"{own}.>", f"{SUBJECT_ROOT}.touch.{grant.of}.>"),
    )


class Grants:
    """The users of a home's bus beside the operator, in `bus/grants.json` (0600)."""

    def __init__(self, bus: Path) -> None:
        self.path = bus / "grants.json"

    def load(self) -> tuple[Grant, ...]:
        """Every grant, by name. `Denied` when the file cannot be read, `Invalid` when it is malformed."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=tuple[Grant, ...])
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise Denied(f"{self.path} cannot be read: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise Invalid(
                f"{self.path} is malformed: {error}; put it right, or remove it to end every grant"
            ) from error

    def changed_us(self) -> int:
        """When the grants were changed last, in microseconds; 0 where there never were any."""
        try:
            return self.path.stat().st_mtime_ns // 1000
        except OSError:
            return 0

    def add(self, name: str, role: Literal["space", "service"], of: str, decisions: Sequence[str] = ()) -> Grant:
        """A new user with a password of its own; `Conflict` where the name is taken."""
        if not _NAME.fullmatch(name) or name == OPERATOR:
            raise Invalid(f"{name[:80]!r} is no name for a user: up to 63 of a-z, 0-9 and -, not {OPERATOR!r}")
        if role == "space":
            ids.token(of)
        known = self.load()
        if any(one.name == name for one in known):
            raise Conflict(f"there is a user {name!r}; revoke it first, or take another name")
        if len(known) >= MOST_GRANTS:
            raise Invalid(f"there are {MOST_GRANTS} users, which is as many as one server is asked to keep")
        grant = Grant(name=name, role=role, of=of, password=secrets.token_urlsafe(32), decisions=tuple(decisions))
        self._save((*known, grant))
        return grant

    def remove(self, name: str) -> Grant:
        """End a grant; `Invalid` where there is none of this name."""
        known = self.load()
        found = next((one for one in known if one.name == name), None)
        if found is None:
            raise Invalid(f"there is no user {name[:80]!r}; `lamina access list` names them")
        self._save(tuple(one for one in known if one.name != name))
        return found

    def _save(self, grants: tuple[Grant, ...]) -> None:
        with translated_os(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomic(self.path, msgspec.json.encode(sorted(grants, key=lambda one: one.name)), mode=0o600)


def authorization(user: str, password: str, grants: Sequence[Grant]) -> list[str]:
    """The `authorization` block of a nats-server's configuration, a line each: the operator, then every grant."""
    lines = ["authorization {", "  users: ["]
    lines += ["    {", f"      user: {quoted(user)}", f"      password: {quoted(password)}", "    }"]
    for grant in grants:
        allowed = permissions(grant)
        lines += ["    {", f"      user: {quoted(grant.name)}", f"      password: {quoted(grant.password)}"]
        lines += ["      permissions: {"]
        for act, subjects in (("publish", allowed.publish), ("subscribe", allowed.subscribe)):
            lines.append(f"        {act}: {{ allow: [{', '.join(map(quoted, subjects))}] }}")
        lines += ["      }", "    }"]
    return [*lines, "  ]", "}"]


def quoted(text: str) -> str:
    """Text as the server's configuration quotes it: its escapes are those of JSON, but for \\u."""
    return json.dumps(text, ensure_ascii=False)
