"""The vectors of a space: whole, of one length each identity, of texts that there are."""

from __future__ import annotations

from pathlib import Path

from lamina.errors import LaminaError
from lamina.store.driver import connect, translated
from lamina.verify.ledger import Look, orphan

PREFIX = "embeddings-"


def caches(root: Path, look: Look) -> None:
    """Check every `cache/embeddings-<identity>.db`. A damaged one is made again once it is gone."""
    texts = _texts(root / "views" / "vectors.db")
    for path in sorted((root / "cache").glob(f"{PREFIX}*.db")):
        where = f"cache/{path.name}"
        try:
            lengths, hashes = _read(path)
        except LaminaError as error:
            look.find("vectors.damaged", where, str(error), orphan(path))
            continue
        if len(lengths) > 1:
            detail = f"vectors of {', '.join(map(str, sorted(lengths)))} bytes: more than one model made them"
            look.find("vectors.damaged", where, detail, orphan(path))
        strangers = hashes - texts if texts is not None else set()
        if strangers:
            look.find("vectors.orphan", where, f"{len(strangers)} vectors of no text", orphan(path))


def _texts(link: Path) -> set[str] | None:
    """The hashes of the texts that are embedded; None where that view cannot be read, which is said elsewhere."""
    if not link.exists():
        return None
    path = link.resolve()
    try:
        with translated(path):
            db = connect(path, readonly=True)
            try:
                return {row[0] for row in db.execute("SELECT hash FROM texts UNION SELECT hash FROM derived")}
            finally:
                db.close()
    except LaminaError:
        return None


def _read(path: Path) -> tuple[set[int], set[str]]:
    """Lengths of the vectors that are there, and hashes of their texts; `Damaged` for what is no database."""
    with translated(path):
        db = connect(path, readonly=True)
        try:
            told = [row[0] for row in db.execute("PRAGMA integrity_check(3)")]
            lengths = {row[0] for row in db.execute("SELECT DISTINCT length(vector) FROM vectors")} - {0}
            hashes = {row[0] for row in db.execute("SELECT hash FROM vectors")}
        finally:
            db.close()
    if told != ["ok"]:
        raise LaminaError("; ".join(told))
    return lengths, hashes
