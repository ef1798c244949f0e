"""Which vectors verify takes for orphans: those of no text of the view, said or derived."""

from __future__ import annotations

from pathlib import Path

from lamina.store.driver import connect
from lamina.verify.caches import caches
from lamina.verify.ledger import Look


def test_a_vector_of_a_derived_text_is_no_orphan_and_one_of_no_text_is(tmp_path: Path) -> None:
    (tmp_path / "views").mkdir()
    (tmp_path / "cache").mkdir()
    view = connect(tmp_path / "views" / "vectors.db", readonly=False)
    view.execute("CREATE TABLE texts(hash TEXT)")
    view.execute("CREATE TABLE derived(hash TEXT)")
    view.execute("INSERT INTO texts VALUES('said')")
    view.execute("INSERT INTO derived VALUES('derived')")
    view.close()
    cache = connect(tmp_path / "cache" / "embeddings-m-2.db", readonly=False)
    cache.execute("CREATE TABLE vectors(hash TEXT, vector BLOB)")
    cache.executemany("INSERT INTO vectors VALUES(?, ?)", [("said", b"12345678"), ("derived", b"12345678")])
    look = Look(space="alice")

    caches(tmp_path, look)
    clean = list(look.findings)
    cache.execute("INSERT INTO vectors VALUES('nobody', ?)", (b"12345678",))
    cache.close()
    caches(tmp_path, look)

    assert clean == []
    assert [(one.what, one.detail) for one in look.findings] == [("vectors.orphan", "1 vectors of no text")]
