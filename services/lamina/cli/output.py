"""How verbs write for people: colour and tables on a terminal, plain aligned text in a pipe, never a control code.

Everything shown may be somebody's memory, so every text goes through `printable` on its way out: nothing that was
remembered can move the cursor, change a title or turn the reading direction of the terminal it is shown on.
"""

from __future__ import annotations

import os
import shutil
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from msgspec import Struct

if TYPE_CHECKING:
    from rich.console import Console

JOINERS = "\u200c\u200d"
"""Zero-width joiners: invisible, harmless, and part of Persian words and of emoji."""
WIDEST = 100
PLAIN_WIDTH = 80
HIDDEN = "�"
_CLOSING = "、。，．！？：；」』）】…,.!?:;)"


def printable(text: str) -> str:
    """`text` without what could steer a terminal; line breaks and tabs stay, other such characters become U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    whole = text.replace("\r\n", "\n")
    return "".join(c if c.isprintable() or c in "\n\t" or c in JOINERS else HIDDEN for c in whole)


def one_line(text: str, most: int = 0) -> str:
    """`text` on one line, spaces joined; cut to `most` columns where that is given."""
    line = " ".join(printable(text).split())
    return cut(line, most) if most else line


def cut(line: str, most: int) -> str:
    """The beginning of `line` that fits into `most` columns, with an ellipsis where something is left out."""
    if width(line) <= most:
        return line
    used = 1
    for index, character in enumerate(line):
        used += _columns(character)
        if used > most:
            return line[:index].rstrip() + "…"
    return line


def width(line: str) -> int:
    """Columns that `line` takes on a terminal: two for a wide character, none for a combining one."""
    return len(line) if line.isascii() else sum(map(_columns, line))


def wrapped(text: str, columns: int) -> list[str]:
    """The lines of `text`, each cut at spaces (or between wide characters) to at most `columns`."""
    lines: list[str] = []
    for line in printable(text).expandtabs(4).split("\n"):
        lines.extend(_wrapped(line, columns) if width(line) > columns else [line])
    return lines


def _wrapped(line: str, columns: int) -> list[str]:
    if line.isascii():
        return textwrap.wrap(line, columns, subsequent_indent=_indent(line, columns)) or [""]
    lines, current, used = [], "", 0
    for word in _words(line):
        size = width(word)
        if used and used + size > columns:
            lines.append(current.rstrip())
            current, used = "", 0
            word = word.lstrip()
            size = width(word)
        while size > columns:
            head = cut(word, columns + 1).rstrip("…") or word[0]
            lines.append(head)
            word = word[len(head) :]
            size = width(word)
        current, used = current + word, used + size
    return [*lines, current.rstrip()] if current.strip() else lines


def _words(line: str) -> list[str]:
    """Pieces that stay together: an ideograph or kana each, or a run of other letters up to and with its spaces;
    what closes stays with what it closes."""
    words: list[str] = []
    for character in line:
        runs_on = words and not _stands_alone(character) and not _stands_alone(words[-1][0]) and words[-1][-1] != " "
        if words and (runs_on or character == " " or character in _CLOSING or _columns(character) == 0):
            words[-1] += character
        else:
            words.append(character)
    return words


def _stands_alone(character: str) -> bool:
    """May a line break on either side of it? Hangul is written with spaces between its words."""
    return _columns(character) == 2 and not "\uac00" <= character <= "\ud7a3"


def _indent(line: str, columns: int) -> str:
    return " " * min(len(line) - len(line.lstrip()), columns // 4)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or character in JOINERS or "\ufe00" <= character <= "\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Column(Struct, frozen=True):
    """A column of a table: its title, and whether its cells are numbers."""

    title: str
    right: bool = False


class Printer:
    """Writes to one stream: with `rich` where it is a terminal, as plain text where it is not.

    NO_COLOR, TERM and COLUMNS are respected. `rich` is loaded at first use, so that a pipe never pays for it.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.terminal = out.isatty() and os.environ.get("TERM", "") != "dumb"
        self._rich: Console | None = None

    @property
    def columns(self) -> int:
        """How wide a line may be; a pipe has no limit of its own, and gets a readable one."""
        return min(WIDEST, shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns) if self.terminal else PLAIN_WIDTH

    def line(self, text: str = "", style: str = "") -> None:
        """A line as it is; on a terminal in `style` (a `rich` one)."""
        if style and self.terminal:
            from rich.text import Text

            self._console().print(Text(printable(text), style), soft_wrap=True)
        else:
            self._out.write(printable(text) + "\n")

    def parts(self, *parts: tuple[str, str]) -> None:
        """A line of pieces, each a (text, style)."""
        if self.terminal:
            from rich.text import Text

            self._console().print(Text.assemble(*((printable(text), style) for text, style in parts)), soft_wrap=True)
        else:
            self.line("".join(text for text, _ in parts))

    def block(self, text: str, indent: str = "    ", style: str = "", most: int = 0) -> int:
        """A text below what it belongs to: indented, wrapped on a terminal, its lines kept whole in a pipe.

        At most `most` lines (0: all); returns how many lines were left out.
        """
        clean = text.strip("\n")
        room = self.columns - len(indent)
        lines = wrapped(clean, room) if self.terminal else printable(clean).split("\n")
        shown = lines[:most] if most else lines
        for line in shown:
            self.line(indent + line if line else "", style)
        return len(lines) - len(shown)

    def heading(self, text: str) -> None:
        """The title of a part."""
        if self.terminal:
            from rich.rule import Rule
            from rich.text import Text

            self._console().print(Rule(Text(printable(text), "bold"), align="left", style="dim"), width=self.columns)
        else:
            self.line(f"== {text}")

    def panel(self, title: str, text: str) -> None:
        """A text in a frame."""
        if self.terminal:
            from rich.panel import Panel
            from rich.text import Text

            body = Text(printable(text))
            self._console().print(
                Panel(body, title=Text(printable(title)), title_align="left", width=self.columns, style="none")
            )
        else:
            self.heading(title)
            self.block(text, "  ")

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], *, styles: Sequence[str] = ()) -> None:
        """Rows under titles. `styles` name a style for each row."""
        if self.terminal:
            self._rich_table(columns, rows, styles)
            return
        cells = [[one_line(column.title) for column in columns], *([one_line(cell) for cell in row] for row in rows)]
        widths = [max(width(row[index]) for row in cells) for index in range(len(columns))]
        for row in cells:
            aligned = [
                " " * (size - width(cell)) + cell if column.right else cell + " " * (size - width(cell))
                for cell, size, column in zip(row, widths, columns, strict=True)
            ]
            self.line("  ".join(aligned).rstrip())

    def _rich_table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], styles: Sequence[str]) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
        for column in columns:
            table.add_column(
                Text(printable(column.title)), justify="right" if column.right else "left", overflow="fold"
            )
        for index, row in enumerate(rows):
            style = styles[index] if index < len(styles) else ""
            table.add_row(*(Text(printable(cell)) for cell in row), style=style)
        self._console().print(table)

    def _console(self) -> Console:
        if self._rich is None:
            from rich.console import Console

            self._rich = Console(file=self._out, markup=False, highlight=False, emoji=False)
        return self._rich


def size_text(size_bytes: int) -> str:
    """A size as people write it: 812 B, 3.4 kB, 120 MB."""
    amount = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def ago_text(seconds: float) -> str:
    """A span of time in its largest unit: 0.4 s, 12 s, 5 min, 3 h, 12 d."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 3_600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.0f} h" if seconds < 86_400 else f"{seconds / 86_400:.0f} d"
