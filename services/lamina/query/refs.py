"""Reading tool results back: the row of a node, then the bytes its reference or blob holds."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
from msgspec import Struct

from lamina import digest
from lamina.errors import Forgotten, Invalid
from lamina.records import Part
from lamina.requests import (
    Canvases,
    CanvasesAre,
    CanvasIs,
    CutInfo,
    Cuts,
    CutsAre,
    FitStateIs,
    Read,
    Saved,
    Savings,
    SavingsAre,
)
from lamina.store.files import translated_os

MAX_READ_TOKENS = 200_000


class Ref(Struct, frozen=True):
    """Where a result lies: at `offset` of its reference file, or (None) in its blob."""

    node: str
    media_type: str
    size_bytes: int
    sha256: str
    offset: int | None


def find(db: sqlite3.Connection, node: str) -> Ref | None:
    row = db.execute("SELECT node, media_type, size_bytes, sha256, offset FROM refs WHERE node = ?", (node,))
    found = row.fetchone()
    return Ref(*found) if found else None


def fit_state(db: sqlite3.Connection, session: str) -> FitStateIs:
    """What the last cut of a session left behind, and its canvas."""
    cut = db.execute("SELECT state FROM cuts WHERE session = ? ORDER BY seq DESC LIMIT 1", (session,)).fetchone()
    canvas = db.execute("SELECT text FROM canvases WHERE session = ?", (session,)).fetchone()
    return FitStateIs(state=msgspec.json.decode(cut[0]) if cut else {}, canvas=canvas[0] if canvas else "")


def savings(db: sqlite3.Connection, request: Savings) -> SavingsAre:
    """What stubs and cuts saved, by session and in all."""
    cut = dict(db.execute("SELECT session, sum(before - after) FROM cuts GROUP BY session"))
    rows = [
        Saved(session=name, results=results, result_tokens=whole, stub_tokens=short, cut_tokens=cut.get(name, 0))
        for name, results, whole, short in db.execute(
            "SELECT session, results, result_tokens, stub_tokens FROM saved"
        )
        if request.session is None or name == request.session
    ]
    rows.sort(key=lambda row: (row.stub_tokens - row.result_tokens, row.session))
    return SavingsAre(
        sessions=tuple(rows[: max(1, request.limit)]),
        results=sum(row.results for row in rows),
        result_tokens=sum(row.result_tokens for row in rows),
        stub_tokens=sum(row.stub_tokens for row in rows),
        cut_tokens=sum(row.cut_tokens for row in rows),
    )


def cuts(db: sqlite3.Connection, request: Cuts) -> CutsAre:
    rows = db.execute(
        "SELECT seq, window_tokens, before, after, cuts FROM cuts WHERE session = ? ORDER BY seq", (request.session,)
    )
    return CutsAre(
        cuts=tuple(
            CutInfo(seq=seq, window_tokens=window, before=before, after=after, cuts=msgspec.json.decode(text))
            for seq, window, before, after, text in rows
        )
    )


def canvases(db: sqlite3.Connection, request: Canvases) -> CanvasesAre:
    """The canvases of sessions, by name; of one session where it is named."""
    found = db.execute(
        "SELECT session, text FROM canvases WHERE ?1 IS NULL OR session = ?1 ORDER BY session LIMIT ?2",
        (request.session, max(1, request.limit)),
    )
    return CanvasesAre(canvases=tuple(CanvasIs(session=row[0], text=row[1]) for row in found))


def part(root: Path, ref: Ref, request: Read) -> Part:
    """The piece that was asked for. The paths come from the view, never from the request."""
    if not 1 <= request.max_tokens <= MAX_READ_TOKENS:
        raise Invalid(f"max_tokens must be 1 to {MAX_READ_TOKENS}, not {request.max_tokens}")
    if not ref.media_type.startswith("text/"):
        raise Invalid(f"{ref.node} is no text ({ref.media_type}): its {ref.size_bytes} bytes are blobs/{ref.sha256}")
    passage = digest.read(
        _text(root, ref),
        query=request.query,
        lines=request.lines,
        symbol=request.symbol,
        max_tokens=request.max_tokens,
    )
    return Part(
        node=ref.node,
        text=passage.text,
        lines=passage.ranges,
        total_lines=passage.total_lines,
        omitted=passage.omitted,
    )


def _text(root: Path, ref: Ref) -> str:
    path = root / "blobs" / ref.sha256 if ref.offset is None else root / "refs" / f"{ref.node}.md"
    with translated_os(path):
        try:
            with path.open("rb") as file:
                file.seek(ref.offset or 0)
                raw = file.read(ref.size_bytes)
        except FileNotFoundError as error:
            raise Forgotten(
                f"{ref.node}: its file is gone; remove views/offload.db and ask again: it is made from the log"
            ) from error
    return raw.decode("utf-8", "replace")
