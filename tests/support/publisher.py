"""A client in a process of its own, to be killed: `python publisher.py HOME SPACE SESSION`.

Says `ok N` once turn N is accepted; ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import sys

from lamina.client import Memory


async def main(home: str, space: str, session: str) -> None:
    loop = asyncio.get_running_loop()
    ended = loop.run_in_executor(None, sys.stdin.read)
    async with Memory.open(space=space, home=home) as memory:
        n = 0
        while not ended.done():
            await memory.turn("user", f"{session} {n}", session=session)
            sys.stdout.write(f"ok {n}\n")
            sys.stdout.flush()
            n += 1


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
