"""Does a persona keep its size over 200 sessions, and does a new session cost more the longer the history is?

Sessions of six turns with facts, preferences, requests and chatter; an instruction in session 3, another that is
taken back in session 150. After each session: seconds until atoms and persona have nothing due, and the size of
`persona.md`.

    python benchmarks/persona_growth.py [--sessions 200]
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import time
from statistics import median
from typing import Any

from benchmarks.common import arguments, daemon, keep
from lamina.client import Memory

KEPT = "Always answer in Korean."
TAKEN_BACK = "Never use semicolons in my code."
THINGS = ("jazz", "tea", "hiking", "chess", "sushi", "rain", "poetry", "cycling", "films", "bread")
PLACES = ("Busan", "Seoul", "Daegu", "Jeju", "Incheon")


def said(n: int, rng: random.Random) -> list[str]:
    """What the user says in session `n`."""
    texts = [
        f"I like {rng.choice(THINGS)} number {rng.randrange(400)}.",
        f"Let us look at ticket {n} together, the build is red again.",
        "Skip the explanation, give me code." if n % 7 == 0 else f"What does error {n} mean?",
    ]
    if n % 20 == 0:
        texts.append(f"I live in {PLACES[n // 20 % len(PLACES)]}.")
    if n == 3:
        texts.append(KEPT)
    if n == 140:
        texts.append(TAKEN_BACK)
    return texts


async def main() -> None:
    options = arguments(__doc__, sessions=200)
    os.environ["LAMINA_EMBEDDING_PROVIDER"] = "none"
    rng = random.Random(11)
    rows: list[dict[str, Any]] = []
    gone_at_once = kept = False
    async with daemon() as (home, _), Memory.open(space="long", home=home.path) as memory:
        file = home.spaces / "long" / "persona.md"
        for n in range(1, options.sessions + 1):
            day = f"2026-{1 + n // 28 % 12:02d}-{1 + n % 28:02d}T10:00:00+09:00"
            for minute, text in enumerate(said(n, rng)):
                await memory.turn("user", text, session=f"s{n}", time=day, turn_id=f"s{n}:{minute}")
                await memory.turn("assistant", f"Done, step {minute} of {n}.", session=f"s{n}", time=day)
            started = time.monotonic()
            await memory.end_session(f"s{n}")
            await memory.settled(60.0, layers=["l3"])
            seconds = time.monotonic() - started
            if n == 150:
                links = await memory.why("s140:3")
                await memory.undo(links[0].made[0])
                await memory.settled(60.0, layers=["l3"])
                gone_at_once = TAKEN_BACK not in (await memory.prompt()).stable
            rows.append({"session": n, "seconds": round(seconds, 3), "chars": len(file.read_text(encoding="utf-8"))})
        kept = KEPT in (await memory.prompt()).stable
        view = sqlite3.connect(f"file:{home.spaces / 'long' / 'views' / 'persona.db'}?mode=ro", uri=True)
        lines, revisions = (
            view.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("lines", "revisions")
        )
        view.close()
    parts = {f"{start + 1}-{start + 50}": rows[start : start + 50] for start in range(0, len(rows), 50)}
    keep(
        "persona_growth",
        {
            "sessions": options.sessions,
            "kept_from_session_3": kept,
            "taken_back_is_gone_at_once": gone_at_once,
            "lines_known": lines,
            "revisions": revisions,
            "by_sessions": {
                name: {
                    "median_s": median(row["seconds"] for row in part),
                    "most_chars": max(row["chars"] for row in part),
                }
                for name, part in parts.items()
            },
        },
    )


if __name__ == "__main__":
    asyncio.run(main())
