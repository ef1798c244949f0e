"""How far an import is, and what it did."""

from __future__ import annotations

from msgspec import Struct, field


class Progress(Struct, kw_only=True):
    """How far the import of one log is; the same object is updated and, at the end, holds the result.

    `turns` and `calls` were published; `known` (ends of sessions too) were in memory already and changed nothing;
    `skipped` counts by reason; `bad` could not be read, or stand in memory with other content.
    """

    file: str
    format: str
    turns: int = 0
    calls: int = 0
    sessions: int = 0
    known: int = 0
    bad: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    position_bytes: int = 0
    size_bytes: int | None = None
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Records a second, known ones included."""
        return (self.turns + self.calls + self.known) / self.seconds if self.seconds else 0.0

    @property
    def eta_s(self) -> float | None:
        """Seconds still to go, by the bytes read; None where the size is not known."""
        if not self.size_bytes or not self.position_bytes:
            return None
        return self.seconds * (self.size_bytes / self.position_bytes - 1)


class Imported(Struct, frozen=True, kw_only=True):
    """What `lamina import --json` says of one file; see `Progress`. `rate` is in records a second."""

    file: str
    format: str
    turns: int
    calls: int
    sessions: int
    known: int
    bad: int
    skipped: dict[str, int]
    seconds: float
    rate: float


def imported(progress: Progress) -> Imported:
    """The result that `progress` holds at the end."""
    return Imported(
        file=progress.file,
        format=progress.format,
        turns=progress.turns,
        calls=progress.calls,
        sessions=progress.sessions,
        known=progress.known,
        bad=progress.bad,
        skipped=dict(progress.skipped),
        seconds=round(progress.seconds, 3),
        rate=round(progress.rate, 1),
    )
