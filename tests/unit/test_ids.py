"""Names and ids: known values, and the shape that the standards give them."""

from __future__ import annotations

import threading
import time
import uuid

import pytest

from lamina import ids
from lamina.errors import Invalid, TooLarge


class TestToken:
    @pytest.mark.parametrize(
        ("text", "encoded"),
        [
            ("", "_"),
            ("alice", "alice"),
            ("Alice", "_41lice"),
            ("a-1", "a-1"),
            ("_", "_5f"),
            ("..", "_2e_2e"),
            ("*", "_2a"),
            (">", "_3e"),
            ("a/b", "a_2fb"),
            ("a\nb", "a_0ab"),
            ("\0", "_00"),
            ("한", "_ed_95_9c"),
            ("😀", "_f0_9f_98_80"),
            ("é", "_c3_a9"),
            ("e\u0301", "_c3_a9"),
        ],
    )
    def test_encodes_bytes_that_are_not_plain(self, text: str, encoded: str) -> None:
        assert ids.token(text) == encoded

    def test_takes_120_encoded_bytes_and_no_more(self) -> None:
        assert len(ids.token("a" * 120)) == 120
        assert len(ids.token("A" * 40)) == 120
        for text in ("a" * 121, "A" * 41, "a" * 10_000, "한" * 14):
            with pytest.raises(TooLarge):
                ids.token(text)

    @pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
    def test_refuses_lone_surrogates(self, text: str) -> None:
        with pytest.raises(Invalid, match="surrogate"):
            ids.token(text)

    @pytest.mark.parametrize(
        "encoded", ["", "A", "_4", "_4G", "_61", "__", "_ff", "a.b", "é", "_65_cc_81", "a" * 121, "_2E"]
    )
    def test_what_no_text_has_is_no_token(self, encoded: str) -> None:
        with pytest.raises(Invalid):
            ids.untoken(encoded)


class TestSubjects:
    def test_are_these(self) -> None:
        space = ids.token("Alice")

        assert ids.lane(space) == 185
        assert ids.event_subject(space, "turn.recorded") == "lamina.ev.185._41lice.turn-recorded"
        assert ids.blob_subject(space, "ab") == "lamina.blob.185._41lice.ab"
        assert ids.rpc_subject(space, "recall") == "lamina.rpc.185._41lice.recall"
        assert ids.applied_subject(space, "journal") == "lamina.applied.185._41lice.journal"

    def test_tell_their_space(self) -> None:
        assert ids.space_of("lamina.ev.185._41lice.turn-recorded") == "_41lice"
        for subject in ("", "lamina.ev.185", "other.ev.185.x.y"):
            with pytest.raises(Invalid):
                ids.space_of(subject)


class TestDerivedIds:
    def test_are_these_for_ever(self) -> None:
        assert ids.source_id("alice", "s1", "t1", "turn.recorded") == "04ee08d5-9a79-8c84-bbb2-bd606a13b524"
        assert ids.decision_id("alice", "atoms.extract", 3, ["a", "b"]) == "ef4128a5-957c-8b3c-b4cd-75ed00b2dd18"
        assert ids.node_id("a8b1e2f9-e8ae-8a86-9ab6-b20ddc7c5ac3") == "nwa4r44jw33m"

    def test_keep_their_parts_apart(self) -> None:
        assert ids.derived_id("ab", "c") != ids.derived_id("a", "bc")
        assert ids.derived_id("a", "") != ids.derived_id("a")

    def test_are_version_8_uuids(self) -> None:
        assert uuid.UUID(ids.derived_id("x")).version == 8
        assert uuid.UUID(ids.derived_id("x")).variant == uuid.RFC_4122

    def test_do_not_depend_on_the_normal_form(self) -> None:
        assert ids.source_id("é", "é", "é", "t") == ids.source_id("e\u0301", "e\u0301", "e\u0301", "t")


class TestUuid7:
    def test_holds_the_time_and_sorts_by_creation(self) -> None:
        before = time.time_ns() // 1_000_000
        made = [ids.uuid7() for _ in range(2_000)]
        after = time.time_ns() // 1_000_000

        assert made == sorted(set(made))
        assert {uuid.UUID(one).version for one in made} == {7}
        assert all(before <= uuid.UUID(one).int >> 80 <= after + 1 for one in made)

    def test_never_goes_back_while_the_clock_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        make = ids._Uuid7()
        now = [2_000_000_000]
        monkeypatch.setattr(time, "time_ns", lambda: now[0] * 1_000_000)
        made = [make()]
        now[0] -= 3_600_000
        monkeypatch.setattr(ids, "_MAX_COUNTER", 1 << 15)
        made += [make() for _ in range(40_000)]
        now[0] += 3_600_001
        made += [make() for _ in range(10)]

        assert made == sorted(set(made))

    def test_is_unique_over_threads(self) -> None:
        made: list[list[str]] = [[] for _ in range(4)]
        threads = [
            threading.Thread(target=lambda box=box: box.extend(ids.uuid7() for _ in range(2_000))) for box in made
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len({one for box in made for one in box}) == 8_000
