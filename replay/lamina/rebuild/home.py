"""A rebuild of many views: which there are, the way to the log, and one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from lamina.bus.nats import Credentials, NatsBus, connect
from lamina.bus.server import read_credentials
from lamina.client.start import daemon
from lamina.config import load
from lamina.errors import Invalid
from lamina.home import Home
from lamina.ids import token
from lamina.rebuild.ledger import mend
from lamina.rebuild.progress import Mended, Moved, Rebuilt
from lamina.rebuild.view import rebuild_view
from lamina.runtime.registry import fold_services

LEDGER = "ledger"


@contextlib.asynccontextmanager
async def connected(home: Home) -> AsyncIterator[NatsBus]:
    """The log of a home: that of its daemon, which is started when there is none, or a given server's."""
    settings = load(home.config).bus
    url, credentials = settings.url, settings.credentials
    if not url:
        runtime = await daemon(home)
        url, credentials = runtime.url, runtime.credentials
    known = read_credentials(Path(credentials)) if credentials else Credentials()
    bus = await connect(url.split(","), credentials=known, name="lamina-replay")
    try:
        yield bus
    finally:
        await bus.close()


def chosen_spaces(home: Home, names: Sequence[str]) -> list[str]:
    """The tokens of the spaces `names`, or of all of the home. `Invalid` for one that is not there."""
    there = [token(name) for name in home.space_names()]
    wanted = [token(name) for name in names]
    for name, one in zip(names, wanted, strict=True):
        if one not in there:
            raise Invalid(f"there is no space {name!r} in {home.path}; `lamina show spaces` lists them")
    return wanted or there


def chosen_views(names: Sequence[str]) -> list[str]:
    """The views `names`, or all of them, the journal's first; the ledger only where it is named, and before them.
    `Invalid` names those there are."""
    views = sorted(fold_services(), key=lambda name: name != "journal")
    there = [LEDGER, *views]
    for name in names:
        if name not in there:
            raise Invalid(f"there is no view {name!r}; there are {', '.join(there)}")
    return [name for name in there if name in names] if names else views


async def rebuild(
    home: Home,
    bus: NatsBus,
    *,
    views: Sequence[str],
    spaces: Sequence[str],
    moved: Moved,
    done: Callable[[Rebuilt | Mended], None],
) -> None:
    """Rebuild the views (names) of the spaces (tokens), one after the other; raises as `rebuild_view`."""
    services = fold_services()
    for space in spaces:
        for name in views:
            if name == LEDGER:
                done(await mend(bus, home, space))
                continue
            done(await rebuild_view(services[name], bus, home, space, moved))
