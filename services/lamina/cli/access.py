"""The verb `access`: who may use the bus of a home, and for what."""

from __future__ import annotations

import argparse
import time
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from lamina.cli.command import DONE, Command, Context
from lamina.cli.output import Column
from lamina.cli.running import running
from lamina.errors import Denied, Invalid, Timeout

if TYPE_CHECKING:
    from lamina.bus.access import Grant
    from lamina.home import Runtime

LOADED_S = 10.0


class Granted(Struct, frozen=True, kw_only=True):
    """A user that may come in with the credentials in `file`. `url` is empty while no daemon runs."""

    name: str
    role: str
    of: str
    file: str
    url: str


class Revoked(Struct, frozen=True):
    """A user that may come in no more."""

    name: str
    role: str
    of: str


class User(Struct, frozen=True, kw_only=True):
    """A user of the bus: what it is for, and the subjects it may publish to and subscribe to."""

    name: str
    role: str
    of: str
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


class Users(Struct, frozen=True):
    """Every user beside the operator, whose credentials are the home's own."""

    users: tuple[User, ...]


def _grant(context: Context, options: argparse.Namespace) -> int:
    from lamina.bus.access import Grants, inbox_of
    from lamina.bus.nats import Credentials
    from lamina.store.files import write_atomic

    if options.service is None and not context.named:
        raise Invalid("for whom? Name a space (--space alice) or a service (--service atoms)")
    if options.service is not None and context.named:
        raise Invalid("a user is for one space or for one service, not for both")
    import msgspec

    context.home.prepare()
    grants = Grants(context.home.bus)
    if options.service is not None:
        grant = grants.add(options.name, "service", options.service, _decisions(options.service))
    else:
        grant = grants.add(options.name, "space", context.space)
    made = Credentials(user=grant.name, password=grant.password, inbox=inbox_of(grant.name))
    file = (
        Path(options.out).expanduser().absolute() if options.out else context.home.bus / f"{grant.name}.access.json"
    )
    write_atomic(file, msgspec.json.encode(made), mode=0o600)
    runtime = running(context.home)
    if runtime is not None:
        _wait(runtime, made, wanted=True)
    url = runtime.url if runtime else ""
    if context.json:
        context.document(Granted(name=grant.name, role=grant.role, of=grant.of, file=str(file), url=url))
    else:
        context.line(f"{_said(grant)}; its credentials are in {file}")
        context.line(f"  LAMINA_BUS_URL={url or '(the bus, once it runs)'} LAMINA_BUS_CREDENTIALS={file}")
    return DONE


def _revoke(context: Context, options: argparse.Namespace) -> int:
    from lamina.bus.access import Grants
    from lamina.bus.nats import Credentials

    grant = Grants(context.home.bus).remove(options.name)
    (context.home.bus / f"{grant.name}.access.json").unlink(missing_ok=True)
    runtime = running(context.home)
    if runtime is not None:
        _wait(runtime, Credentials(user=grant.name, password=grant.password), wanted=False)
    if context.json:
        context.document(Revoked(grant.name, grant.role, grant.of))
    else:
        context.line(f"{grant.name} may come in no more")
    return DONE


def _list(context: Context, options: argparse.Namespace) -> int:
    from lamina.bus.access import Grants, authorization, permissions
    from lamina.bus.server import read_credentials

    grants = Grants(context.home.bus).load()
    if options.server_config:
        operator = read_credentials(context.home.bus / "credentials.json")
        for line in authorization(operator.user, operator.password, grants):
            context.line(line)
    elif context.json:
        users = []
        for grant in grants:
            allowed = permissions(grant)
            users.append(
                User(
                    name=grant.name,
                    role=grant.role,
                    of=grant.of,
                    publish=allowed.publish,
                    subscribe=allowed.subscribe,
                )
            )
        context.document(Users(tuple(users)))
    elif not grants:
        context.line("nobody but the operator; `lamina access grant NAME --space S` lets a client in")
    else:
        rows = [(grant.name, grant.role, grant.of) for grant in grants]
        context.printer.table([Column("name"), Column("role"), Column("of")], rows)
    return DONE


def _said(grant: Grant) -> str:
    what = f"a client of space {grant.of!r}" if grant.role == "space" else f"the service {grant.of}"
    return f"{grant.name} may come in as {what}"


def _decisions(name: str) -> tuple[str, ...]:
    from lamina.runtime.registry import services
    from lamina.runtime.spec import Service

    service = services()[name]
    return service.decisions if isinstance(service, Service) else ()


def _wait(runtime: Runtime, credentials: object, *, wanted: bool) -> None:
    """Return once the server takes these credentials, or no more; the daemon tells it within a second or two."""
    import asyncio

    from lamina.bus.nats import Credentials, connect

    assert isinstance(credentials, Credentials)  # noqa: S101 - made above; the type cannot be named without loading it

    async def comes_in() -> bool:
        try:
            bus = await connect(runtime.url, credentials=credentials, name="lamina-access")
        except Denied:
            return False
        await bus.close()
        return True

    until = time.monotonic() + LOADED_S
    while asyncio.run(comes_in()) is not wanted:
        if time.monotonic() > until:
            raise Timeout(f"the daemon has not taken it over within {LOADED_S:.0f} s; it does when it starts again")
        time.sleep(0.1)


ACTIONS = {"grant": _grant, "revoke": _revoke, "list": _list}


def _run(context: Context, options: argparse.Namespace) -> int:
    if (options.name is None) is not (options.action == "list"):
        raise Invalid("grant and revoke need a name, list takes none: `lamina access grant laptop --space alice`")
    return ACTIONS[options.action](context, options)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        choices=tuple(ACTIONS),
        help="grant: let a client of the space, or a service, in; revoke: end a user, who is cut off at once; list: "
        "who may come in, and with --json what each may do",
    )
    parser.add_argument(
        "--server-config",
        action="store_true",
        help="of list: the `authorization` of a nats-server of your own, passwords included",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="of the user: a-z, 0-9 and -")
    names = sorted(point.name for point in entry_points(group="lamina.services"))
    parser.add_argument("--service", metavar="SERVICE", choices=names, help="of grant: for a worker of this service")
    parser.add_argument(
        "--out", metavar="FILE", help="of grant: where the credentials go (default: the bus folder of the home)"
    )


access = Command(
    name="access",
    help="let clients of one space, and services, in with credentials of their own",
    description="Users of the bus beside the operator. A client of a space publishes and asks there alone: it "
    "reads no message of the log, erases none, and hears nobody else's answers. A service reads the log and "
    "publishes its own decisions. It counts at once where a daemon runs.",
    run=_run,
    configure=_options,
    examples=(
        "lamina access grant laptop --space alice     # prints where its credentials are",
        "lamina access grant gpu-box --service atoms --out atoms.json",
        "lamina access list --json                    # with the subjects each may use",
        "lamina access revoke laptop",
    ),
    outputs={"access grant": Granted, "access revoke": Revoked, "access list": Users},
)
