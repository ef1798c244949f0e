"""The atoms service in a process of its own, to be killed: `python atoms_worker.py BUS CREDENTIALS HOME MODEL NAME`.

It asks the model `NAME` at `MODEL`, waits next to nothing after a failure, and runs until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

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


async def main(bus_url: str, credentials: str, home: str, model_url: str, name: str) -> None:
    apply.BACKOFF_S = (0.02, 0.02, 0.02, 0.02, 0.02)
    config = LlmConfig(base_url=model_url, model=name, tokens_per_day=0)
    source = Source(config, Endpoint(model_url, name, pause_s=0.01))
    act = ModelAct(source, BuiltinAct(extract, name="builtin", version=VERSION))
    bus = await connect(bus_url, credentials=read_credentials(Path(credentials)))
    await Worker(replace(made(act, MODEL), max_attempts=WAITS), bus, Home(Path(home))).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
