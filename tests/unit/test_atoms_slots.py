"""Slots in four languages: what is told fills the slot, so that a newer statement ends the older one."""

from __future__ import annotations

import pytest

from lamina.atoms.builtin import extract
from lamina.atoms.turns import Turn

FILLED = """
We moved to Postgres 16. | tool.version:postgres | 16
we're on Python 3.12 and Postgres 15 here | tool.version:python | 3.12
We upgraded from Node 18 to Node 20. | tool.version:node | 20
We decided to use DuckDB. | tool.choice:database | duckdb
We switched from npm to pnpm. | tool.choice:packages | pnpm
The staging API listens on port 8443 now. | port:staging | 8443
the API moved to port 9090 | port:api | 9090
My birthday is March 2. | user.birthday | march 2
I'm a software engineer. | user.job | software engineer
The timeout is 30 seconds now. | number:timeout | 30 seconds
From now on answer me in English. | output.language | en
我们升级到 Postgres 16 了 | tool.version:postgres | 16
线上用的是 Go 1.22 | tool.version:go | 1.22
测试环境端口改成 7100 了 | port:test | 7100
我的生日是3月2日 | user.birthday | 3月2日
我是一名护士 | user.job | 护士
我换工作了，现在在字节跳动工作。 | user.employer | 字节跳动
以后用英文回答我 | output.language | en
请一直用简体中文回答我 | output.language | zh
Postgres 16으로 올렸어 | tool.version:postgres | 16
우리 프로젝트는 자바 17 써 | tool.version:java | 17
스테이징 API 포트는 8443입니다 | port:staging | 8443
생일은 3월 2일이야 | user.birthday | 3월 2일
저는 간호사예요 | user.job | 간호사
저 이직했어요, 지금은 네이버에서 일해요 | user.employer | 네이버
앞으로 영어로 답해줘 | output.language | en
Postgres 16 に上げました | tool.version:postgres | 16
Ruby を 3.4 に上げました | tool.version:ruby | 3.4
検証環境のポートは 3100 です | port:staging | 3100
誕生日は3月2日です | user.birthday | 3月2日
私は看護師をしています | user.job | 看護師
転職して、今は楽天で働いています | user.employer | 楽天
これからは英語で答えて | output.language | en
"""
UNFILLED = """
Postgres 16 does not build on the CI image.
The bug was in Node 18.
For commit messages, always write in English.
Python 3.9 버그 때문에 실패했어
Go 1.22 报错了
Ruby 3.2 のバグでした
"""


def slots(text: str, project: str = "api") -> list[tuple[str, str]]:
    turn = Turn(id="e1", text=text, time="2026-11-30T09:15:00+09:00", role="user", project=project)
    return [(atom.slot, atom.value) for atom in extract([turn]) if atom.slot]


@pytest.mark.parametrize("case", FILLED.strip().splitlines())
def test_a_plain_statement_fills_its_slot(case: str) -> None:
    text, slot, value = case.split(" | ")

    assert slots(text) == [(slot, value)]


@pytest.mark.parametrize("text", UNFILLED.strip().splitlines())
def test_what_fails_or_is_bound_to_a_scene_fills_none(text: str) -> None:
    assert slots(text) == []


def test_a_birthday_is_no_day_from_which_something_holds() -> None:
    (atom,) = extract([Turn(id="e1", text="My birthday is March 2.", time="2026-11-30T09:15:00+09:00", role="user")])

    assert (atom.type, atom.valid_from) == ("persona", "")
