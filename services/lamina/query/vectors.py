"""The vector leg: how near every text of a space is to a question, by one matrix held for each space in use."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from lamina.embedding import Embedding, Vectors
from lamina.errors import Unavailable
from lamina.home import Home
from lamina.query.positions import Positions
from lamina.runtime.apply import read_meta
from lamina.runtime.embedanswer import answering
from lamina.runtime.embedcache import cache_path, completed, vectors_after

if TYPE_CHECKING:
    from numpy.typing import NDArray

BUDGET_BYTES = 384 * 1024 * 1024
"""For the matrices of all spaces; the one used longest ago goes first. 1,536 bytes a text of 384 numbers."""
NEWEST_SHARE = 0.9
SCRIPTS = ("other", "hangul", "kana", "han")
FEW_TEXTS = 5
FRESH_S = 0.1
"""A file written so lately may be written again without its time showing that."""

Marks: TypeAlias = tuple[tuple[str, int, int, int], ...]


class Near(Struct, frozen=True):
    """The cosine of each text that has a vector, by the seq of its event; `texts` counts those without one too.

    `vectors` is a matrix, and `rows` the row in it of each place.
    """

    seqs: NDArray[Any]
    cosines: NDArray[Any]
    places: Mapping[int, int]
    texts: int
    vectors: NDArray[Any]
    rows: NDArray[Any]

    def cosine(self, seq: int) -> float | None:
        """Of the text of one event; None while it has no vector."""
        place = self.places.get(seq)
        return float(self.cosines[place]) if place is not None and place < len(self.cosines) else None

    def alike(self, one: int, other: int) -> float:
        """The cosine of the texts of two events with each other; -1 while one of them has no vector."""
        places = [self.places.get(seq, len(self.cosines)) for seq in (one, other)]
        if max(places) >= len(self.cosines):
            return -1.0
        first, second = (self.vectors[self.rows[place]] for place in places)
        return float(first @ second)


class Matrix:
    """The vectors of one space, grown as they are made. `key` changes where it must be read anew.

    What `snapshot` gave stays true while the matrix grows: rows are only ever added.
    """

    def __init__(self, key: tuple[object, ...], dims: int) -> None:
        self.key = key
        self.dims = dims
        self.marks: Marks = ()
        self.last_seq = 0
        self.last_n = 0
        self.texts = 0
        self.rows = 0
        self._waiting: dict[str, list[int]] = defaultdict(list)
        self._row: dict[str, int] = {}
        self._unused: set[str] = set()
        self._data: Any = None
        self._places: dict[int, int] = {}  # seq -> index into the two lists below
        self._seqs: list[int] = []
        self._rows: list[int] = []
        self._groups: list[int] = []
        self._scripts: dict[str, int] = {}
        self._arrays: tuple[Any, Any, Any] | None = None

    def text(self, seq: int, hash: str, script: str) -> bool:
        """A text of the view; False where its vector was passed over before it was known."""
        self.texts += 1
        self._scripts[hash] = SCRIPTS.index(script)
        row = self._row.get(hash)
        if row is None:
            self._waiting[hash].append(seq)
        else:
            self._place(seq, row, hash)
        return hash not in self._unused

    def vector(self, hash: str, blob: bytes) -> None:
        import numpy as np

        seqs = self._waiting.pop(hash, None)
        if seqs is None or len(blob) != 2 * self.dims:
            self._unused.add(hash)  # of a text outside of the budget, forgotten, or refused by the model
            return
        if self._data is None:
            self._data = np.empty((256, self.dims), dtype=np.float32)
        elif self.rows == len(self._data):
            self._data = np.concatenate([self._data, np.empty_like(self._data)])
        self._data[self.rows] = np.frombuffer(blob, dtype=np.float16)
        self._row[hash] = self.rows
        for seq in seqs:
            self._place(seq, self.rows, hash)
        self.rows += 1

    def _place(self, seq: int, row: int, hash: str) -> None:
        self._places[seq] = len(self._seqs)
        self._seqs.append(seq)
        self._rows.append(row)
        self._groups.append(self._scripts[hash])
        self._arrays = None

    def snapshot(self) -> Callable[[Vectors], Near]:
        """What compares a question with the texts as they are now."""
        import numpy as np

        if self._arrays is None:
            self._arrays = (
                np.array(self._seqs, dtype=np.int64),
                np.array(self._rows, dtype=np.int64),
                np.array(self._groups, dtype=np.int8),
            )
        (seqs, rows, groups), places, texts = self._arrays, self._places, self.texts
        data = self._data[: self.rows] if self._data is not None else np.zeros((0, self.dims), dtype=np.float32)
        return lambda vector: Near(seqs, even((data @ vector)[rows], groups), places, texts, data, rows)

    @property
    def lacking(self) -> int:
        """How many texts have no vector yet."""
        return self.texts - len(self._seqs)

    @property
    def bytes(self) -> int:
        return self.rows * self.dims * 4


def even(cosines: NDArray[Any], groups: NDArray[Any]) -> NDArray[Any]:
    """The cosines as if every script were as near to the question on average.

    A model lays texts of the question's own language nearer than those of another that say more about it. Of a
    script with few texts the average is taken for what it is worth.
    """
    import numpy as np

    if not len(cosines) or (groups == groups[0]).all():
        return cosines
    mean = cosines.mean()
    evened = cosines.copy()
    for group in np.unique(groups):
        own = groups == group
        count = int(own.sum())
        evened[own] -= (cosines[own].mean() - mean) * count / (count + FEW_TEXTS)
    return evened


def _settled(marks: Marks) -> bool:
    """Was none of these files written a moment ago?"""
    newest = max((mark[3] for mark in marks), default=0)
    return time.time_ns() - newest > FRESH_S * 1e9


class VectorLeg:
    """Of one query service. `near` raises `Unavailable` where there is no source of vectors, or it is put aside."""

    def __init__(
        self, home: Home, positions: Positions, embedding: Embedding, *, budget_bytes: int = BUDGET_BYTES
    ) -> None:
        self.embedding = embedding
        self._home = home
        self._positions = positions
        self._budget = budget_bytes
        self._matrices: OrderedDict[str, Matrix] = OrderedDict()
        self._reading: dict[str, asyncio.Task[Matrix]] = {}

    async def near(self, space: str, query: str) -> Near:
        """All texts of `space` against `query`. Missing views and broken caches are errors of the store."""
        source = await answering(self._home.spaces / space, self.embedding)
        identity, vector = await source.query(query)
        reading = self._reading.get(space)
        if reading is None:
            reading = self._reading[space] = asyncio.create_task(self._matrix(space, identity, len(vector)))
            reading.add_done_callback(lambda _: self._reading.pop(space, None))
        # Whoever has no more time leaves the reading to the next one: a large space takes longer than one answer may.
        matrix = await asyncio.shield(reading)
        if matrix.key[0] != identity:
            raise Unavailable("the model was changed a moment ago")
        return await asyncio.to_thread(matrix.snapshot(), vector)

    async def _matrix(self, space: str, identity: str, dims: int) -> Matrix:
        """The matrix of a space as it is now; read again only where a file that it comes from was written."""
        marks = self._marks(space, identity)
        matrix = self._matrices.get(space)
        if matrix is None or matrix.marks != marks or not _settled(marks):
            matrix = await self._positions.read(space, "vectors", lambda db: self._read(db, space, identity, dims))
            matrix.marks = marks
            self._matrices[space] = matrix
        self._matrices.move_to_end(space)
        self._trim()
        if matrix.lacking:  # a space that nobody writes to is filled once it is asked
            await self._positions.touch(space, "vectors")
        return matrix

    def _marks(self, space: str, identity: str) -> Marks:
        """When the files of the view and of the cache were written, and which they are."""
        marks: list[tuple[str, int, int, int]] = []
        for path in (self._positions.link(space, "vectors"), cache_path(self._home.spaces / space, identity)):
            real = path.resolve()
            for file in (real, real.with_name(f"{real.name}-wal")):
                with suppress(OSError):
                    found = file.stat()
                    if found.st_size:  # reading makes an empty log beside a database that nobody writes
                        marks.append((str(file), found.st_ino, found.st_size, found.st_mtime_ns))
        return tuple(marks)

    async def complete(self, space: str) -> bool:
        """Has every text of the view its vector?"""
        if self.embedding.off:
            return True
        path = cache_path(self._home.spaces / space, await self.embedding.identity())

        def look(view: sqlite3.Connection) -> bool:
            last = view.execute("SELECT max(seq) FROM texts").fetchone()[0] or 0
            epoch = read_meta(view, "epoch", "")
            return last == 0 or last <= completed(path, epoch)

        return await self._positions.read(space, "vectors", look)

    def _read(self, view: sqlite3.Connection, space: str, identity: str, dims: int) -> Matrix:
        """The matrix of a space with what came since it was read last. On the view's thread."""
        gone = view.execute("SELECT count(*) FROM gone").fetchone()[0]
        path = cache_path(self._home.spaces / space, identity)
        if not path.exists():
            raise Unavailable("no vectors have been made in this space yet")
        key = (identity, read_meta(view, "epoch", ""), gone, path.stat().st_ino)
        most = max(1, self._budget // (4 * dims))
        matrix = self._matrices.get(space)
        if matrix is None or matrix.key != key or matrix.rows > most:
            matrix = Matrix(key, dims)
        sql = "SELECT seq, hash, script FROM texts WHERE seq > ? ORDER BY seq DESC LIMIT ?"
        rows = view.execute(sql, (matrix.last_seq, int(most * NEWEST_SHARE) + 1)).fetchall()
        for seq, hash, script in reversed(rows):
            if not matrix.text(seq, hash, script):
                del self._matrices[space]
                return self._read(view, space, identity, dims)
            matrix.last_seq = seq
        for n, hash, blob in vectors_after(path, matrix.last_n):
            matrix.vector(hash, blob)
            matrix.last_n = n
        return matrix

    def _trim(self) -> None:
        while len(self._matrices) > 1 and sum(one.bytes for one in self._matrices.values()) > self._budget:
            self._matrices.popitem(last=False)
