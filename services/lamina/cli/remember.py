"""The verb `remember`: state something to be kept as it stands."""

from __future__ import annotations

import argparse
import sys

from lamina.cli.command import DONE, Command, Context
from lamina.errors import Invalid
from lamina.records import Accepted


def _run(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina.client import Memory

    text = _text(options.text)

    async def remember() -> Accepted:
        async with Memory.open(space=context.space, home=context.home.path) as memory:
            return await memory.remember(text, session=options.session, time=options.time)

    accepted = asyncio.run(remember())
    if context.json:
        context.document(accepted)
    else:
        where = (
            f"event {accepted.seq} of the log" if accepted.seq is not None else "in the outbox, until the log is back"
        )
        context.line(f"remembered in space {context.space!r}: {where}")
    return DONE


def _text(given: str) -> str:
    if given != "-":
        return given
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"standard input is not UTF-8 text: {error}") from error


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="what to remember, in any language; - reads standard input")
    parser.add_argument(
        "--session", default="", metavar="NAME", help="the session that it belongs to (default: none)"
    )
    parser.add_argument("--time", metavar="TIME", help="when it was so, RFC 3339 with an offset (default: now)")


remember = Command(
    name="remember",
    help="state something to be kept as it stands",
    description="State something to be remembered as it stands. It is safe when the verb returns: in the log, or in "
    "the outbox of this machine while the log is away.",
    run=_run,
    configure=_options,
    examples=(
        'lamina remember "Invoices go to the accounting office on Fridays."',
        'lamina remember "답변은 짧게" --space alice',
        "lamina remember - < note.txt",
    ),
    outputs={"remember": Accepted},
)
