"""Files beside a view: appended whole, replaced atomically, mended after a crash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import Busy, Conflict, Denied, Invalid
from lamina.runtime import Append, DropFile, WriteFile
from lamina.runtime.files import SpaceFiles, ledger_lock, line_seq
from lamina.store.driver import Damaged
from lamina.store.files import AppendFile, translated_os, write_atomic


def line(seq: int) -> bytes:
    return b'{"seq":%d,"x":"%s"}\n' % (seq, b"y" * 20)


def append(seq: int, file: str = "a.jsonl") -> Append:
    return Append(file, seq, line(seq))


@pytest.fixture
def files(tmp_path: Path) -> SpaceFiles:
    return SpaceFiles(tmp_path / "space", "epoch")


class TestAppendFile:
    @pytest.mark.parametrize("torn", [b"", b"x", b'{"seq":3', b"\0" * 100_000])
    @pytest.mark.parametrize("size", [0, 1, 200_000])
    def test_mends_a_torn_end(self, tmp_path: Path, torn: bytes, size: int) -> None:
        whole = b"first\n" + b"s" * size + b"\n" if size else b""
        (tmp_path / "a").write_bytes(whole + torn)
        file = AppendFile(tmp_path / "a")

        assert file.mend() == b"s" * size
        assert (tmp_path / "a").read_bytes() == whole
        file.append(b"next\n")
        assert (tmp_path / "a").read_bytes() == whole + b"next\n"
        file.close()

    def test_sees_that_somebody_else_appended(self, tmp_path: Path) -> None:
        one, other = AppendFile(tmp_path / "a"), AppendFile(tmp_path / "a")
        one.mend()
        other.mend()
        one.append(b"1\n")

        assert other.changed()
        assert other.mend() == b"1"
        assert not other.changed()
        one.close()
        other.close()

    @given(st.lists(st.binary(max_size=30).map(lambda raw: raw.replace(b"\n", b"") + b"\n")), st.binary(max_size=20))
    def test_never_loses_a_whole_line(
        self, tmp_path_factory: pytest.TempPathFactory, held: list[bytes], torn: bytes
    ) -> None:
        path = tmp_path_factory.mktemp("mend") / "a"
        path.write_bytes(b"".join(held) + torn.replace(b"\n", b""))
        file = AppendFile(path)

        assert file.mend() == (held[-1][:-1] if held else b"")
        assert path.read_bytes() == b"".join(held)
        file.close()


class TestWriteAtomic:
    def test_replaces_and_leaves_no_litter(self, tmp_path: Path) -> None:
        for data in (b"one", b"", b"two" * 1000):
            write_atomic(tmp_path / "deep" / "a.md", data)
            assert (tmp_path / "deep" / "a.md").read_bytes() == data
        assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a.md"]

    def test_where_a_folder_stands_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        with pytest.raises(Exception, match="directory"):
            write_atomic(tmp_path / "a", b"x")
        assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(("number", "kind"), [(13, Denied), (30, Denied), (1, Denied)])
def test_system_errors_are_ours(tmp_path: Path, number: int, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"a\.txt"), translated_os(tmp_path / "a.txt"):
        raise OSError(number, os.strerror(number))


class TestSpaceFiles:
    def test_a_line_that_stands_there_is_not_written_again(self, files: SpaceFiles) -> None:
        files.apply([append(1), append(2)])
        files.apply([append(2), append(3), append(5, "b.jsonl")])
        files.apply([append(4), append(5, "b.jsonl"), append(6, "b.jsonl")])

        assert (files.root / "log" / "a.jsonl").read_bytes() == line(1) + line(2) + line(3)
        assert (files.root / "log" / "b.jsonl").read_bytes() == line(5) + line(6)
        files.close()

    def test_two_writers_leave_each_line_once(self, files: SpaceFiles) -> None:
        other = SpaceFiles(files.root, "epoch")
        for n in range(1, 20):
            (files if n % 3 else other).apply([append(n)])
            (other if n % 2 else files).apply([append(n)])

        assert (files.root / "log" / "a.jsonl").read_bytes() == b"".join(line(n) for n in range(1, 20))
        files.close()
        other.close()

    def test_lines_that_were_lost_are_noticed(self, files: SpaceFiles) -> None:
        files.apply([append(1), append(2)])
        os.truncate(files.root / "log" / "a.jsonl", len(line(1)) + 3)
        with pytest.raises(Damaged, match="lost"):
            files.apply([append(3)], held=2)
        with pytest.raises(Damaged):
            files.check_ledger(2)
        files.check_ledger(1)

        assert (files.root / "log" / "a.jsonl").read_bytes() == line(1)
        files.close()

    def test_another_epochs_ledger_is_a_conflict(self, files: SpaceFiles) -> None:
        files.apply([append(1)])
        files.close()
        with pytest.raises(Conflict, match="epoch"):
            SpaceFiles(files.root, "other").apply([append(1)])

    def test_of_what_a_batch_does_to_a_file_the_end_stands(self, files: SpaceFiles) -> None:
        files.apply([WriteFile("a.md", b"1"), WriteFile("b.md", b"1"), WriteFile("a.md", b"2"), DropFile("b.md")])
        files.apply([DropFile("none.md"), DropFile("no/where.md")])

        assert (files.root / "a.md").read_bytes() == b"2"
        assert not (files.root / "b.md").exists()
        files.close()

    @pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x"])
    def test_no_path_leads_out(self, files: SpaceFiles, path: str) -> None:
        for change in (WriteFile(path, b""), DropFile(path), Append(f"../{path}", 1, line(1))):
            with pytest.raises(Invalid, match="out of the space"):
                files.apply([change])
        files.close()

    @pytest.mark.parametrize("sha256", ["", "x" * 64, "A" * 64, "../" + "a" * 61, "a" * 63])
    def test_a_blob_is_named_by_its_checksum(self, files: SpaceFiles, sha256: str) -> None:
        with pytest.raises(Invalid, match="SHA-256"):
            files.blob_path(sha256)

    def test_a_held_ledger_is_busy(self, files: SpaceFiles, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("lamina.runtime.files.LOCK_S", 0.0)
        with ledger_lock(files.root / "log"), pytest.raises(Busy):
            files.apply([append(1)])
        files.apply([append(1)])
        files.close()


@pytest.mark.parametrize("raw", [b"", b"x", b"{}", b'{"seq":"1"}', b"[1]"])
def test_what_is_no_ledger_line_is_invalid(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(Invalid, match="restore"):
        line_seq(raw, tmp_path)
