"""SQLite views and the files beside them: whole transactions, typed errors, nothing left open."""

from __future__ import annotations

from lamina.store.driver import SQLITE_VERSION, Damaged, Row, translated
from lamina.store.view import Table, View, ViewReader

__all__ = ["SQLITE_VERSION", "Damaged", "Row", "Table", "View", "ViewReader", "translated"]
