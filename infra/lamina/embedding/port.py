"""What every source of vectors looks like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:  # a daemon that embeds nothing does not load numpy
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]
else:
    Vectors: TypeAlias = object

_UNREADABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]+")


class Model(Protocol):
    """A model that can be asked now. Its calls block: they run on threads of `Embedding`, several at once.

    Rows of the results are of length 1, or all zeros for a text that the model refuses for good. They raise
    `Transient` where the same call may succeed later and `Permanent` where the set-up must change.
    """

    @property
    def identity(self) -> str:
        """Names provider, model, size and treatment in [a-z0-9.-]: vectors of two identities are never compared."""
        ...

    @property
    def dims(self) -> int: ...

    @property
    def batch(self) -> int:
        """How many passages it takes at once, at most."""
        ...

    def passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text."""
        ...

    def query(self, text: str) -> Vectors:
        """One vector, comparable with those of passages by their product."""
        ...


def readable(text: str) -> str:
    """`text` without control characters and lone surrogates, which no model takes."""
    return _UNREADABLE.sub(" ", text)


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to length 1; rows of zeros, and those that hold no number, become zeros."""
    import numpy as np

    rows = np.asarray(vectors, dtype=np.float32)
    rows = np.where(np.isfinite(rows).all(axis=-1, keepdims=True), rows, np.float32(0))
    lengths = np.linalg.norm(rows.astype(np.float64), axis=-1, keepdims=True)
    scaled = np.divide(rows, lengths, out=np.zeros_like(rows, dtype=np.float64), where=lengths > 0)
    result: Vectors = scaled.astype(np.float32)
    return result
