"""The log and the wires: one port, an adapter over NATS JetStream, and one in memory that behaves alike."""

from __future__ import annotations

from lamina.bus.port import Ack, Bus, Message, Outgoing, Reader, StreamInfo, Subscription

__all__ = ["Ack", "Bus", "Message", "Outgoing", "Reader", "StreamInfo", "Subscription"]
