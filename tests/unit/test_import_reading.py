"""From bytes to documents: lines, lists, whole objects, gzip, limits; every damage with its place."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from lamina.errors import Invalid
from lamina.importer import BadRecord, Skipped, Turn, detect, open_log
from lamina.importer.reading import Document, documents


def split(data: bytes, *, line: int = 1000, document: int = 100_000) -> list[tuple[int, str, object]]:
    """(line, path, value or what is wrong) of each document."""
    found = documents(io.BytesIO(data), "f", max_line_bytes=line, max_document_bytes=document)
    return [
        (item.source.line, item.source.path, item.value)
        if isinstance(item, Document)
        else (item.line, item.path, item.why)
        for item in found
    ]


def places(data: bytes) -> list[tuple[int, str]]:
    return [(line, path) for line, path, _ in split(data)]


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1}\n{"a":2}\n',
        b'{"a":1}\n{"a":2}',
        b'\xef\xbb\xbf{"a":1}\r\n{"a":2}\r\n',
        b'{"a":1}\n\n  \n{"a":2}\n',
        b'[{"a":1},{"a":2}]',
        b'[{"a":1},{"a":2}]\n\n',
        b'[\n{"a":1},\n{"a":2}\n]\n',
        b' [\n  {\n   "a":1},\n\n  {"a":2 }\n]\n',
    ],
)
def test_lines_and_lists_give_the_same_documents(data: bytes) -> None:
    assert [value for _, _, value in split(data)] == [{"a": 1}, {"a": 2}]


def test_places_are_lines_and_paths() -> None:
    assert places(b'{"a":1}\n\n{"a":2}\n') == [(1, "$"), (3, "$")]
    assert places(b'[\n{"a":\n1},\n{"a":2}\n]') == [(2, "$[0]"), (4, "$[1]")]
    assert places(b'{\n"a": 1\n}') == [(1, "$")]


def test_lists_in_lines_stay_lists() -> None:
    """Each line is a conversation of its own; only a list alone in the file is a list of documents."""
    assert [value for _, _, value in split(b"[1]\n[2]\n")] == [[1], [2]]
    assert [value for _, _, value in split(b"[1]\n")] == [1]


@pytest.mark.parametrize("first", [b'{"a":', b'{"a" 1}', b"oops", b'{"a": "cut off', b"[1, 2", b"\xff\xfe\xfd{"])
def test_a_broken_first_line_costs_that_line_alone(first: bytes) -> None:
    found = split(first + b'\n{"a":2}\n{"a":3}\n')

    assert isinstance(found[0][2], str)
    assert [value for _, _, value in found[1:]] == [{"a": 2}, {"a": 3}]


def test_two_broken_first_lines_cost_those_lines_alone() -> None:
    found = split(b'{"a":\n{"b":\n{"a":3}\n')

    assert [line for line, _, _ in found] == [1, 2, 3]
    assert found[2][2] == {"a": 3}


def test_a_broken_document_is_one_bad_record_at_its_line() -> None:
    assert places(b'{\n "a": 1,\n "b": x\n}\n') == [(3, "$")]
    assert places(b'[\n {"a": 1},\n {"a": 2}\n') == [(3, "$")]


def test_a_broken_element_costs_itself_alone() -> None:
    found = split(b'[{"a":1}, {"a":"\xff"}, {"a":3}]')

    assert [value for _, _, value in (found[0], found[2])] == [{"a": 1}, {"a": 3}]
    assert found[1][:2] == (1, "$[1]")
    assert "UTF-8" in str(found[1][2])


def test_a_line_above_the_limit_is_not_kept_and_the_next_is_read() -> None:
    found = split(b'{"a":1}\n"' + b"x" * 5000 + b'"\n{"a":2}\n', line=1000)

    assert [(line, isinstance(value, str)) for line, _, value in found] == [(1, False), (2, True), (3, False)]
    assert "more than 1000 bytes" in str(found[1][2])


def test_a_document_above_the_limit_is_refused() -> None:
    found = split(b'{\n"a": [' + b"1,\n" * 5000 + b"1]\n}", document=1000)

    assert [isinstance(value, str) for _, _, value in found] == [True]


@pytest.mark.parametrize("data", [b"[" * 200_000, b'{"a":' * 200_000, b"[" * 200_000 + b"]" * 200_000])
def test_bottomless_nesting_is_a_bad_record(data: bytes) -> None:
    found = split(data, document=10_000_000)

    assert [isinstance(value, str) for _, _, value in found] == [True]


def test_gzip_is_found_by_content(tmp_path: Path) -> None:
    plain = tmp_path / "log.jsonl"
    packed = tmp_path / "log.data"
    plain.write_bytes(b'{"role":"user","text":"one"}\n')
    packed.write_bytes(gzip.compress(plain.read_bytes()))

    texts = [[item.text for item in open_log(path) if isinstance(item, Turn)] for path in (plain, packed)]

    assert texts == [["one"], ["one"]]


def test_a_gzip_file_cut_short_gives_what_it_holds_and_says_so(tmp_path: Path) -> None:
    lines = b"".join(b'{"role":"user","text":"%d %s"}\n' % (n, b"%x" % (n * 7919**5)) for n in range(5000))
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(lines)[:-2000])

    items = list(open_log(path))

    assert len(items) > 1000
    assert all(isinstance(item, Turn) for item in items[:-1])
    assert isinstance(items[-1], BadRecord)
    assert items[-1].line == len(items)
    assert "gzip" in items[-1].why


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"PK\x03\x04rest", "zip"),
        (b"\x28\xb5\x2f\xfdrest", "zstd"),
        ("hello".encode("utf-16"), "UTF-16"),
        (b"SQLite format 3\x00", "SQLite"),
        (b"just words\n", "not JSON"),
        (b'{"question": "?", "answer": "!"}\n', "known"),
        (b"[]", "empty"),
        (b"\x1f\x8bbroken", "gzip"),
    ],
)
def test_what_is_no_log_is_refused_with_a_reason(tmp_path: Path, data: bytes, why: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)

    with pytest.raises(Invalid, match=why):
        detect(path)


def test_no_such_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="cannot be opened"):
        open_log(tmp_path / "none")
    with pytest.raises(Invalid, match="is a folder; name the files in it"):
        open_log(tmp_path)
    with pytest.raises(Invalid, match="unknown; there are auto, claude-code"):
        open_log(__file__, "word")


def test_the_name_of_a_file_says_nothing_about_its_format(tmp_path: Path) -> None:
    path = tmp_path / "rollout-claude.json"
    path.write_bytes(b'{"chat":"c","id":1,"batch":1,"role":"user","content":"x","time_anchor":null}\n')

    assert detect(path) == "beam"


def test_a_named_format_is_taken_at_its_word(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"role":"user","content":"x"}\n')

    assert detect(path) == "jsonl"
    assert [type(item) for item in open_log(path, "openai")] == [Turn]
    assert [type(item) for item in open_log(path, "codex")] == [Skipped]
    assert [type(item) for item in open_log(path, "beam")] == [BadRecord]


def test_position_reaches_the_size(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"role":"user","text":"x"}\n' * 10_000)

    with open_log(path) as log:
        begin = log.position_bytes
        for _ in log:
            pass
        end = log.position_bytes

    assert (log.size_bytes, end) == (270_000, 270_000)
    assert begin < end
