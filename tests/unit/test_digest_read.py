"""Reading back: exact lines, passages for a query, whole bodies of symbols."""

from __future__ import annotations

import pytest

from lamina.digest import read
from lamina.errors import Invalid

TEXT = "".join(f"line {n} of the report\n" for n in range(1, 201))
JAVA = (
    "package com.acme;\n\npublic class Cart implements Basket {\n    private int size;\n\n"
    "    /** Adds. */\n    @Override\n    public void add(Item item) {\n        if (item == null) {\n"
    "            throw new IllegalArgumentException();\n        }\n        size++;\n    }\n\n"
    "    public int getSize() {\n        return size;\n    }\n}\n\n"
    "class Other {\n    void add(Item item) {\n    }\n}\n"
)
PYTHON = (
    "class Account:\n    def transfer(self, amount):\n        if amount > self.balance:\n\n"
    "            raise ValueError(amount)\n        self.balance -= amount\n\n    def close(self):\n        pass\n\n\n"
    "def transfer(a, b):\n    return a.transfer(b)\n"
)


def test_lines_are_exact_and_say_what_follows() -> None:
    found = read(TEXT, lines="10-12")

    assert found.text == "10|line 10 of the report\n11|line 11 of the report\n12|line 12 of the report"
    assert found.exact == "line 10 of the report\nline 11 of the report\nline 12 of the report\n"
    assert found.ranges == ((10, 12),)
    assert found.total_lines == 201
    assert found.omitted == ""


def test_a_range_above_the_budget_says_where_to_go_on() -> None:
    found = read(TEXT, lines="1-", max_tokens=50)
    last = found.ranges[0][1]

    assert found.omitted == f'lines {last + 1}-201 of 201: read lines="{last + 1}-201"'
    assert len(found.text) <= 150


def test_nothing_asked_is_the_beginning() -> None:
    assert read(TEXT, max_tokens=30).text.startswith("1|line 1 of the report\n")


@pytest.mark.parametrize("lines", ["", "x", "-", "0", "12-10", "202", "1-2-3", "1e3", "9" * 40])
def test_a_bad_range_names_the_remedy(lines: str) -> None:
    with pytest.raises(Invalid, match="line"):
        read(TEXT, lines=lines)


def test_two_ways_at_once_are_refused() -> None:
    with pytest.raises(Invalid, match="query and lines"):
        read(TEXT, query="report", lines="1")


def test_a_query_shows_the_rare_word_with_its_surroundings() -> None:
    """The word that only one line holds decides, not the one that all hold."""
    found = read(TEXT, query="report 137")

    assert "137|line 137 of the report" in found.text.split("\n")
    assert "136|line 136 of the report" in found.text.split("\n")
    assert found.omitted


def test_a_query_ignores_case_and_finds_cjk_inside_sentences() -> None:
    text = TEXT + "Der Fehlercode E_LEASE_7719 trat auf\n결제 서버에서 오류가 발생했다\n会议三点开始请准时参加\n"

    assert "E_LEASE_7719" in read(text, query="e_lease_7719").text
    assert "오류가 발생했다" in read(text, query="오류").text
    assert "会议三点开始" in read(text, query="几点开始").text


def test_a_word_inside_a_huge_line_is_windowed_and_said() -> None:
    text = "a,b;" * 50_000 + "needle_7719" + ";c,d" * 50_000
    found = read(text, query="needle_7719", max_tokens=200)

    assert "needle_7719" in found.text
    assert len(found.text) < 1200
    assert "of 400011)" in found.text


def test_a_huge_line_can_be_read_on_by_character() -> None:
    text = "first\n" + "0123456789" * 1000 + "\nlast"
    found = read(text, lines="2", max_tokens=100)
    step = len(found.exact)

    assert found.exact == ("0123456789" * 1000)[:step]
    assert f'read lines="2@{step + 1}"' in found.omitted
    assert read(text, lines=f"2@{step + 1}", max_tokens=100).exact == ("0123456789" * 1000)[step : 2 * step]


def test_no_hit_is_an_answer_not_an_error() -> None:
    found = read(TEXT, query="zebra_striping")

    assert found.text == ""
    assert "nothing in 201 lines matches 'zebra_striping'" in found.omitted


@pytest.mark.parametrize(
    ("text", "symbol", "first", "last"),
    [
        (JAVA, "Cart.add", 6, 13),
        (JAVA, "Other.add", 21, 22),
        (JAVA, "Cart", 3, 18),
        (JAVA, "getSize", 15, 17),
        (PYTHON, "Account.transfer", 2, 6),
        (PYTHON, "transfer", 2, 6),
        (PYTHON, "Account", 1, 9),
        ("package x\n\nfunc (c *Cart) Add(i Item) error {\n\treturn nil\n}\n", "Cart.Add", 3, 5),
        (
            "pub struct Store {\n    n: u8,\n}\n\nimpl Store {\n    pub fn get(&self) -> u8 {\n        0\n    }\n}\n",
            "get",
            6,
            8,
        ),
        ("const a = 1;\nexport const load = async (id) => {\n  return id;\n};\n", "load", 2, 4),
        ("deploy() {\n  echo hi\n}\n\ndeploy\n", "deploy", 1, 3),
        ("-- t\nCREATE TABLE orders (\n  id INT\n);\n", "orders", 1, 4),
        ("class A\n  def run\n    1\n  end\nend\n", "A.run", 2, 4),
        ("int main(void)\n{\n    return 0;\n}\n", "main", 1, 4),
    ],
)
def test_a_symbol_is_read_whole(text: str, symbol: str, first: int, last: int) -> None:
    """By indentation and closing marks, in any language, with the comment and annotations above it."""
    assert read(text, symbol=symbol).ranges == ((first, last),)


def test_a_symbol_is_found_in_a_numbered_view() -> None:
    view = "[File: Cart.java]\n" + "".join(f"{n}:{line}\n" for n, line in enumerate(JAVA.split("\n"), 301))

    assert read(view, symbol="Cart.getSize").ranges == ((16, 18),)


def test_an_unknown_symbol_points_to_the_query() -> None:
    with pytest.raises(Invalid, match='read query="IllegalArgumentException"'):
        read(JAVA, symbol="IllegalArgumentException")
    with pytest.raises(Invalid, match="does not occur"):
        read(JAVA, symbol="Missing.thing")


def test_fifty_megabytes_are_read_by_offset() -> None:
    """The far end of a large text is found, with its true number."""
    text = "filler of no interest\n" * 2_300_000 + "needle_7719 at the end\n"
    found = read(text, query="needle_7719")

    assert "2300001|needle_7719 at the end" in found.text.split("\n")
    assert read(text, lines="2300001").exact == "needle_7719 at the end\n"
