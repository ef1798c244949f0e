"""SWE-agent trajectories: a `.traj` file (`trajectory`, `environment`), or a line with `steps`, `run`, `instance`.

Each step is a turn (the thought) and a call (the action and its observation), both with the step's index from 0
as id. The tool is the first word of the action, its argument `command` the whole of it. There are no times.
"""

from __future__ import annotations

from collections.abc import Iterator

from lamina.importer import values
from lamina.importer.formats.base import Format, guarded, numbered
from lamina.importer.reading import Document
from lamina.importer.records import Call, Item, Json, SessionEnd, Source, Turn

AGENT = "swe-agent"


class SweAgentReader:
    """A document is one run on one issue."""

    def __init__(self, stem: str) -> None:
        self._stem = stem

    def feed(self, document: Document) -> Iterator[Item]:
        run = values.mapping(document.value, "a run")
        key = "steps" if "steps" in run else "trajectory"
        names = [values.ident(run.get(name)) for name in ("run", "instance", "instance_id")]
        session = "/".join(name for name in names if name) or numbered(self._stem, document)
        for n, value in enumerate(values.objects(run.get(key), key)):
            where = document.source.at(f".{key}[{n}]")
            yield from guarded(where, _step, value, session, n, where)
        yield SessionEnd(session=session, source=document.source, agent=AGENT)

    def finish(self) -> Iterator[Item]:
        return iter(())


def _step(value: Json, session: str, n: int, source: Source) -> Iterator[Item]:
    step = values.mapping(value, "a step")
    action = values.text(step.get("action"), "action")
    thought = values.optional_text(step.get("thought") or step.get("response"), "thought") or ""
    observation = values.optional_text(step.get("observation"), "observation") or ""
    words = action.split(maxsplit=1)
    yield Turn(role="assistant", text=thought, session=session, turn_id=str(n), source=source, agent=AGENT)
    yield Call(
        tool=words[0][:100] if words else "none",
        arguments={"command": action},
        result=observation,
        session=session,
        call_id=str(n),
        source=source,
        agent=AGENT,
    )


def _recognises(document: Document) -> bool:
    match document.value:
        case {"steps": [{"action": _, "observation": _}, *_]} | {"trajectory": [{"action": _, "observation": _}, *_]}:
            return True
        case {"trajectory": list(), "environment": _}:
            return True
    return False


FORMAT = Format("swe-agent", "SWE-agent trajectories", _recognises, SweAgentReader)
