"""Edited files: told by their seals, read as hostile input, said as lines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.runtime import edits
from lamina.runtime.sealing import intact, seal_of, sealed, unsealed

LINES = st.lists(st.text(alphabet="ab- #\r\t", max_size=6), max_size=12)


def test_a_seal_fits_what_was_sealed_and_nothing_else() -> None:
    data = sealed("# A\n\n- one\n")

    assert intact(data)
    assert unsealed(data) == b"# A\n\n- one\n"
    assert not intact(data.replace(b"one", b"two"))
    assert seal_of(data.replace(b"one", b"two")) == seal_of(data)
    assert not intact(b"# A\n\n- one\n")
    assert not intact(b"")


@given(st.text())
def test_any_text_can_be_sealed(text: str) -> None:
    assert intact(sealed(text))


@given(st.binary(max_size=300))
def test_any_bytes_have_a_defined_answer(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "f.md"
    path.write_bytes(data)

    found = edits.look(path)

    assert found is not None
    if not found.broken:
        edits.difference("a\n", edits.read(found.data))


def test_lines_are_told_with_the_headings_they_stand_under() -> None:
    base = "# P\n\n## One\n\n- a\n- b\n\n## Two\n\n- c\n"
    found = "# P\n## One\n- a\n- new  \n\n\n## Two\n\n- c\n- b\n"

    change = edits.difference(base, found)

    assert change.removed == ("- b",)
    assert list(zip(change.under, change.added, strict=True)) == [("## One", "- new"), ("## Two", "- b")]


def test_under_a_heading_that_was_renamed_nothing_has_moved() -> None:
    change = edits.difference("## One\n- a\n- b\n", "## Eins\n- a\n- c\n")

    assert (change.removed, change.added) == (("- b",), ("- c",))


@given(LINES, LINES)
def test_a_difference_is_made_of_lines_of_both(before: list[str], after: list[str]) -> None:
    base, found = "\n".join(before), "\n".join(after)

    change = edits.difference(base, found)

    assert set(change.removed) <= {line.rstrip() for line in before}
    assert set(change.added) <= {line.rstrip() for line in after}
    assert len(change.under) == len(change.added)
    same = edits.difference(base, base)
    assert (same.removed, same.added) == ((), ())


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"a\x00b", "binary"),
        (b"\xff\xfe", "UTF-8"),
        (b"a" * (edits.MAX_BYTES + 1), "bytes"),
        (b"a\n" * (edits.MAX_LINES + 1), "lines"),
    ],
)
def test_what_no_person_wrote_is_broken(tmp_path: Path, data: bytes, why: str) -> None:
    path = tmp_path / "f.md"
    path.write_bytes(data)

    found = edits.look(path)

    assert found is not None
    assert why in found.broken


def test_links_folders_and_pipes_are_broken_and_never_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link.md").symlink_to(tmp_path / "secret")
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")

    found = [edits.look(tmp_path / name) for name in ("link.md", "folder.md", "pipe.md")]

    assert all(one is not None and one.broken and not one.data for one in found)
    assert edits.look(tmp_path / "none.md") is None


def test_what_a_person_edited_is_put_aside_before_it_is_written_over(tmp_path: Path) -> None:
    edits.place(tmp_path, "f.md", sealed("one\n"))
    edits.place(tmp_path, "f.md", sealed("two\n"))
    assert edits.aside(tmp_path, "f.md") == []

    (tmp_path / "f.md").write_bytes(sealed("two\n").replace(b"two", b"mine"))
    edits.place(tmp_path, "f.md", sealed("three\n"))

    (kept,) = edits.aside(tmp_path, "f.md")
    assert kept.read_bytes().startswith(b"mine\n")
    assert (tmp_path / "f.md").read_bytes() == sealed("three\n")


def test_a_file_that_is_dropped_is_put_aside_too(tmp_path: Path) -> None:
    edits.place(tmp_path, "s/f.md", sealed("one\n"))
    edits.drop(tmp_path, "s/f.md")
    assert edits.aside(tmp_path, "s/f.md") == []

    edits.place(tmp_path, "s/f.md", sealed("one\n"))
    (tmp_path / "s/f.md").write_bytes(sealed("one\n").replace(b"one", b"mine"))
    edits.drop(tmp_path, "s/f.md")

    assert len(edits.aside(tmp_path, "s/f.md")) == 1
    assert not (tmp_path / "s/f.md").exists()
