"""The daemon of a home: the bus and the services in one process."""

from __future__ import annotations

from lamina.daemon.host import Daemon, run_worker

__all__ = ["Daemon", "run_worker"]
