"""Any id text: a faithful round trip or a typed error, and never another one's subject, folder or id."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from lamina import ids
from lamina.errors import Invalid, Permanent, TooLarge

NASTY = st.sampled_from(
    ["..", ".", "*", ">", "a.b", "\n", "\r", "\0", "/", "\\", "_", "_2e", "é", "e\u0301", "Å", "K", "ﬁ", "😀", "한국"]
)
SURROGATES = st.characters(categories=["Cs"])
TEXT = st.one_of(
    st.text(max_size=40),
    st.lists(st.one_of(NASTY, st.text(max_size=3), SURROGATES), max_size=6).map("".join),
    st.text(alphabet="aAbB_.-0", max_size=130),
    st.integers(10_000, 10_010).map(lambda n: "x" * n),
)
PLAIN = re.compile(r"[a-z0-9_-]{1,120}")


def encoded(text: str) -> str | None:
    """Its token, or None where a typed error said why not."""
    try:
        return ids.token(text)
    except (Invalid, TooLarge):
        return None


@given(TEXT)
def test_a_token_is_plain_and_reads_back(text: str) -> None:
    token = encoded(text)

    if token is not None:
        assert PLAIN.fullmatch(token)
        assert ids.untoken(token) == unicodedata.normalize("NFC", text)
        assert ids.token(ids.untoken(token)) == token
        assert 0 <= ids.lane(token) < ids.LANES


@given(TEXT, TEXT)
def test_two_texts_share_a_token_only_when_they_are_one_in_nfc(one: str, other: str) -> None:
    tokens = encoded(one), encoded(other)

    if tokens[0] is not None and tokens[1] is not None:
        same = unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)
        assert (tokens[0] == tokens[1]) == same
        assert (tokens[0].casefold() == tokens[1].casefold()) == same


@given(TEXT)
def test_case_pairs_and_normal_forms(text: str) -> None:
    for change in (str.upper, str.lower, str.swapcase):
        changed = change(text)
        if encoded(text) is not None and encoded(text) == encoded(changed):
            assert unicodedata.normalize("NFC", text) == unicodedata.normalize("NFC", changed)
    if encoded(text) is not None:
        assert encoded(unicodedata.normalize("NFD", text)) in (encoded(text), None)


@given(TEXT, st.sampled_from(["turn.recorded", "x"]))
def test_no_id_changes_a_subject(text: str, kind: str) -> None:
    token = encoded(text)

    if token is not None:
        makers: list[Callable[[str, str], str]] = [ids.event_subject, ids.blob_subject, ids.rpc_subject]
        for maker in makers:
            subject = maker(token, kind)
            assert ids.space_of(subject) == token
            assert len(subject.split(".")) == 5 + (maker is not ids.event_subject and kind.count("."))


@given(st.text(max_size=150))
def test_untoken_takes_tokens_and_nothing_else(text: str) -> None:
    try:
        back = ids.untoken(text)
    except Permanent:
        return
    assert ids.token(back) == text


PARTS = st.lists(st.one_of(st.text(max_size=5), SURROGATES), max_size=4)


@given(PARTS, PARTS)
def test_derived_ids_differ_where_their_parts_do(one: list[str], other: list[str]) -> None:
    assert (ids.derived_id(*one) == ids.derived_id(*other)) == (one == other)


@given(TEXT)
def test_node_ids_are_short_plain_names(text: str) -> None:
    node = ids.node_id(ids.derived_id(text))

    assert re.fullmatch(r"n[0-9a-hjkmnp-tv-z]{11}", node)
