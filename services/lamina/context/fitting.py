"""Makes a message list fit a context window, in three stages that each stop well below where they start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from lamina.context import blocks, cuts
from lamina.context.shapes import (
    Message,
    Observation,
    Provider,
    content_text,
    is_system,
    read,
)
from lamina.context.state import Decision, Fitted, State
from lamina.context.work import Stubs, Work, block_tokens
from lamina.errors import Invalid, TooLarge
from lamina.tokens import count, count_messages

_MILD, _MILD_TARGET, _MILD_WORTH = 0.50, 0.30, 0.20  # shares of the window; a rewritten prefix must pay
_AGGRESSIVE, _AGGRESSIVE_TARGET, _AGGRESSIVE_WORTH = 0.85, 0.50, 0.10
_EMERGENCY, _EMERGENCY_TARGET = 0.95, 0.70
_NEWEST_SHARE = 0.50  # of the window the newest results may take together where it overflows
_SMALL_TOKENS = 40  # a result no stub can make shorter
_LEAST_WINDOW = 48  # tokens; below this a window shows nothing


def fit(
    messages: Sequence[Message],
    window_tokens: int,
    *,
    stubs: Stubs,
    state: State | None = None,
    stable_text: str = "",
    canvas: str = "",
    keep: int = 10,
) -> Fitted:
    """Return a list that fits `window_tokens` and is valid for the provider whose list it was.

    Below half the window nothing is cut. From there older results become stubs (mild); from 85 % long arguments
    of old calls, thinking of earlier turns and then the stubs themselves shrink, and fewer than `keep` of the
    newest results stay whole (aggressive); from 95 % the oldest exchanges are left out behind a note, and newest
    results larger than half the window are shown from both ends (emergency). System messages, the messages
    before the first answer and the newest exchange always stay. A stage begins only where it saves enough to be
    worth a new prefix; between two stages every message already given is given again unchanged.

    Give either the host's own full list each time or the list last answered with what came since, and the
    `state` last answered. `stubs` is asked for the record of a result and answers None for one never recorded;
    see `Fitted.unrecorded`. `stable_text` is added where no system message holds it, `canvas` only when something is
    cut and room was won. The answer is never longer than the input and `stable_text`. Nothing given is changed.

    Raises `Invalid` naming index and field for a list no provider would take, `TooLarge` with both sizes where
    even the least cannot fit.
    """
    if window_tokens < 1 or keep < 1:
        raise Invalid(f"window_tokens ({window_tokens}) and keep ({keep}) must be at least 1")
    state = state or State()
    work, found = _open(messages, state, stubs)
    before = count_messages(messages)
    noted = bool(found & {state.note, state.note + state.canvas} - {""})
    if work.provider is Provider.PLAIN:
        work.provider = state.provider
    work.stable = _stable(work.messages, stable_text)
    work.replay(state, noted=noted)
    work.canvas = state.canvas if _has_place(work) else ""
    work.fresh_canvas = blocks.canvas_block(canvas)
    if not work.unrecorded:
        _cascade(work, window_tokens, keep)
    if work.unrecorded:
        for seen in work.observations:  # later stages would ask for the others: once is enough
            work.known(seen)
        given = [dict(message) for message in messages]
        unrecorded = tuple(work.unrecorded.values())
        return Fitted(given, (), before, before, state, unrecorded)
    work.canvas = work.canvas if _has_place(work) else ""
    fitted = _assemble(work)
    most = before + (0 if work.stable in found else block_tokens(work.stable))
    if work.canvas and count_messages(fitted) > min(most, window_tokens):
        work.canvas = ""
        fitted = _assemble(work)
    tokens = count_messages(fitted)
    if tokens > window_tokens:
        raise TooLarge(
            f"the prompt needs at least {tokens} tokens and the window has {window_tokens}: system messages, "
            "goal and newest exchange are never left out"
        )
    after = _state(work)
    if noted and not work.out:
        after = msgspec.structs.replace(after, dropped=state.dropped)
    return Fitted(fitted, tuple(work.cuts), tokens, before, after)


def _open(messages: Sequence[Message], state: State, stubs: Stubs) -> tuple[Work, set[str]]:
    """A working copy without the blocks of earlier calls, and those of them that were found."""
    conversation = read(messages)
    rest, places, found = blocks.without(messages, (state.stable, state.note, state.note + state.canvas))
    if found:
        conversation = read(rest)
    for seen in [seen for exchange in conversation.exchanges for seen in exchange.observations]:
        if state.canvas and seen.key in state.decisions and seen.text.endswith(state.canvas):
            rest[seen.index] = cuts.with_text(rest[seen.index], seen, seen.text.removesuffix(state.canvas))
            found.add(state.canvas)
    return Work(rest, places, read(rest) if state.canvas in found else conversation, stubs), found


def _stable(messages: Sequence[Message], text: str) -> str:
    text = text.strip()
    told = any(text in content_text(message.get("content"))[0] for message in messages if is_system(message))
    return "" if told else blocks.stable_block(text)


def _cascade(work: Work, window: int, keep: int) -> None:
    def over(share: float) -> bool:
        return work.total >= share * window and not work.unrecorded

    if over(_EMERGENCY):  # rather a part of one huge result than nothing of what led to it
        newest = work.exchanges[-1].observations if work.exchanges else ()
        _window(work, newest, int(_NEWEST_SHARE * window))
    if over(_MILD):
        _stage(work, _MILD_TARGET * window, _MILD_WORTH * window, [("stub", keep)])
    if over(_AGGRESSIVE):
        worth = 0 if over(_EMERGENCY) else _AGGRESSIVE_WORTH * window
        target = (_EMERGENCY_TARGET if over(_EMERGENCY) else _AGGRESSIVE_TARGET) * window
        steps = [("thinking", keep), ("stub", keep), ("arguments", keep), ("line", keep)]
        for fewer in (keep // 2, keep // 3):
            steps += [("stub", fewer), ("arguments", fewer)]
        _stage(work, target, worth, steps)
    if over(_EMERGENCY):
        target = _EMERGENCY_TARGET * window
        _drop(work, target, keep)
        if over(_EMERGENCY):
            _stage(work, target, 0, [("stub", 1), ("arguments", 1), ("line", 1)])
        if over(_EMERGENCY):
            _drop(work, target, 1)
        if over(_EMERGENCY):
            _shrink_newest(work, window)


def _stage(work: Work, target: float, worth: float, steps: Iterable[tuple[str, int]]) -> None:
    with work.attempt(int(worth)):
        for measure, keep in steps:
            _apply(work, measure, max(1, keep), target)


def _apply(work: Work, measure: str, keep: int, target: float) -> None:
    if measure == "thinking":
        work.cut_thinking(target)
        return
    for seen in work.observations[:-keep]:
        if work.total <= target:
            return
        if seen.exchange < work.out:
            continue
        if measure == "arguments":
            if len(seen.arguments) > cuts.ARGUMENT_CHARACTERS:
                work.cut_arguments(seen)
        elif measure == "stub" and (not seen.is_text or _level(work, seen) in ("stub", "line")):
            continue
        elif count(seen.text) > _SMALL_TOKENS:
            work.cut_result(seen, "line" if measure == "line" else "stub")


def _drop(work: Work, target: float, keep: int) -> None:
    last = len(work.exchanges) - keep
    for seen in work.observations:
        if work.out <= seen.exchange < last:
            work.known(seen)
    with work.attempt(1):
        while work.total > target and work.out < last and not work.unrecorded:
            work.drop(work.exchanges[work.out])


def _shrink_newest(work: Work, window: int) -> None:
    newest = work.exchanges[-1].observations if work.exchanges else ()
    for seen in newest:
        if len(seen.arguments) > cuts.ARGUMENT_CHARACTERS and work.total >= _EMERGENCY * window:
            work.cut_arguments(seen)
        if not seen.is_text and work.total >= _EMERGENCY * window:
            work.cut_result(seen, "line")
    texts = [seen for seen in newest if seen.is_text]
    taken = sum(count(cuts.current_text(work.messages[seen.index], seen)) for seen in texts)
    for share in (_EMERGENCY_TARGET, _EMERGENCY):
        room = int(share * window) - 1 - work.total + taken  # below the share: at it the stage begins anew
        if room >= _LEAST_WINDOW * len(texts):
            break
    if work.total >= _EMERGENCY * window:
        _window(work, texts, room)


def _window(work: Work, observations: Sequence[Observation], room: int) -> None:
    """Show these results in `room` tokens together, each that is too large from both ends."""
    limit = max(0, room // max(1, len(observations)))
    for seen in observations:
        size = count(cuts.current_text(work.messages[seen.index], seen))
        if seen.is_text and size > max(limit, _SMALL_TOKENS):
            work.cut_result(seen, "window" if limit >= _LEAST_WINDOW else "line", limit)


def _anchor(work: Work) -> Observation | None:
    """The newest result that is cut: what stands above it is told by stubs, what stands below it is whole."""
    for seen in reversed(work.observations):
        if seen.exchange >= work.out and _level(work, seen) != "whole":
            return seen
    return None


def _has_place(work: Work) -> bool:
    """Whether something is cut that the canvas can stand in for."""
    return bool(work.note) or _anchor(work) is not None


def _level(work: Work, seen: Observation) -> str:
    return work.decisions.get(seen.key, Decision()).level


def _assemble(work: Work) -> list[dict[str, Any]]:
    messages = list(work.messages)
    anchor = _anchor(work)
    note = work.note
    if work.canvas and anchor is not None:
        text = cuts.current_text(messages[anchor.index], anchor)
        messages[anchor.index] = cuts.with_text(messages[anchor.index], anchor, text + work.canvas)
    else:
        note += work.canvas
    result = [messages[i] for i in work.shown()]
    if note:
        result = blocks.with_note(result, work.conversation.head, note, work.provider)
    return blocks.with_stable(result, work.stable) if work.stable else result


def _state(work: Work) -> State:
    exchanges = work.exchanges[work.out :]
    present = {seen.key for exchange in exchanges for seen in exchange.observations}
    thinking = set(work.thinking)
    names = map(work.name, exchanges) if thinking else ()
    return State(
        provider=work.provider,
        decisions={key: decision for key, decision in work.decisions.items() if key in present},
        thinking=tuple(dict.fromkeys(name for name in names if name in thinking)),
        dropped=work.dropped,
        canvas=work.canvas,
        stable=work.stable,
        note=work.note,
    )
