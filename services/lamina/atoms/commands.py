"""The verbs about what was derived: correct, undo."""

from __future__ import annotations

import argparse

from lamina.cli.command import DONE, Command, Context
from lamina.errors import Invalid
from lamina.records import Accepted


def _correct(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina.client import Memory

    if not options.text.strip():
        raise Invalid("say what holds instead: a correction of no words says nothing")

    async def work() -> Accepted:
        async with Memory.open(space=context.space, home=context.home.path) as memory:
            return await memory.correct(options.id, options.text)

    _tell(context, asyncio.run(work()), "corrected; what was so before stays as history")
    return DONE


def _undo(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina.client import Memory
    from lamina.requests import DecisionIs, DecisionOf

    context.home.require_folder()

    async def work() -> tuple[DecisionIs, Accepted]:
        async with Memory.open(space=context.space, home=context.home.path) as memory:
            found = await memory.ask("decision", DecisionOf(id=options.id), DecisionIs)
            return found, await memory.undo(options.id)

    found, accepted = asyncio.run(work())
    whole = {
        "extract": f"an extraction over {found.inputs} turns: {found.atoms} atoms hold no more",
        "reconcile": f"a reconciliation: {found.atoms} atoms stand as if it had not been",
        "correct": "a correction: what was corrected holds again",
    }
    _tell(context, accepted, f"undid {whole[found.kind]}")
    return DONE


def _tell(context: Context, accepted: Accepted, done: str) -> None:
    if context.json:
        context.document(accepted)
        return
    where = f"event {accepted.seq} of the log" if accepted.seq is not None else "in the outbox, until the log is back"
    context.line(f"{done} ({where})")


def _correct_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the id of a memory, or a turn_id of your own")
    parser.add_argument("text", metavar="TEXT", help="what holds instead, as it is to be remembered")


def _undo_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="EXTRACTION", help="the id of a decision, or of an atom that it made")


correct = Command(
    name="correct",
    help="state what holds instead of a memory",
    description="Put a text in the place of an atom, or of all that was made of a turn. What was so before stays as "
    "history, and ranks below.",
    run=_correct,
    configure=_correct_options,
    examples=(
        'lamina correct 6d0f7c1e-52a4-8a0b-9c3d-0f1e2d3c4b5a "I live in Busan"',
        'lamina correct my-turn-17 "The deadline is 2 May" --json',
    ),
    outputs={"correct": Accepted},
)
undo = Command(
    name="undo",
    help="take back a decision of the memory, whole",
    description="Take back an extraction, reconciliation or correction: its atoms hold no more, and what they "
    "superseded holds again. `lamina why` names the decision behind an atom; one may hold many windows of an import.",
    run=_undo,
    configure=_undo_options,
    examples=(
        "lamina undo 2c4f0e7a-9b1d-8f3e-a5c7-1d2e3f4a5b6c",
        "lamina undo 2c4f0e7a-9b1d-8f3e-a5c7-1d2e3f4a5b6c --json",
    ),
    outputs={"undo": Accepted},
)
