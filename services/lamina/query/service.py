"""The query service: one subject tree, one handler a verb."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from lamina.bus import Bus
from lamina.config import load
from lamina.embedding import Embedding, shared
from lamina.errors import Invalid, LaminaError, Transient, Unavailable
from lamina.given import Give
from lamina.home import Home
from lamina.ids import SUBJECT_ROOT, space_of, untoken
from lamina.query import atom_reads, persona, reads, refs, scenarios, skills
from lamina.query.as_of import PROMPTED, WHY, installed, moment, recall_past
from lamina.query.asked import Asked
from lamina.query.chain import chain
from lamina.query.given import Ledger
from lamina.query.past import Pasts
from lamina.query.positions import Positions
from lamina.query.prompt import Prompts
from lamina.query.recall import recall
from lamina.query.settling import Settling
from lamina.query.vectors import VectorLeg
from lamina.records import AsOf, Hits, Prompt
from lamina.requests import (
    Atoms,
    AtomsAre,
    Canvases,
    Chain,
    Cuts,
    CutsAre,
    DecisionIs,
    DecisionOf,
    FitState,
    FitStateIs,
    Known,
    KnownIds,
    Past,
    PersonaIs,
    PersonaOf,
    PromptOf,
    Read,
    Recall,
    Savings,
    SavingsAre,
    Scenarios,
    ScenariosAre,
    SessionPage,
    Sessions,
    Settled,
    TurnPage,
    Turns,
    Why,
)
from lamina.runtime.registry import Server, fold_services
from lamina.runtime.views import space_subject
from lamina.skills import Skills, SkillsAre
from lamina.store import Damaged
from lamina.tokens import count

R = TypeVar("R", bound=Struct)
T = TypeVar("T")
REF_WAIT_S = 3.0
PAST_WAIT_S = 3.5
"""How long a plain read waits for views of the past: less than a client waits for the answer."""
FRESH_S = 0.5


class Query:
    """Answers for all spaces of its home. `serve` until cancelled."""

    def __init__(self, bus: Bus, home: Home, *, embedding: Embedding | None = None) -> None:
        self._bus = bus
        self._home = home
        self._positions = Positions(bus, home)
        config = load(home.config)
        self._vectors = VectorLeg(home, self._positions, embedding or shared(config.embedding))
        self._prompts = Prompts(self._positions, self._recalled)
        self._asked = Asked(bus, on=config.recall.record)
        self._given = Ledger()
        self._pasts = Pasts(bus, home, self._vectors.embedding)
        self._settling = Settling(bus, self._positions, self._vectors, fold_services())
        self._verbs: dict[str, Callable[[str, bytes], Awaitable[Struct]]] = {
            "recall": self._recall,
            "known": self._known,
            "settled": self._settled,
            "turns": self._turns,
            "sessions": self._sessions,
            "why": self._why,
            "read": self._read,
            "fit-state": self._fit_state,
            "savings": self._savings,
            "cuts": self._cuts,
            "atoms": self._atoms,
            "decision": self._decision,
            "past": self._past,
            "canvases": self._canvases,
            "scenarios": self._scenarios,
            "skills": self._skills,
            "persona": self._persona,
            "prompt": self._prompt,
            "give": self._give,
        }

    async def serve(self, ready: asyncio.Event) -> None:
        end_news = await self._positions.start()
        await self._pasts.start()
        await asyncio.to_thread(count, "")  # an exact tokenizer takes a second to load, once
        subscription = await self._bus.serve(f"{SUBJECT_ROOT}.rpc.>", self._answer, queue="query")
        ready.set()
        try:
            await asyncio.Event().wait()
        finally:
            await subscription.close()
            await end_news()
            await self._asked.close()
            await self._pasts.close()
            await self._positions.close()

    async def _answer(self, subject: str, payload: bytes) -> bytes:
        verb = subject.rsplit(".", 1)[1]
        handler = self._verbs.get(verb)
        if handler is None:
            raise Invalid(f"the query service knows no {verb!r}; client and daemon are of different versions")
        space = space_of(subject)
        untoken(space)  # it becomes a folder's name
        return msgspec.json.encode(await handler(space, payload))

    async def _recall(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, Recall)
        if request.as_of is not None:
            return await recall_past(self._pasts, self._positions, space, request, request.as_of)
        hits = await self._recalled(space, request)
        self._asked.note(space, request, hits)
        return hits

    async def _recalled(self, space: str, request: Recall) -> Hits:
        return await recall(self._positions, space, request, self._vectors)

    async def _give(self, space: str, payload: bytes) -> Struct:
        return self._given.give(space, _decoded(payload, Give))

    async def _known(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, Known)
        try:
            return await self._positions.read(space, "journal", lambda db: reads.known(db, request))
        except Unavailable:
            if await self._bus.last(space_subject(space)) is None:
                return KnownIds(ids={})
            raise

    async def _turns(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, Turns)
        if await self._nothing(space):
            return TurnPage(turns=(), more=False)
        return await self._read_at(space, request.as_of, "journal", lambda db: reads.turns(db, request))

    async def _sessions(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, Sessions)
        if await self._nothing(space):
            return SessionPage(sessions=())
        return await self._read_at(space, request.as_of, "journal", lambda db: reads.sessions(db, request))

    async def _why(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, Why)
        if not request.id:
            raise Invalid("why needs an id: of a memory, or a turn_id or call_id of your own")
        if await self._nothing(space):
            return Chain(links=())
        async with self._at(space, request.as_of, WHY) as positions:
            return await chain(positions, space, request.id)

    async def _atoms(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, Atoms)
        if await self._nothing(space, "atoms"):
            return AtomsAre(atoms=(), more=False)
        return await self._read_at(space, request.as_of, "atoms", lambda db: atom_reads.atoms(db, request))

    async def _decision(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, DecisionOf)
        if await self._nothing(space, "atoms"):
            return DecisionIs()
        return await self._positions.read(space, "atoms", lambda db: atom_reads.decision(db, request.id))

    async def _scenarios(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, Scenarios)
        if await self._nothing(space, "scenarios"):
            return ScenariosAre(scenarios=(), more=False)
        return await self._read_at(space, request.as_of, "scenarios", lambda db: scenarios.scenarios(db, request))

    async def _skills(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, Skills)
        if await self._nothing(space, "scenarios"):
            return SkillsAre(skills=(), more=False)
        return await self._read_at(space, request.as_of, "scenarios", lambda db: skills.skills(db, request))

    async def _persona(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, PersonaOf)
        if await self._nothing(space, "persona"):
            return PersonaIs(text="")
        return await self._read_at(space, request.as_of, "persona", lambda db: persona.persona(db, request))

    async def _prompt(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, PromptOf)
        if request.as_of is not None:
            return await self._prompt_past(space, request.session, request.as_of)
        with contextlib.suppress(LaminaError):  # of what was said just now too, but nobody waits long for it
            await self._settling.settled(space, Settled(timeout_s=FRESH_S, layers=("l3",)))
        return await self._prompts.prompt(space, request.session)

    async def _prompt_past(self, space: str, session: str, as_of: AsOf) -> Prompt:
        head = await self._positions.head(space)
        services = installed(PROMPTED)
        async with self._pasts.hold(space, moment(as_of), services, head, wait_s=PAST_WAIT_S) as past:
            views, vectors = past.positions, past.vectors
            return await Prompts(views, lambda of, request: recall(views, of, request, vectors)).prompt(
                space, session
            )

    async def _read(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, Read)
        root = self._home.spaces / space
        ref = await self._ref(space, request.node)
        return await asyncio.to_thread(refs.part, root, ref, request)

    async def _fit_state(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, FitState)
        try:
            return await self._positions.read(space, "offload", lambda db: refs.fit_state(db, request.session))
        except Unavailable:
            if await self._bus.last(space_subject(space)) is None:
                return FitStateIs(state={}, canvas="")
            raise

    async def _savings(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, Savings)
        if await self._nothing(space, "offload"):
            return SavingsAre(sessions=(), results=0, result_tokens=0, stub_tokens=0, cut_tokens=0)
        return await self._read_at(space, request.as_of, "offload", lambda db: refs.savings(db, request))

    async def _cuts(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, Cuts)
        if await self._nothing(space, "offload"):
            return CutsAre(cuts=())
        return await self._read_at(space, request.as_of, "offload", lambda db: refs.cuts(db, request))

    async def _ref(self, space: str, node: str) -> refs.Ref:
        """The reference of a node, waiting for one that is in the log and not yet in the view."""
        last = await self._bus.last(space_subject(space))
        found: refs.Ref | None = None
        if last is not None:
            try:
                found = await self._positions.read(space, "offload", lambda db: refs.find(db, node))
            except (Damaged, Transient):
                found = None
            if found is None:
                try:
                    async with asyncio.timeout(REF_WAIT_S):
                        await self._positions.wait(space, "offload", last.seq)
                except TimeoutError as error:
                    raise Unavailable(f"{node}: the references are not made yet; see `lamina status`") from error
                found = await self._positions.read(space, "offload", lambda db: refs.find(db, node))
        if found is None:
            raise Invalid(f"no tool result of space {untoken(space)!r} is called {node[:40]!r}")
        return found

    async def _past(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, Past)
        return await self._pasts.progress(
            space, moment(request.as_of), installed(request.services), await self._positions.head(space)
        )

    async def _canvases(self, space: str, payload: bytes) -> Struct:
        request = _decoded(payload, Canvases)
        return await self._read_at(space, request.as_of, "offload", lambda db: refs.canvases(db, request))

    async def _read_at(
        self, space: str, as_of: AsOf | None, service: str, work: Callable[[sqlite3.Connection], T]
    ) -> T:
        async with self._at(space, as_of, (service,)) as positions:
            return await positions.read(space, service, work)

    @contextlib.asynccontextmanager
    async def _at(self, space: str, as_of: AsOf | None, services: Sequence[str]) -> AsyncIterator[Positions]:
        """The views as they are, or as they were then; `Unavailable` while those are being made."""
        if as_of is None:
            yield self._positions
            return
        head = await self._positions.head(space)
        async with self._pasts.hold(space, moment(as_of), installed(services), head, wait_s=PAST_WAIT_S) as past:
            yield past.positions

    async def _nothing(self, space: str, service: str = "journal") -> bool:
        """Is the space empty? Otherwise wait a moment for its view, which may be being made."""
        last = await self._bus.last(space_subject(space))
        if last is not None:
            try:
                async with asyncio.timeout(2.0):
                    await self._positions.wait(space, service, 1)
            except TimeoutError:
                return False  # the read that follows says what is wrong with the view
        return last is None

    async def _settled(self, space: str, payload: bytes) -> Struct:
        return await self._settling.settled(space, _decoded(payload, Settled))


def _decoded(payload: bytes, kind: type[R]) -> R:
    try:
        return msgspec.json.decode(payload, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"the request is not understood: {error}") from error


def service() -> Server:
    """The `query` service, for the entry-point group `lamina.services`."""
    return Server(name="query", serve=lambda bus, home, ready: Query(bus, home).serve(ready))
