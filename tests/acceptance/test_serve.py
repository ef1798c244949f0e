"""`lamina serve` as a process: what a supervisor and Prometheus see of a home that lives and dies."""

from __future__ import annotations

import asyncio
import json
import signal
import urllib.error
import urllib.request

from lamina.home import Home
from tests.support import whole


def fetched(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def test_readiness_follows_the_daemon_and_a_signal_ends_it(home: Home) -> None:
    with whole.process(home, "--json", "serve", "--listen", "127.0.0.1:0") as serving:
        assert serving.stdout is not None
        url = json.loads(await asyncio.to_thread(serving.stdout.readline))["url"]

        code, body = await asyncio.to_thread(fetched, f"{url}/readyz")
        assert (code, json.loads(body)["faults"][0]["part"]) == (503, "bus")

        async with whole.daemon(home):
            while (await asyncio.to_thread(fetched, f"{url}/readyz"))[0] != 200:
                pass
            _, metrics = await asyncio.to_thread(fetched, f"{url}/metrics")
            assert "lamina_healthy 1.0" in metrics
            assert 'lamina_service_workers{service="journal"} 1.0' in metrics

        serving.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(serving.wait, 20) == 0
