"""What the offload service keeps of a tool result: a reference file, its row, and what its stub saves. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from lamina import digest, events
from lamina.errors import Conflict
from lamina.events import Blob, ContextCut, Event, MemoryForgotten, ToolReturned, TurnRecorded
from lamina.ids import node_id, token
from lamina.offload import canvas
from lamina.offload.refs import MAX_INLINE_BYTES, Header, with_pointer, with_text
from lamina.runtime import Change, Drop, DropFile, Key, Put, Recorded, Rows, WriteFile
from lamina.store import Table
from lamina.tokens import count

VERSION = 2
MAX_ARGUMENT_CHARS = 2_000
MAX_TERM_CHARS = 64 * 1024
"""Of a longer text the canvas knows the beginning."""
TEXT = "text/plain; charset=utf-8"

REFS = Table(
    name="refs",
    columns=(
        *("node", "seq", "event", "session", "tool", "arguments", "call_id", "time"),
        *("is_error", "media_type", "size_bytes", "sha256", "offset"),
    ),
    key=1,
    ddl="""CREATE TABLE refs(
  node TEXT PRIMARY KEY, seq INTEGER NOT NULL, event TEXT NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL,
  arguments TEXT NOT NULL, call_id TEXT NOT NULL, time TEXT NOT NULL, is_error INTEGER NOT NULL,
  media_type TEXT NOT NULL, size_bytes INTEGER NOT NULL, sha256 TEXT NOT NULL,
  offset INTEGER) STRICT, WITHOUT ROWID;
CREATE INDEX refs_session ON refs(session, seq);
CREATE INDEX refs_call ON refs(call_id)""",
)
"""`offset`: where in the reference file the result begins; NULL when it is the blob `sha256`."""
SAVED = Table(
    name="saved",
    columns=("session", "results", "result_tokens", "stub_tokens"),
    key=1,
    ddl="CREATE TABLE saved(session TEXT PRIMARY KEY, results INTEGER NOT NULL, result_tokens INTEGER NOT NULL, "
    "stub_tokens INTEGER NOT NULL) STRICT, WITHOUT ROWID",
)
CUTS = Table(
    name="cuts",
    columns=("seq", "session", "window_tokens", "before", "after", "cuts", "state"),
    key=1,
    ddl="""CREATE TABLE cuts(
  seq INTEGER PRIMARY KEY, session TEXT NOT NULL, window_tokens INTEGER NOT NULL, before INTEGER NOT NULL,
  after INTEGER NOT NULL, cuts TEXT NOT NULL, state TEXT NOT NULL) STRICT;
CREATE INDEX cuts_session ON cuts(session, seq)""",
)
CANVASES = Table(
    name="canvases",
    columns=("session", "state", "text"),
    key=1,
    ddl="CREATE TABLE canvases(session TEXT PRIMARY KEY, state TEXT NOT NULL, text TEXT NOT NULL) "
    "STRICT, WITHOUT ROWID",
)
TABLES = (REFS, SAVED, CUTS, CANVASES)


class State(Struct, frozen=True):
    """Nothing is carried from one event of a space to the next but the rows."""


class _Result(Struct, frozen=True):
    """A result as bytes, and as text where it is one."""

    raw: bytes
    text: str | None
    media_type: str


def needs(recorded: Recorded) -> Sequence[Key]:
    """Is this node known, and what has its session saved so far?"""
    event, data = recorded.event, recorded.data
    if event is None or not isinstance(data, ToolReturned | TurnRecorded):
        return ()
    drawn: Key = ("canvases", (event.session,))
    if isinstance(data, TurnRecorded):
        return (drawn,)
    return (drawn, ("refs", (node_id(event.id),)), ("saved", (event.session,)))


def fold(state: State, recorded: Recorded, rows: Rows) -> tuple[State, Sequence[Change]]:
    """The reference of every tool result that is the first of its id, and the canvas of its session."""
    event, data = recorded.event, recorded.data
    if event is not None and isinstance(data, ContextCut):
        return state, (_cut(recorded.seq, event.session, data),)
    if isinstance(data, MemoryForgotten):
        return state, [change for id in data.ids for change in _forgotten(id, rows)]
    if event is not None and isinstance(data, TurnRecorded):
        return state, _drawn(event, _turn_seen(data, recorded), rows)
    if event is None or not isinstance(data, ToolReturned):
        return state, ()
    node = node_id(event.id)
    known = rows.get("refs", (node,))
    if known is not None:
        if known[2] != event.id:
            raise Conflict(f"node {node} stands for event {known[2]} already")
        return state, ()
    result = _result(data, recorded)
    header = _header(node, event, data, result)
    files, offset = _files(header, result)
    row = (
        *(node, recorded.seq, event.id, event.session, data.tool, header.arguments, header.call_id, event.time),
        *(int(data.is_error), result.media_type, header.size_bytes, header.sha256, offset),
    )
    call = canvas.CallSeen(
        node=node,
        tool=data.tool,
        arguments=header.arguments,
        is_error=data.is_error,
        terms=canvas.terms((result.text or "")[:MAX_TERM_CHARS], canvas.TERMS_OF_A_RESULT),
    )
    saved = _saved(node, event, data, result, rows)
    return state, (*files, Put("refs", row), saved, *_drawn(event, call, rows))


def _forgotten(id: str, rows: Rows) -> Sequence[Change]:
    """A result is read no more; its session's canvas is drawn anew when the view is folded anew."""
    known = rows.get("refs", (node_id(id),))
    if known is None or known[2] != id:
        return ()
    return Drop("refs", (known[0],)), DropFile(f"refs/{known[0]}.md")


def _cut(seq: int, session: str, data: ContextCut) -> Put:
    cuts, left = events.canonical(data.cuts).decode(), events.canonical(data.state).decode()
    return Put("cuts", (seq, session, data.window_tokens, data.before, data.after, cuts, left))


def _turn_seen(data: TurnRecorded, recorded: Recorded) -> canvas.TurnSeen:
    text = (
        data.text
        if isinstance(data.text, str)
        else recorded.blobs.get(data.text.sha256, b"").decode("utf-8", "replace")
    )
    return canvas.TurnSeen(role=data.role, text=text[:MAX_TERM_CHARS])


def _drawn(event: Event, seen: canvas.CallSeen | canvas.TurnSeen, rows: Rows) -> Sequence[Change]:
    """The session's canvas after this; a file from its first call on, since a chat has no work to draw."""
    before = rows.get("canvases", (event.session,))
    if before and not before[2] and isinstance(seen, canvas.TurnSeen):
        return ()  # its goal is known, and until there is work nothing else of a chat is drawn
    known = msgspec.json.decode(before[1], type=canvas.Canvas) if before else canvas.Canvas()
    drawn = canvas.fold(known, seen)
    if drawn == known:
        return ()
    works = bool(before and before[2]) or isinstance(seen, canvas.CallSeen)
    text = canvas.render(drawn) if works else ""
    row = Put("canvases", (event.session, msgspec.json.encode(drawn).decode(), text))
    return (row, WriteFile(f"canvas/{token(event.session)}.mmd", text.encode())) if works else (row,)


def _result(data: ToolReturned, recorded: Recorded) -> _Result:
    if isinstance(data.result, str):
        return _Result(data.result.encode(), data.result, TEXT)
    raw = recorded.blobs.get(data.result.sha256)
    if raw is None:
        raise Conflict(f"the blob {data.result.sha256[:12]} that the result is kept in is not to be had")
    is_text = data.result.media_type.startswith("text/")
    return _Result(raw, raw.decode("utf-8", "replace") if is_text else None, data.result.media_type)


def _header(node: str, event: Event, data: ToolReturned, result: _Result) -> Header:
    sha256 = data.result.sha256 if isinstance(data.result, Blob) else hashlib.sha256(result.raw).hexdigest()
    return Header(
        node=node,
        tool=data.tool,
        arguments=msgspec.json.encode(data.arguments, order="deterministic").decode()[:MAX_ARGUMENT_CHARS],
        session=event.session,
        call_id=data.call_id or "",
        time=event.time,
        status="failed" if data.is_error else "done",
        size_bytes=len(result.raw),
        lines=result.text.count("\n") + 1 if result.text is not None else 0,
        media_type=result.media_type,
        sha256=sha256,
        event=event.id,
    )


def _files(header: Header, result: _Result) -> tuple[Sequence[WriteFile], int | None]:
    path = f"refs/{header.node}.md"
    if result.text is not None and header.size_bytes <= MAX_INLINE_BYTES:
        body, offset = with_text(header, result.text)
        return (WriteFile(path, body),), offset
    blob = WriteFile(f"blobs/{header.sha256}", result.raw)
    return (blob, WriteFile(path, with_pointer(header))), None


def _saved(node: str, event: Event, data: ToolReturned, result: _Result, rows: Rows) -> Put:
    """What the session's results would cost in a context, and what their stubs cost."""
    before = rows.get("saved", (event.session,)) or (event.session, 0, 0, 0)
    if result.text is None:
        return Put("saved", (event.session, before[1] + 1, *before[2:]))
    stub = digest.stub(node, data.tool, data.arguments, result.text, is_error=data.is_error)
    whole = count(result.text)
    short = whole if stub == result.text else count(stub)
    return Put("saved", (event.session, before[1] + 1, before[2] + whole, before[3] + short))
