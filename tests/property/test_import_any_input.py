"""Any bytes give a defined result; the same file gives the same records, whatever order its keys stand in."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import Invalid
from lamina.ids import token
from lamina.importer import FORMATS, BadRecord, Call, Item, SessionEnd, Turn, open_log
from lamina.importer.blocks import content_of
from lamina.importer.records import Json

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "import").iterdir())
UNORDERED = [path for path in FIXTURES if "lifebench" not in path.name]
"""Of a phone record the order of the fields is the order of the lines of the text."""

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
# fmt: off
KEYS = [
    "type", "role", "content", "text", "message", "messages", "payload", "id", "uuid", "sessionId", "session",
    "time", "timestamp", "tool", "result", "arguments", "tool_calls", "tool_use_id", "call_id", "name",
    "input", "source", "data", "from", "value", "conversations", "mapping", "conversation", "session_1",
    "haystack_sessions", "haystack_session_ids", "haystack_dates", "steps", "trajectory", "action",
    "observation", "chat", "batch", "mid", "kind", "tid", "user", "rec", "attachment", "prompt", "author",
    "parts", "current_node", "chat_messages", "sender",
]
WORDS = [
    "user", "assistant", "tool", "text", "tool_use", "tool_result", "image", "message", "response_item",
    "session_meta", "function_call",
]
# fmt: on
log_like = st.recursive(
    scalars | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("import") / "log.jsonl"


def read(path: Path, format: str = "auto") -> list[Item] | str:
    """Every record, or why the file is refused; anything else that is raised fails the test."""
    try:
        with open_log(path, format) as log:
            return list(log)
    except Invalid as error:
        return str(error)


def check(items: list[Item] | str) -> None:
    for item in items if isinstance(items, list) else []:
        if isinstance(item, Turn | Call | SessionEnd):
            token(item.session)
            token(item.agent)
            token(item.project)
        if isinstance(item, Turn | Call):
            assert item.time is None or item.time.utcoffset() is not None
        if isinstance(item, BadRecord):
            assert item.line >= 1
            assert item.why


@given(data=st.binary(max_size=400), format=st.sampled_from(["auto", *FORMATS]))
def test_any_bytes(file: Path, data: bytes, format: str) -> None:
    file.write_bytes(data)

    check(read(file, format))


@given(lines=st.lists(json_values | log_like, max_size=6), format=st.sampled_from(["auto", *FORMATS]))
def test_any_json_lines(file: Path, lines: list[Json], format: str) -> None:
    file.write_text("\n".join(json.dumps(line, ensure_ascii=True) for line in lines))

    check(read(file, format))


@given(value=log_like)
def test_any_content(value: Json) -> None:
    with contextlib.suppress(Invalid):
        content_of(value)


@given(fixture=st.sampled_from(FIXTURES), data=st.data())
def test_a_damaged_log(file: Path, fixture: Path, data: st.DataObject) -> None:
    """Bytes cut out, put in or changed anywhere."""
    raw = bytearray(fixture.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=8))
    file.write_bytes(raw)

    check(read(file))


@pytest.mark.parametrize("fixture", FIXTURES, ids=[path.name for path in FIXTURES])
def test_reading_twice_gives_the_same(fixture: Path) -> None:
    assert read(fixture) == read(fixture)


@pytest.mark.parametrize("fixture", FIXTURES, ids=[path.name for path in FIXTURES])
def test_gzip_and_another_folder_change_no_id(fixture: Path, tmp_path: Path) -> None:
    packed = tmp_path / (fixture.name + ".gz")
    packed.write_bytes(gzip.compress(fixture.read_bytes()))

    assert essence(read(packed)) == essence(read(fixture))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fixture", UNORDERED, ids=[path.name for path in UNORDERED])
def test_the_order_of_keys_changes_nothing(fixture: Path, seed: int, tmp_path: Path) -> None:
    shuffled = tmp_path / fixture.name
    lines = fixture.read_bytes().splitlines() if ".jsonl" in fixture.name else [fixture.read_bytes()]
    shuffled.write_bytes(b"\n".join(_shuffled(line, random.Random(seed)) for line in lines))

    assert essence(read(shuffled)) == essence(read(fixture))


def _shuffled(line: bytes, order: random.Random) -> bytes:
    """The same JSON with the keys of every object in another order; a broken line as it is."""

    def reorder(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        return dict(order.sample(pairs, len(pairs)))

    try:
        value = json.loads(line, object_pairs_hook=reorder)
        return json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return line


def essence(items: list[Item] | str) -> list[tuple[object, ...]]:
    """What makes ids and texts, without the places."""
    assert isinstance(items, list)
    return [
        (
            type(item).__name__,
            *(getattr(item, field, None) for field in ("session", "turn_id", "call_id", "role", "text", "result")),
            getattr(item, "time", None),
        )
        for item in items
    ]
