"""The one stream: made once, checked ever after."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from lamina.bus import api
from lamina.bus.api import StreamAnswer, answer_of, error_of
from lamina.bus.nats import EPOCH_KEY, NatsBus
from lamina.bus.port import StreamInfo
from lamina.bus.subjects import STREAM, STREAM_SUBJECTS
from lamina.errors import Invalid
from lamina.ids import LANES

LANES_KEY = "lamina-lanes"
MAX_BYTES = 8 * 1024**3
DUPLICATE_WINDOW_S = 120

_FIXED: Mapping[str, object] = {
    "subjects": list(STREAM_SUBJECTS),
    "storage": "file",
    "retention": "limits",
    "discard": "new",
    "compression": "s2",
    "max_consumers": -1,
    "max_msgs": -1,
    "max_age": 0,
    "max_msgs_per_subject": -1,
    "max_msg_size": -1,
    "duplicate_window": DUPLICATE_WINDOW_S * 10**9,
    "allow_atomic": True,
    "allow_direct": True,
    "deny_delete": False,
    "deny_purge": False,
    "sealed": False,
}
_FREE = ("compression",)
"""Settings that an operator may choose otherwise without breaking a promise."""


def default_max_bytes(store: Path) -> int:
    """The smaller of 8 GiB and half the free room of the disk that holds `store`."""
    return min(MAX_BYTES, shutil.disk_usage(store).free // 2)


async def ensure_stream(
    bus: NatsBus,
    *,
    max_bytes: int | None = None,
    default: int = MAX_BYTES,
    replicas: int = 1,
    epoch: str | None = None,
    timeout_s: float = 10.0,
) -> StreamInfo:
    """Make the stream `LAMINA` where it is missing, check it where it stands; returns its state.

    A new stream gets `epoch`, or a fresh one, and `max_bytes`, or `default`. Of a standing stream the limit
    alone is set, where `max_bytes` is given (below what the log holds it is full, and nothing is dropped);
    any other setting that breaks a promise of the log is `Invalid`, naming the key.
    """
    reply = await bus.connection.ask(api.STREAM_INFO, b"{}", timeout_s=timeout_s)
    found = answer_of(reply, StreamAnswer, "looking at the stream")
    if found.error is None:
        check(found.config)
        if max_bytes is not None and found.config.get("max_bytes") != max_bytes:
            await _set(bus, api.STREAM_UPDATE, {**found.config, "max_bytes": max_bytes}, timeout_s)
    elif found.error.err_code == api.STREAM_MISSING:
        config = {
            **_FIXED,
            "name": STREAM,
            "max_bytes": default if max_bytes is None else max_bytes,
            "num_replicas": replicas,
            "metadata": {EPOCH_KEY: epoch or str(uuid.uuid4()), LANES_KEY: str(LANES)},
        }
        await _set(bus, api.STREAM_CREATE, config, timeout_s)
    else:
        raise error_of(found.error, "looking at the stream")
    return await bus.info(timeout_s=timeout_s)


def check(config: Mapping[str, Any]) -> None:
    """`Invalid`, naming the key, when a stream of this configuration could not keep the log's promises."""
    for key, wanted in _FIXED.items():
        value = config.get(key, type(wanted)())  # JetStream leaves out what is false, zero or empty
        if key == "subjects" and sorted(value) == sorted(STREAM_SUBJECTS):
            continue
        if key not in _FREE and value != wanted:
            raise Invalid(f"stream {STREAM}: {key} is {value!r}, but the log needs {wanted!r}")
    metadata = config.get("metadata") or {}
    if metadata.get(LANES_KEY) != str(LANES):
        raise Invalid(f"stream {STREAM}: metadata {LANES_KEY} is {metadata.get(LANES_KEY)!r}, not {LANES}")
    if not metadata.get(EPOCH_KEY):
        raise Invalid(f"stream {STREAM}: metadata {EPOCH_KEY} is missing; positions have no epoch")


async def _set(bus: NatsBus, subject: str, config: Mapping[str, Any], timeout_s: float) -> None:
    reply = await bus.connection.ask(subject, msgspec.json.encode(config), timeout_s=timeout_s)
    answer = answer_of(reply, StreamAnswer, "setting up the stream")
    if answer.error is not None:
        raise error_of(answer.error, "setting up the stream")
