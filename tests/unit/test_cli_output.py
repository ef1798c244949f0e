"""Writing for people: nothing steers a terminal, wide characters count twice, a pipe gets plain text."""

from __future__ import annotations

import io

import msgspec
import pytest

from lamina.cli.command import Context
from lamina.cli.output import Column, Printer, ago_text, cut, one_line, printable, size_text, width, wrapped
from lamina.home import Home

STEERING = "\x1b]0;title\x07 \x1b[2J \x9b31m \x7f \r over \u202e turned \u2066 \ud800"


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def text_of(out: io.StringIO) -> str:
    return out.getvalue()


@pytest.mark.parametrize("text", ["plain", "두 줄\n둘째 줄\t탭", "日本語、中文。", "👩‍👩‍👧", "می‌خواهم", ""])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert printable(text) == text


def test_nothing_steers_the_terminal() -> None:
    shown = printable(STEERING)

    assert [c for c in shown if not c.isprintable()] == []
    assert shown.count("�") == 9


def test_windows_line_ends_are_line_ends() -> None:
    assert printable("a\r\nb") == "a\nb"


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()], ids=["pipe", "terminal"])
def test_every_way_of_printing_is_clean(out: io.StringIO) -> None:
    printer = Printer(out)
    printer.line(STEERING)
    printer.line(STEERING, "bold")
    printer.parts((STEERING, "red"), (STEERING, ""))
    printer.block(STEERING)
    printer.heading(STEERING)
    printer.panel(STEERING, STEERING)
    printer.table((Column(STEERING),), [(STEERING,)])

    text = text_of(out)
    assert "\x1b]" not in text
    assert "\x1b[2J" not in text
    assert not set("\x07\x9b\x7f\r\u202e\u2066\ud800") & set(text)


def test_json_is_clean_and_still_json() -> None:
    out = io.StringIO()
    context = Context(home=Home("nowhere"), space="s", json=True, out=out, err=io.StringIO())
    value = STEERING.replace("\ud800", "")
    context.document({"text": value})

    assert set(text_of(out).rstrip("\n")) & set("\x07\x1b\x9b\x7f\r\u202e\u2066") == set()
    assert msgspec.json.decode(text_of(out)) == {"text": value}


def test_markup_of_rich_is_text() -> None:
    out = Terminal()
    Printer(out).line("[red]not red[/red] :smile:", "bold")

    assert "[red]not red[/red] :smile:" in text_of(out)


def test_no_colour_when_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    out = Terminal()
    Printer(out).line("text", "red")

    assert text_of(out) == "text\n"


def test_colour_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    out = Terminal()
    Printer(out).line("text", "red")

    assert text_of(out) == "\x1b[31mtext\x1b[0m\n"


def test_a_dumb_terminal_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    Printer(out).heading("title")

    assert text_of(out) == "== title\n"


def test_table_in_a_pipe_is_aligned_by_columns_of_the_screen() -> None:
    out = io.StringIO()
    Printer(out).table((Column("name"), Column("n", right=True)), [("서울", "5"), ("kickoff", "12")])

    assert text_of(out) == "name      n\n서울      5\nkickoff  12\n"


def test_pipe_keeps_lines_whole() -> None:
    out = io.StringIO()
    Printer(out).block("word " * 100)

    assert len(text_of(out).splitlines()) == 1


def test_block_is_cut_and_says_by_how_much() -> None:
    out = io.StringIO()

    assert Printer(out).block("\n".join("abcdef"), most=2) == 4
    assert text_of(out) == "    a\n    b\n"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("The quick brown fox jumps over the lazy dog", 12),
        ("파운드로 오면 회계팀이 다시 계산해야 합니다", 12),
        ("海运大约六周，空运五天，但空运每公斤要多付四十元。", 12),
        ("ラベルはA4用紙一枚に二十四面、フォントは源ノ角ゴシックでお願いします。", 12),
        ("x" * 100, 7),
        ("界" * 50, 7),
    ],
)
def test_wrapped_lines_fit_and_lose_nothing(text: str, columns: int) -> None:
    lines = wrapped(text, columns)

    assert max(width(line) for line in lines) <= columns + 2  # a closing mark stays with what it closes
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_korean_words_stay_whole() -> None:
    words = ["파운드로", "오면", "회계팀이", "다시", "계산해야", "합니다"]

    assert [word for line in wrapped(" ".join(words), 12) for word in line.split()] == words


@pytest.mark.parametrize(
    ("text", "most", "shown"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 5, "日本…"), ("", 3, "")]
)
def test_cut(text: str, most: int, shown: str) -> None:
    assert cut(text, most) == shown


def test_one_line() -> None:
    assert one_line("a\n\tb  c") == "a b c"


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (3_400, "3.4 kB"), (120_000_000, "120 MB"), (8 * 10**12, "8.0 TB")]
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.42, "0.4 s"), (12.3, "12 s"), (300, "5 min"), (3 * 3_600, "3 h"), (12 * 86_400, "12 d")]
)
def test_spans(seconds: float, text: str) -> None:
    assert ago_text(seconds) == text
