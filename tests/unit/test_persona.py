"""The persona over a log in memory: what becomes a line, what a person's edits do, what is taken back."""

from __future__ import annotations

import pytest

from lamina.home import Home
from tests.support.persona import PersonaBench

DAY_S = 86_400.0


@pytest.fixture
def persona(home: Home) -> PersonaBench:
    return PersonaBench(home)


async def day(persona: PersonaBench, session: str, *texts: str, after_s: float = DAY_S) -> None:
    """A session of a day of its own, ended."""
    for n, text in enumerate(texts):
        await persona.say(text, session=session, id=f"{session}-{n}", after_s=after_s if n == 0 else 1)
    await persona.end(session)


async def test_what_was_instructed_holds_at_once_and_what_is_bound_to_a_scene_never(persona: PersonaBench) -> None:
    await day(persona, "s1", "always: answer in Korean\nnow: use Vue", "here: use tabs")
    await day(persona, "s2", "now: use Vue")
    await day(persona, "s3", "now: use Vue")
    await persona.run()

    found = persona.sections()
    assert found["Standing instructions"] == ["answer in Korean"]
    assert found["In the project of no name"] == ["use tabs"]
    assert "Vue" not in persona.text()


async def test_a_request_made_on_other_days_is_a_rule_and_one_repeated_in_a_session_is_none(
    persona: PersonaBench,
) -> None:
    await day(persona, "s1", "ask: skip the explanation", "ask: skip the explanation", "ask: skip the explanation")
    await persona.run()
    assert "skip" not in persona.text()

    await day(persona, "s2", "ask: skip the explanation")
    await persona.run()
    assert persona.sections()["Standing instructions"] == ["skip the explanation"]


async def test_a_way_of_working_and_what_is_unclear_need_a_second_occasion(persona: PersonaBench) -> None:
    await day(persona, "s1", "way: run the tests first\nmaybe: likes rain")
    await persona.run()
    assert persona.sections() == {}

    await day(persona, "s2", "way: run the tests first\nmaybe: likes rain")
    await persona.run()
    assert persona.sections() == {
        "Ways of working": ["run the tests first"],
        "Identity and context": ["likes rain"],
    }


async def test_what_is_newer_takes_the_place_of_what_was_so_and_the_change_is_kept(persona: PersonaBench) -> None:
    await day(persona, "s1", "user.home=Seoul")
    await persona.run()
    await day(persona, "s2", "user.home=Busan")
    await persona.run()

    assert persona.sections()["Identity and context"] == ["user.home=Busan"]
    change = persona.revisions()[-1].operations[0]
    assert (change.kind, change.reason) == ("replace", "superseded: stated")
    assert len(persona.persona_rows("SELECT n FROM revisions")) == 2


async def test_two_who_differ_are_a_tension(persona: PersonaBench) -> None:
    await persona.say("user.home=Seoul", id="t1", session="s1")
    await persona.publish_named("user.home=Busan", name="Kim", id="t2", session="s1")
    await persona.end("s1")
    await persona.run()

    assert len(persona.sections()["Tensions"]) == 2


async def test_what_is_undone_or_corrected_is_gone(persona: PersonaBench) -> None:
    await day(persona, "s1", "always: answer in Korean", "user.home=Seoul")
    await persona.run()
    atom = persona.persona_rows("SELECT id FROM atoms WHERE slot = 'user.home'")[0][0]
    await persona.correct(atom, "lives in Jeju")
    await persona.run()
    assert persona.sections()["Identity and context"] == ["lives in Jeju"]

    await persona.undo(persona.decision_ids("atoms.extracted")[0])
    await persona.run()
    assert "Korean" not in persona.text()


async def test_what_is_forgotten_leaves_rows_files_and_revisions_at_once(persona: PersonaBench) -> None:
    await day(persona, "s1", "always: answer in Korean", "user.home=Seoul")
    await persona.run()
    await persona.forget("s1-0")
    async with persona.folding():
        assert "Korean" not in persona.text()
        assert "Seoul" in persona.text()
    assert persona.persona_rows("SELECT id FROM atoms WHERE text LIKE '%Korean%'") == []
    assert len(persona.persona_rows("SELECT id FROM lines")) == 1


async def test_forgetting_a_decision_takes_all_that_it_made(persona: PersonaBench) -> None:
    await day(persona, "s1", "always: answer in Korean\nuser.home=Seoul")
    await persona.run()
    await persona.forget(*persona.decision_ids("atoms.extracted"))
    await persona.run()

    assert persona.persona_rows("SELECT count(*) FROM atoms") == [(0,)]


async def test_what_a_person_wrote_wins_and_stays(persona: PersonaBench) -> None:
    await day(persona, "s1", "user.home=Seoul", "always: answer in Korean")
    await persona.run()
    home = persona.line("Seoul")
    persona.now_us += 1_000_000
    await persona.edit([home], [home.replace("user.home=Seoul", "Lives in Jeju")], ["## Identity and context"])
    await persona.edit((), ["be kind"], ["## Standing instructions"])
    await persona.run()
    assert persona.sections()["Identity and context"] == ["Lives in Jeju"]
    assert persona.sections()["Standing instructions"] == ["answer in Korean", "be kind"]

    await day(persona, "s2", "user.home=Busan", after_s=-2 * DAY_S)  # said before the edit: no news
    await persona.run()
    assert persona.sections()["Identity and context"] == ["Lives in Jeju"]
    assert "Busan" not in persona.text()

    await day(persona, "s3", "user.home=Daegu", after_s=5 * DAY_S)  # after it: not an answer to the person, a tension
    await persona.run()
    assert persona.sections()["Identity and context"] == ["Lives in Jeju"]
    assert persona.sections()["Tensions"] == ["user.home=Daegu"]


async def test_a_line_that_a_person_took_out_stays_out_until_it_is_instructed_again(persona: PersonaBench) -> None:
    await day(persona, "s1", "always: answer in Korean\nlikes tea")
    await persona.run()
    await persona.edit([persona.line("Korean"), persona.line("tea")])
    await persona.run()
    assert persona.sections() == {}

    await day(persona, "s2", "likes tea", "always: answer in Korean")
    await persona.run()
    assert persona.sections() == {"Standing instructions": ["answer in Korean"]}


async def test_an_edit_that_is_forgotten_is_as_if_it_had_not_been(persona: PersonaBench) -> None:
    await day(persona, "s1", "likes tea")
    await persona.run()
    edit = await persona.edit([persona.line("tea")], ["likes wine"])
    await persona.run()
    assert persona.sections()["Identity and context"] == ["likes wine"]

    await persona.forget(edit)
    await persona.run()
    assert persona.sections()["Identity and context"] == ["likes tea"]


async def test_standing_instructions_keep_to_their_budget_and_say_so(persona: PersonaBench) -> None:
    for n in range(40):
        await day(persona, f"s{n}", f"always: keep rule number {n} " + "in mind " * 15)
    await day(persona, "last", *(f"fact {n} " + "about me " * 10 for n in range(60)))
    await persona.run()

    found = persona.sections()
    standing = sum(len(line) for line in found["Standing instructions"])
    rest = sum(len(line) for lines in found.values() for line in lines) - standing
    assert 3_000 < standing <= 4_000
    assert 1_000 < rest <= 2_000
    assert f"{40 - len(found['Standing instructions'])} more standing instructions do not fit" in persona.text()
    assert "keep rule number 39" in persona.text()


@pytest.mark.parametrize(
    "text",
    [
        "always: # a heading",
        "always: ```\u202efence",
        "always: <!-- lamina 0123456789abcdef -->",
        "always: <script>x</script> [a](http://b) ![c](d)",
        "always: - a list > quoted | ~~~ = _",
        "always: 1. first · p00000000000",
        "always: \x00\x1b[31mred",
    ],
)
async def test_no_text_is_more_than_a_line_of_text(persona: PersonaBench, text: str) -> None:
    await day(persona, "s1", text)
    await persona.run()

    lines = persona.text().splitlines()
    assert sum(line.startswith("#") for line in lines) == 2
    assert sum(line.startswith("- ") for line in lines) == 1
    assert sum(line.startswith("<!--") for line in lines) == 2
    assert not any(ord(one) < 32 for line in lines for one in line)


async def test_a_rebuild_gives_the_same_view_and_file(persona: PersonaBench, home: Home) -> None:
    await day(persona, "s1", "always: answer in Korean\nlikes tea", "user.home=Seoul")
    await persona.run()
    await persona.edit([persona.line("tea")], ["likes wine"])
    await day(persona, "s2", "user.home=Busan")
    await persona.run()
    text, view = persona.text(), persona.view_dump()

    persona.lose_view()
    async with persona.folding():
        assert (persona.text(), persona.view_dump()) == (text, view)
