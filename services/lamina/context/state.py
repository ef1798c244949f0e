"""What `fit` is given, remembers and answers."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from lamina.context.shapes import Observation, Provider

Level = Literal["stub", "line", "window", "arguments", "thinking", "dropped"]


class Known(msgspec.Struct, frozen=True):
    """A result that is recorded: its node and the stub that may stand for it."""

    node: str
    stub: str


class Cut(msgspec.Struct, frozen=True):
    """One thing made smaller in this call: a result, the arguments of its call, an assistant message's thinking,
    or a whole message. `index` is its place in the list given; tokens are the message's before and after."""

    index: int
    level: Level
    before: int
    after: int
    key: str | None = None
    node: str | None = None


class Decision(msgspec.Struct, frozen=True):
    """What was decided for one result, for ever: its level, the tokens of its window, whether its call is cut.

    `shown` names the text put in its place, so that a list given back is known to be cut already.
    """

    level: Literal["whole", "stub", "line", "window"] = "whole"
    limit: int = 0
    shown: str = ""
    arguments: bool = False


class Dropped(msgspec.Struct, frozen=True):
    """The exchanges left out so far; `exchanges` and `last` say where they stood in the list given."""

    exchanges: int = 0
    last: str = ""
    total: int = 0
    nodes: tuple[str, ...] = ()
    asked: str = ""


class State(msgspec.Struct, frozen=True):
    """What `fit` must be given back with the next list of the session. Bounded by the list: decisions of results
    no longer in it are forgotten."""

    provider: Provider = Provider.PLAIN
    decisions: dict[str, Decision] = {}
    thinking: tuple[str, ...] = ()
    dropped: Dropped = Dropped()
    canvas: str = ""
    stable: str = ""
    note: str = ""


class Fitted(msgspec.Struct, frozen=True):
    """The answer of `fit`.

    With anything in `unrecorded`, `messages` is the input as it was: those results must be recorded under their
    `key`, then `fit` is called once more. Else `messages` fits. `cuts` are the new ones alone; `before` and
    `tokens` count the whole prompt as given and as answered.
    """

    messages: list[dict[str, Any]]
    cuts: tuple[Cut, ...]
    tokens: int
    before: int
    state: State
    unrecorded: tuple[Observation, ...] = ()
