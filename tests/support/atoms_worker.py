"""The atoms service in processes to be killed: `python atoms_worker.py BUS CREDENTIALS HOME MODEL`.

For each line it reads, the name of a model, a process of its own runs the service with that model, which waits next
to nothing after a failure. It says the number of that process, and `ended` with its status once it is gone. The large
packages are loaded before, so that it is killed at its work and not while it starts; ours after, as they draw the
names by which the bus tells processes apart.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from pathlib import Path

LOADED_BEFORE = ("openai", "msgspec", "aiosqlite", "structlog", "tokenize", "ssl", "http.client")


async def serve(bus_url: str, credentials: str, home: str, model_url: str, name: str) -> None:
    from msgspec.structs import replace

    from lamina.atoms.act import BuiltinAct
    from lamina.atoms.act_model import ModelAct
    from lamina.atoms.builtin import VERSION, extract
    from lamina.atoms.service import MODEL, WAITS, made
    from lamina.bus.nats import connect
    from lamina.bus.server import read_credentials
    from lamina.config import LlmConfig
    from lamina.home import Home
    from lamina.llm import Source
    from lamina.llm.endpoint import Endpoint
    from lamina.runtime import apply
    from lamina.runtime.worker import Worker

    apply.BACKOFF_S = (0.02, 0.02, 0.02, 0.02, 0.02)
    config = LlmConfig(base_url=model_url, model=name, tokens_per_day=0)
    source = Source(config, Endpoint(model_url, name, pause_s=0.01))
    act = ModelAct(source, BuiltinAct(extract, name="builtin", version=VERSION))
    bus = await connect(bus_url, credentials=read_credentials(Path(credentials)))
    await Worker(replace(made(act, MODEL), max_attempts=WAITS), bus, Home(Path(home))).run()


def main(bus_url: str, credentials: str, home: str, model_url: str) -> None:
    for module in LOADED_BEFORE:
        importlib.import_module(module)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            asyncio.run(serve(bus_url, credentials, home, model_url, line.strip()))
            os._exit(0)
        tell(str(child))
        tell(f"ended {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}")


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
