"""Every type and version ever written is read today, and today's are written byte for byte as ever.

`tests/golden/<type>.v<version>.json` is an event as it stands in the log. A file is never changed; a new version
gets a new file, and its upcaster brings the old ones to today's struct.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina import events, upcast

FOLDER = Path(__file__).parent.parent / "golden"
FILES = sorted(FOLDER.glob("*.json"))


def test_there_is_one_for_every_type_and_version() -> None:
    wanted = {f"{name}.v{v}.json" for name in events.TYPES for v in range(1, upcast.VERSIONS.get(name, 1) + 1)}

    assert {path.name for path in FILES} >= wanted, (
        "write the missing events to tests/golden as they stand in the log"
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_is_read_and_written_as_ever(path: Path) -> None:
    raw = path.read_bytes().removesuffix(b"\n")

    event = events.decode(raw)
    data = events.decode_data(event)

    assert path.name == f"{event.type}.v{event.v}.json"
    assert events.encode(event) == raw
    assert isinstance(data, events.TYPES[event.type])
    if event.v == upcast.VERSIONS.get(event.type, 1):
        assert events.canonical(data) == bytes(event.data)
        again = events.make(
            data,
            id=event.id,
            space=event.space,
            time=event.when,
            session=event.session,
            agent=event.agent,
            project=event.project,
            cause=event.cause,
        )
        assert events.encode(again) == raw
