"""What a caller gives: text stays text, other bytes and long texts are blobs, the rest is a typed error."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from lamina.client import inputs
from lamina.errors import Invalid, TooLarge
from lamina.events import MAX_BLOB_BYTES, MAX_INLINE_BYTES, Blob


@pytest.mark.parametrize("value", ["hi", "안녕", b"hi", bytearray(b"hi"), memoryview("안녕".encode()), "\0", " x "])
def test_short_text_stands_in_the_event(value: Any) -> None:
    found = inputs.content(value, "text")

    assert found.text == (value if isinstance(value, str) else bytes(value).decode())
    assert found.blobs == ()


@pytest.mark.parametrize(
    "value",
    [
        "x" * (MAX_INLINE_BYTES + 1),
        "한" * (MAX_INLINE_BYTES // 3 + 1),
        '"' * (MAX_INLINE_BYTES // 2 + 1),
        "\x01" * 50_000,
    ],
    ids=["ascii", "korean", "quotes", "control"],
)
def test_text_that_is_long_in_the_event_is_a_blob(value: str) -> None:
    found = inputs.content(value, "text")

    raw = value.encode()
    blob = Blob(hashlib.sha256(raw).hexdigest(), len(raw))
    assert found.text == blob
    assert found.blobs == ((blob, raw),)
    assert blob.media_type.startswith("text/")


def test_text_at_the_limit_stands_in_the_event() -> None:
    assert inputs.content("x" * MAX_INLINE_BYTES, "text").blobs == ()


def test_bytes_that_are_no_text_are_a_blob_that_says_so() -> None:
    found = inputs.content(b"\xff\xfe", "text")

    assert isinstance(found.text, Blob)
    assert found.text.media_type == inputs.BINARY


@pytest.mark.parametrize("value", ["", " \n", b"", "\u3000", None, 5, ["x"], "\ud800"])
def test_nothing_to_remember_is_invalid(value: Any) -> None:
    with pytest.raises(Invalid, match="result"):
        inputs.content(value, "result")


def test_a_tool_may_return_nothing() -> None:
    assert inputs.content("", "result", empty=True).text == ""
    assert inputs.content(b"", "result", empty=True).text == ""


def test_more_than_64_mib_is_too_large() -> None:
    with pytest.raises(TooLarge, match=str(MAX_BLOB_BYTES)):
        inputs.content(b"x" * (MAX_BLOB_BYTES + 1), "text")


@pytest.mark.parametrize("value", ["User", "", "bot", None, 5, [], {}])
def test_an_unknown_role_is_invalid_and_names_the_known(value: Any) -> None:
    with pytest.raises(Invalid, match="assistant"):
        inputs.role(value)


@pytest.mark.parametrize("value", ["", None, 5, b"s"])
def test_a_session_must_be_named(value: Any) -> None:
    with pytest.raises(Invalid, match="session"):
        inputs.session_id(value)


def test_names_are_short_texts_or_none() -> None:
    assert inputs.name(None, "name") is None
    assert inputs.name("Ada", "name") == "Ada"
    for value in ("", " ", 5, b"x"):
        with pytest.raises(Invalid, match="name"):
            inputs.name(value, "name")  # type: ignore[arg-type]
    with pytest.raises(TooLarge):
        inputs.name("x" * 1_001, "name")


def test_arguments_are_a_mapping() -> None:
    assert inputs.arguments(None) == {}
    assert inputs.arguments({"a": 1}) == {"a": 1}
    wrong: tuple[Any, ...] = ([], "x", 5)
    for value in wrong:
        with pytest.raises(Invalid):
            inputs.arguments(value)


@pytest.mark.parametrize("value", [-1, -0.1, float("nan"), float("inf"), 1e9, "1", None, True])
def test_a_wait_is_a_number_of_seconds(value: Any) -> None:
    with pytest.raises(Invalid, match="deadline_s"):
        inputs.seconds(value, "deadline_s")
    assert inputs.seconds(2, "deadline_s") == 2.0


@pytest.mark.parametrize("value", ["5", 5.0, None, True, [5], float("nan")])
def test_a_whole_number_is_an_int(value: Any) -> None:
    with pytest.raises(Invalid, match="limit must be a whole number"):
        inputs.whole(value, "limit")
    assert inputs.whole(-5, "limit") == -5


def test_names_are_a_list_of_texts_or_none() -> None:
    assert inputs.names(None, "layers") is None
    assert inputs.names(["l0", "l1"], "layers") == ("l0", "l1")
    assert inputs.names({"l0"}, "layers") == ("l0",)
    wrong: tuple[Any, ...] = (5, b"l0", [5], [None], iter(["l0"]))
    for value in wrong:
        with pytest.raises(Invalid, match="layers must be a list of names"):
            inputs.names(value, "layers")
    with pytest.raises(Invalid, match=r"a list of names: \['l0'\], not 'l0'"):
        inputs.names("l0", "layers")
