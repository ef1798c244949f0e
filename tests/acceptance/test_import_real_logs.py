"""Real logs import with the right counts, where they are at hand; they are no part of this repository."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lamina.errors import Invalid
from lamina.importer import BadRecord, Call, SessionEnd, Turn, open_log

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the real logs are not beside this repository")

# file, format, turns, calls, sessions
LOGS = [
    ("locomo_a.json.gz", "locomo", 2760, 0, 128),
    ("longmemeval_s_a.jsonl.gz", "longmemeval", 14362, 0, 1396),
    ("beam_100k_messages_a.jsonl.gz", "beam", 2734, 0, 44),
    ("beam_500k_messages_a.jsonl.gz", "beam", 2448, 0, 30),
    ("memdaily_zh_a.jsonl.gz", "memdaily", 10925, 0, 1480),
    ("swe_trajectories_a.jsonl.gz", "swe-agent", 3101, 3109, 150),
    ("lifebench_en_records_a.jsonl.gz", "lifebench", 8838, 0, 6),
    ("lifebench_zh_records_a.jsonl.gz", "lifebench", 16839, 0, 815),
    ("personamem_32k_documents_a.json.gz", "personamem", 3345, 0, 100),
]


@pytest.mark.parametrize("row", LOGS, ids=[row[0] for row in LOGS])
def test_real_log(row: tuple[str, str, int, int, int]) -> None:
    name, format, *counts = row
    found: Counter[type] = Counter()
    sessions: set[str] = set()
    ids: Counter[tuple[type, str, str]] = Counter()
    with open_log(DATA / name) as log:
        for item in log:
            found[type(item)] += 1
            if isinstance(item, Turn | Call):
                sessions.add(item.session)
                ids[(type(item), item.session, item.turn_id if isinstance(item, Turn) else item.call_id)] += 1

    assert log.format == format
    assert [found[Turn], found[Call], len(sessions)] == counts
    assert found[BadRecord] == 0
    assert found[SessionEnd] in (0, len(sessions), 809)
    assert ids.most_common(1)[0][1] == 1


@pytest.mark.parametrize("name", ["beam_100k_questions_a.jsonl.gz", "personamem_32k_queries_a.json.gz"])
def test_questions_are_no_conversation(name: str) -> None:
    with pytest.raises(Invalid, match="no known format"):
        open_log(DATA / name)
