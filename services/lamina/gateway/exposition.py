"""The state of a home as Prometheus metrics (text format 0.0.4, by prometheus-client)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lamina.cli.state import BusStatus, ServiceStatus, Status
from lamina.gateway.health import Health


class StatusCollector(Collector):
    """One look at a home; its labels are names of services and process numbers, never anything that was said."""

    def __init__(self, status: Status, health: Health) -> None:
        self._status = status
        self._health = health

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily(
            "lamina_healthy", "1 while nothing is wrong that needs somebody.", float(self._health.status == "green")
        )
        yield from _bus(self._status.bus)
        yield from _services(self._status.services)
        tokens = self._status.tokens
        for name, text, value in (
            ("spent", "Tokens of models spent on decisions and attempts, by what the views hold.", tokens.spent),
            ("refused", "Tokens spent on decisions that came second and changed nothing.", tokens.refused),
            ("saved", "Tokens that stubs save where they stand in place of their results.", tokens.saved),
        ):
            yield GaugeMetricFamily(f"lamina_tokens_{name}", text, value)


def exposition(status: Status, health: Health) -> bytes:
    """The text of `/metrics`."""
    registry = CollectorRegistry()
    registry.register(StatusCollector(status, health))
    return generate_latest(registry)


def _bus(bus: BusStatus) -> Iterator[Metric]:
    yield GaugeMetricFamily("lamina_bus_up", "1 while the log answers.", float(bus.state == "up"))
    yield GaugeMetricFamily("lamina_outbox_events", "Events that wait in outboxes of clients.", bus.waiting)
    if bus.log is None:
        return
    for name, text, value in (
        ("last_seq", "Position of the newest event of the log.", bus.log.last_seq),
        ("messages", "Messages that the log holds.", bus.log.messages),
        ("bytes", "Bytes that the log holds.", bus.log.size_bytes),
        ("limit_bytes", "Bytes that the log may hold; -1 without a limit.", bus.log.max_bytes),
    ):
        yield GaugeMetricFamily(f"lamina_log_{name}", text, value)


def _services(services: Iterable[ServiceStatus]) -> Iterator[Metric]:
    def gauge(name: str, text: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"lamina_service_{name}", text, labels=["service"])

    workers = gauge("workers", "Processes that run the service.")
    behind = gauge("lag_events", "Events of the log not yet in its views.")
    age = gauge("lag_seconds", "Age of the oldest of them.")
    dead = gauge("dead_events", "Events parked with a reason; see `lamina dead list`.")
    due = gauge("due_spaces", "Spaces in which a decision or vectors are due.")
    turns = GaugeMetricFamily("lamina_service_turns", "Turns by what became of them.", labels=["service", "outcome"])
    errors = CounterMetricFamily("lamina_service_errors", "Errors since its processes started.", labels=["service"])
    applied = CounterMetricFamily(
        "lamina_service_applied", "Events folded since the process started.", labels=["service", "pid"]
    )
    for one in services:
        workers.add_metric([one.name], len(one.workers))
        if one.lag.events is not None:
            behind.add_metric([one.name], one.lag.events)
        if one.lag.seconds is not None:
            age.add_metric([one.name], one.lag.seconds)
        dead.add_metric([one.name], one.dead)
        due.add_metric([one.name], sum(worker.due or 0 for worker in one.workers))
        for outcome in ("extracted", "waiting", "parked") if one.turns is not None else ():
            turns.add_metric([one.name, outcome], getattr(one.turns, outcome))
        errors.add_metric([one.name], one.errors)
        for worker in one.workers:
            applied.add_metric([one.name, str(worker.pid)], worker.applied or 0)
    yield from (workers, behind, age, dead, due, turns, errors, applied)
