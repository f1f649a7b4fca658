"""What a project may set, where it is read from, and how a mistake in it is reported.

Keys stand in ``[tool.kvlint]`` of a ``pyproject.toml`` or at the top of a
``kvlint.toml``; the nearest one at or above the first path is used.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec


class KvlintError(Exception):
    """A mistake of the caller's that ends the run: what is wrong, where, and what to do about it."""


class ConfigError(KvlintError):
    """A configuration file or option that cannot be used."""


class ProtocolOverride(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """One ``[[tool.kvlint.protocol]]``: names that replace what would otherwise be inferred.

    An empty value leaves the inference alone.
    """

    status_enum: str | None = None
    failure: tuple[str, ...] = ()
    success: tuple[str, ...] = ()
    opening: tuple[str, ...] = ()
    table: str | None = None
    writer: str | None = None
    reader: str | None = None
    terminal_helpers: tuple[str, ...] = ()
    room_tables: tuple[str, ...] = ()
    failure_recorder: str | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """The keys of ``[tool.kvlint]``, as written there."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: dict[str, tuple[str, ...]] = {}
    roots: tuple[str, ...] = ()
    baseline: str | None = None
    protocol: tuple[ProtocolOverride, ...] = ()


class Config(Settings, frozen=True, kw_only=True):
    """Settings, and the file they came from.

    ``folder`` is what relative globs and ``roots`` start from.  Codes are in
    upper case.
    """

    file: str | None = None
    folder: str = ""

    @property
    def baseline_file(self) -> str | None:
        """The path of the baseline, as the current folder sees it."""
        return None if self.baseline is None else _from_here(os.path.join(self.folder, self.baseline))

    @property
    def root_folders(self) -> tuple[str, ...]:
        """The folders below which packages start, absolute."""
        return tuple(os.path.normpath(os.path.join(self.folder, root)) for root in self.roots)


def default_config() -> Config:
    """The configuration of a project that sets nothing, relative to the current folder."""
    return Config(folder=os.getcwd())


def load_config(start: str) -> Config:
    """The nearest configuration at or above ``start``, else the nearest at or above the current folder."""
    for origin in (start, os.getcwd()):
        if file := find_config(origin):
            return read_config(file)
    return default_config()


def find_config(start: str) -> str | None:
    """The file that configures ``start``, a file or folder: ``kvlint.toml`` before ``pyproject.toml``."""
    folder = os.path.abspath(start)
    while True:
        own = os.path.join(folder, "kvlint.toml")
        if os.path.isfile(own):
            return own
        shared = os.path.join(folder, "pyproject.toml")
        if os.path.isfile(shared) and _table(shared) is not None:
            return shared
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def read_config(file: str) -> Config:
    """The configuration in ``file``; raises ConfigError naming the key that cannot be used."""
    table = _table(file)
    if table is None:
        raise ConfigError(f"{file}: has no [tool.kvlint] table")
    where = "" if _is_own(file) else " in [tool.kvlint]"
    table = {**table, "protocol": _listed_protocols(file, table.get("protocol", []), where)}
    _refuse_unknown(file, table, Settings, where)
    try:
        settings = msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: {_readable(str(error))}{where}") from error
    folder = os.path.dirname(os.path.abspath(file))
    values = {name: getattr(settings, name) for name in Settings.__struct_fields__}
    for name in ("select", "extend_select", "ignore"):
        values[name] = None if values[name] is None else upper(values[name])
    values["per_file_ignores"] = {glob: upper(codes) for glob, codes in settings.per_file_ignores.items()}
    return Config(**values, file=file, folder=folder)


def upper(codes: tuple[str, ...]) -> tuple[str, ...]:
    """Rule codes as they are compared."""
    return tuple(code.strip().upper() for code in codes)


def _from_here(path: str) -> str:
    """Absolute ``path``, relative to the current folder if it lies below it."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


def _is_own(file: str) -> bool:
    return os.path.basename(file) != "pyproject.toml"


def _table(file: str) -> dict[str, Any] | None:
    """kvlint's table in ``file``, None where it has none; raises ConfigError."""
    try:
        with open(file, "rb") as stream:
            data = stream.read()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    if not _is_own(file) and b"kvlint" not in data:
        # Somebody else's file: its mistakes are not ours to report.
        return None
    # Few projects configure kvlint, and every run would wait for the parser.
    import tomllib

    try:
        document = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: is not valid TOML: {error}") from error
    if _is_own(file):
        return document
    tool = document.get("tool", {})
    table = tool.get("kvlint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{file}: tool.kvlint must be a table")
    return table


def _listed_protocols(file: str, protocols: object, where: str) -> object:
    """The protocol tables with their unknown keys refused and every lone name made a list of one."""
    if not isinstance(protocols, list):
        return protocols
    return [_listed(file, entry, where) if isinstance(entry, dict) else entry for entry in protocols]


def _listed(file: str, entry: dict[str, Any], where: str) -> dict[str, Any]:
    _refuse_unknown(file, entry, ProtocolOverride, " in [[protocol]]" if not where else " in [[tool.kvlint.protocol]]")
    many = {field.encode_name for field in msgspec.structs.fields(ProtocolOverride) if field.type == tuple[str, ...]}
    return {key: [value] if key in many and isinstance(value, str) else value for key, value in entry.items()}


def _refuse_unknown(file: str, table: dict[str, Any], kind: type[msgspec.Struct], where: str) -> None:
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    for key in table:
        if key not in known:
            from difflib import get_close_matches

            near = get_close_matches(key.replace("_", "-"), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "the keys are " + ", ".join(known)
            raise ConfigError(f"{file}: unknown key {key!r}{where}; {hint}")


def _readable(message: str) -> str:
    """Msgspec's "Expected `array`, got `int` - at `$.select`" with the key in front."""
    what, _, path = message.partition(" - at ")
    key = path.strip("`").removeprefix("$").removeprefix(".").replace("[...]", "[]") or "the table"
    plain = what.replace("`", "").replace(" | null", "")
    return f"{key!r}: {plain[:1].lower()}{plain[1:]}"
