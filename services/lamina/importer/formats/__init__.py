"""The formats of logs, one module each. Order matters to `detect` alone: the more typical first."""

from __future__ import annotations

from collections.abc import Mapping

from lamina.importer.formats import (
    anthropic,
    beam,
    claude_code,
    codex,
    jsonl,
    lifebench,
    locomo,
    longmemeval,
    memdaily,
    openai,
    personamem,
    swe_agent,
)
from lamina.importer.formats.base import Format

FORMATS: Mapping[str, Format] = {
    module.FORMAT.name: module.FORMAT
    for module in (
        claude_code,
        codex,
        locomo,
        longmemeval,
        swe_agent,
        beam,
        memdaily,
        lifebench,
        personamem,
        anthropic,
        openai,
        jsonl,
    )
}
