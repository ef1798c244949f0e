"""Forgetting as a client asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict

from lamina import ids, times
from lamina.client.asking import asked_of
from lamina.client.link import Link
from lamina.errors import Invalid, Timeout
from lamina.records import Receipt
from lamina.requests import Forget


class Ways(TypedDict, total=False):
    """What is to be forgotten. `turn` is an id that the caller gave to a turn or call, `between` are the first and
    the last event time, `match` is a text in what was said, `entity` a name in it, as a whole word. Several of a kind
    are a sequence."""

    event: str | Sequence[str]
    turn: str | Sequence[str]
    node: str | Sequence[str]
    session: str | Sequence[str]
    between: tuple[datetime | str, datetime | str]
    match: str | Sequence[str]
    entity: str | Sequence[str]
    all: bool


async def forgotten(link: Link, space: str, what: Ways, *, dry_run: bool, timeout_s: float) -> Receipt:
    """The receipt, once this client's outbox is empty and the daemon is done; `Timeout` where that takes longer."""
    request = forgetting(what, dry_run=dry_run)
    try:
        async with asyncio.timeout(timeout_s):
            await link.emptied()
    except TimeoutError as error:
        raise Timeout(f"events still wait in the outbox after {timeout_s} s: the log is away") from error
    return await asked_of(link.bus, ids.forget_subject(space), request, Receipt, timeout_s)


def forgetting(what: Ways, *, dry_run: bool) -> Forget:
    """`Invalid` for what is no text or no time; whether it says anything is for whoever forgets to judge."""
    unknown = what.keys() - Ways.__annotations__.keys()
    if unknown:
        raise Invalid(f"{min(unknown)} is no way to say what is to be forgotten: {', '.join(Ways.__annotations__)}")
    between = what.get("between")
    if between is not None and len(between) != 2:
        raise Invalid("between takes two times: the first and the last")
    return Forget(
        events=_names(what.get("event", ()), "event"),
        turns=_names(what.get("turn", ()), "turn"),
        nodes=_names(what.get("node", ()), "node"),
        sessions=_names(what.get("session", ()), "session"),
        between=(times.aware(between[0]), times.aware(between[1])) if between is not None else None,
        matches=_names(what.get("match", ()), "match"),
        entities=_names(what.get("entity", ()), "entity"),
        all=what.get("all", False) is True,
        dry_run=dry_run,
    )


def _names(given: str | Sequence[str], label: str) -> tuple[str, ...]:
    found = (given,) if isinstance(given, str) else tuple(given)
    for one in found:
        if not isinstance(one, str) or not one:
            raise Invalid(f"{label} must be text that is not empty, or several such texts")
    return found
