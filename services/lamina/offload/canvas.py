"""The canvas of a session: its work as a small Mermaid flowchart, folded from calls and turns. Pure, no model."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from lamina.offload.labels import label, strings, subject, terms

__all__ = ["CallSeen", "Canvas", "TurnSeen", "fold", "relabel", "render", "terms"]

TERMS_OF_A_RESULT = 24
_SHOWN = 10  # calls and turns shown one by one at most ...
_KEPT = 6  # ... and how many are left when the older ones become a group
_GROUPS = 4
_TOOLS = 3  # tools a group names
_OTHER = "other"
_TERMS = TERMS_OF_A_RESULT * _SHOWN  # an edge needs both its ends
_GOAL_WIDTH, _TURN_WIDTH, _SUBJECT_WIDTH, _TOOL_WIDTH, _NODE_WIDTH = 160, 60, 36, 20, 24


class CallSeen(Struct, frozen=True):
    """One tool call. `is_error` is None while its result is not there; the same `node` again tells how it ended.

    `arguments` is their JSON, or plain text; `terms` are `terms(result, TERMS_OF_A_RESULT)`.
    """

    node: str
    tool: str
    arguments: str
    is_error: bool | None = False
    terms: tuple[str, ...] = ()


class TurnSeen(Struct, frozen=True):
    """One turn. Only the user's are drawn: the first is the goal, each later one begins a phase."""

    role: str
    text: str


class _Item(Struct, frozen=True):
    """A call (`node` set) or a user's turn, shown on its own."""

    id: int
    text: str
    node: str = ""
    tool: str = ""
    subject: str = ""
    status: str = ""
    uses: tuple[int, ...] = ()


class _Group(Struct, frozen=True):
    """Finished older work of one phase, or of several where there are many."""

    id: int
    title: str
    first: str
    last: str
    tools: tuple[tuple[str, int], ...]
    failed: int
    subject: str


class Canvas(Struct, frozen=True):
    """The state of one session's canvas: a few kilobytes, however long the session."""

    goal: str = ""
    items: tuple[_Item, ...] = ()
    groups: tuple[_Group, ...] = ()
    phase: str = ""
    next_id: int = 1
    origins: tuple[tuple[str, int], ...] = ()
    """Which call's result a path or identifier first stood in; 0 is the user."""


def fold(canvas: Canvas, seen: CallSeen | TurnSeen) -> Canvas:
    """The canvas after one more call or turn. The same events in the same order give the same canvas."""
    if isinstance(seen, CallSeen):
        return _folded(_call(canvas, seen))
    return _folded(_turn(canvas, seen))


def relabel(canvas: Canvas, labels: Mapping[str, str]) -> Canvas:
    """The canvas with other words at the calls it shows one by one; nodes, edges and states stay."""
    items = tuple(
        msgspec.structs.replace(item, text=label(labels[item.node], _SUBJECT_WIDTH + _TOOL_WIDTH))
        if item.node in labels and item.node
        else item
        for item in canvas.items
    )
    return msgspec.structs.replace(canvas, items=items)


def render(canvas: Canvas) -> str:
    """The canvas as Mermaid `flowchart TD` text, near 500 tokens at most; any canvas parses."""
    lines = ["flowchart TD"]
    chain = ["goal"]
    lines.append(f'  goal(["{canvas.goal or "goal not said yet"}"])')
    for group in canvas.groups:
        chain.append(f"g{group.id}")
        lines.append(f'  g{group.id}[["{_group_text(group)}"]]')
    for item in canvas.items:
        name = _name(item)
        chain.append(name)
        shape = f'["{item.text}, {item.status}, {item.node}"]' if item.node else f'(["{item.text}"])'
        lines.append(f"  {name}{shape}")
    if len(chain) > 1:
        lines.append("  " + " --> ".join(chain))
    names = {item.id: _name(item) for item in canvas.items}
    lines += [f"  {names[use]} -.-> {_name(item)}" for item in canvas.items for use in item.uses if use in names]
    return "\n".join(lines) + "\n"


def _name(item: _Item) -> str:
    return f"{'s' if item.node else 't'}{item.id}"


def _turn(canvas: Canvas, seen: TurnSeen) -> Canvas:
    if seen.role != "user":
        return canvas
    said = tuple((term, 0) for term in terms(seen.text, TERMS_OF_A_RESULT))
    canvas = msgspec.structs.replace(canvas, origins=_remember(canvas.origins, said))
    if not canvas.goal:
        return msgspec.structs.replace(canvas, goal=label(seen.text, _GOAL_WIDTH) or "(no words)")
    item = _Item(id=canvas.next_id, text=label(seen.text, _TURN_WIDTH) or "(no words)")
    return msgspec.structs.replace(canvas, items=(*canvas.items, item), next_id=canvas.next_id + 1)


def _call(canvas: Canvas, seen: CallSeen) -> Canvas:
    node = label(seen.node, _NODE_WIDTH)
    status = "doing" if seen.is_error is None else "failed" if seen.is_error else "done"
    known = next((item for item in canvas.items if item.node == node), None)
    if known is None:
        known = _new_call(canvas, seen, node)
        canvas = msgspec.structs.replace(canvas, items=(*canvas.items, known), next_id=canvas.next_id + 1)
    told = msgspec.structs.replace(known, status=status)
    given = set(terms("\n".join(strings(seen.arguments)), _TERMS))
    new = tuple((term, known.id) for term in seen.terms[:TERMS_OF_A_RESULT] if term not in given)
    return msgspec.structs.replace(
        canvas,
        items=tuple(told if item.id == known.id else item for item in canvas.items),
        origins=_remember(canvas.origins, new),
    )


def _new_call(canvas: Canvas, seen: CallSeen, node: str) -> _Item:
    tool = label(seen.tool, _TOOL_WIDTH) or "tool"
    about = subject(seen.tool, seen.arguments, _SUBJECT_WIDTH)
    return _Item(
        id=canvas.next_id,
        text=f"{tool} {about}".strip(),
        node=node or "?",
        tool=tool,
        subject=about,
        uses=_uses(canvas, seen.arguments),
    )


def _uses(canvas: Canvas, arguments: str) -> tuple[int, ...]:
    """The two newest calls, the one just before aside, whose results first showed a term of these arguments."""
    origins = dict(canvas.origins)
    words = terms("\n".join(strings(arguments)), TERMS_OF_A_RESULT)
    found = {origins[word] for word in words if word in origins}
    before = canvas.items[-1].id if canvas.items else 0
    return tuple(sorted(found - {0, before})[-2:])


def _remember(origins: tuple[tuple[str, int], ...], new: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    known = {term for term, _ in origins}
    return (*origins, *((term, id) for term, id in new if term not in known))[-_TERMS:]


def _folded(canvas: Canvas) -> Canvas:
    """Older items into groups, and older groups into one, until few enough are left."""
    while len(canvas.items) > _SHOWN:
        first, *others = canvas.items[: len(canvas.items) - _KEPT]
        phase = canvas.phase if first.node else first.text
        old = [first] if first.node else []
        for item in others:
            if not item.node:
                break
            old.append(item)
        rest = canvas.items[len(old) + (0 if first.node else 1) :]
        groups = (*canvas.groups, _group(old, phase)) if old else canvas.groups
        if len(groups) > _GROUPS:
            groups = (_merged(groups[0], groups[1]), *groups[2:])
        canvas = msgspec.structs.replace(canvas, items=rest, groups=groups, phase=phase)
    return canvas


def _group(items: list[_Item], title: str) -> _Group:
    subjects: dict[str, int] = {}
    tools: dict[str, int] = {}
    for item in items:
        tools[item.tool] = tools.get(item.tool, 0) + 1
        subjects[item.subject] = subjects.get(item.subject, 0) + 1
    return _Group(
        id=items[0].id,
        title=title,
        first=items[0].node,
        last=items[-1].node,
        tools=tuple(tools.items()),
        failed=sum(item.status == "failed" for item in items),
        subject=max(subjects, key=lambda text: subjects[text]),
    )


def _merged(a: _Group, b: _Group) -> _Group:
    tools = dict(a.tools)
    for tool, times in b.tools:
        tools[tool] = tools.get(tool, 0) + times
    others = tools.pop(_OTHER, 0)
    most = sorted(tools.items(), key=lambda pair: -pair[1])
    rest = others + sum(times for _, times in most[_TOOLS:])
    return _Group(
        id=a.id,
        title=a.title if a.title == b.title else label(f"{a.title}; {b.title}".strip("; "), _TURN_WIDTH),
        first=a.first,
        last=b.last,
        tools=(*most[:_TOOLS], *(((_OTHER, rest),) if rest else ())),
        failed=a.failed + b.failed,
        subject=b.subject,
    )


def _group_text(group: _Group) -> str:
    most = sorted(group.tools, key=lambda pair: (pair[0] == _OTHER, -pair[1]))
    rest = sum(times for _, times in most[_TOOLS:])
    counts = ", ".join(f"{tool} {times}" for tool, times in [*most[:_TOOLS], *([(_OTHER, rest)] if rest else [])])
    failed = f", {group.failed} failed" if group.failed else ""
    title = f"{group.title}: " if group.title else ""
    about = f", {group.subject}" if group.subject else ""
    span = group.first if group.first == group.last else f"{group.first} to {group.last}"
    return f"{title}{counts}{failed}{about}, {span}"
