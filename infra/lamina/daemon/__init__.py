"""The daemon of a home: the bus and the services in one process, and the worker processes it looks after."""

from __future__ import annotations

from lamina.daemon.host import Daemon
from lamina.daemon.running import run_worker
from lamina.daemon.scale import Supervised, scale, supervised, wanted

__all__ = ["Daemon", "Supervised", "run_worker", "scale", "supervised", "wanted"]
