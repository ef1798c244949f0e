"""What may be open at once follows from the descriptors that a process may have."""

from __future__ import annotations

import resource

import pytest

from lamina.runtime import descriptors


@pytest.mark.parametrize(
    ("soft", "services", "views"), [(1_024, 1, 64), (1_024, 6, 10), (64, 6, 8), (20_000, 1, 512), (20_000, 6, 85)]
)
def test_all_services_of_a_process_share_a_quarter(
    monkeypatch: pytest.MonkeyPatch, soft: int, services: int, views: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))

    assert descriptors.most_views(services) == views
    assert descriptors.most_readers() <= max(descriptors.LEAST, soft // 4 // descriptors.FDS_PER_READER)


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        ((1_024, 4_096), (4_096, 4_096)),
        ((256, resource.RLIM_INFINITY), (descriptors.WANTED, resource.RLIM_INFINITY)),
        ((20_000, 20_000), None),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None),
    ],
)
def test_a_process_asks_for_what_it_may_have(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], asked: tuple[int, int] | None
) -> None:
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: set_to.append(wanted))
    descriptors.raise_limit()

    assert set_to == ([] if asked is None else [asked])


def test_a_refusal_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int, __: tuple[int, int]) -> None:
        raise ValueError("not permitted")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1_024))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    descriptors.raise_limit()
