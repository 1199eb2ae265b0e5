"""The names of a field: which one is written, and which ones validation looks up."""

from __future__ import annotations

from typing import Any

from structgen.schema.core_reader import Core, Reader


def field_key(reader: Reader, name: str, part: Core, path: str) -> str:
    """The property name that is written: the (first) alias where there is one."""
    alias = _alias(reader, part)
    if alias is None:
        return _text_key(reader, name, path)
    if isinstance(alias, list):
        first = _choices(alias)[0]
        if len(first) != 1 or not isinstance(first[0], str):
            reader.refuse(path, f"the alias path {first!r} is not supported", "use a plain alias")
            return name
        alias = first[0]
    return _text_key(reader, alias, path)


def lookups(reader: Reader, name: str, part: Core) -> set[str]:
    """Every name by which validation looks up a field."""
    alias = _alias(reader, part)
    if alias is None:
        return {name}
    by_name = reader.setting("validate_by_name") or reader.setting("populate_by_name")
    names = {name} if by_name else set[str]()
    if isinstance(alias, list):
        return names | {str(path[0]) for path in _choices(alias)}
    return names | {alias}


def _alias(reader: Reader, part: Core) -> Any:
    if reader.setting("validate_by_alias") is False:
        return None
    return part.get("validation_alias", part.get("alias"))


def _choices(alias: list[Any]) -> list[list[str | int]]:
    return alias if isinstance(alias[0], list) else [alias]


def _text_key(reader: Reader, key: str, path: str) -> str:
    try:
        key.encode()
    except UnicodeEncodeError:
        reader.refuse(path, f"the name {key!r} holds a lone surrogate and is not text")
        return "?"
    return key
