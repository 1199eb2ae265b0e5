"""What the labels of a file depend on, kept beside it, so that a run goes on only as it began."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from structgen.errors import InvalidTextError, OptionError
from structgen.runtime.lm import LanguageModel
from structgen.taxonomy import Taxonomy

Settings: TypeAlias = dict[str, Any]
"""By name; what JSON can hold."""

SUFFIX = ".settings.json"
SHOWN = 80
"""Characters of a setting that an error shows."""


def settings_of(taxonomy: Taxonomy, lm: LanguageModel, options: Mapping[str, object]) -> Settings:
    """The settings of a classifier.

    Example: `{"model": "SmolLM2 (tokens 1f3c...)", "labels": "4 labels (9a0e...)", "top_k": 3}`
    """
    return plain_settings(
        {
            "model": f"{lm.name} (tokens {lm.vocabulary.fingerprint[:16]})",
            "labels": f"{len(taxonomy)} labels ({taxonomy.fingerprint[:16]})",
            **options,
        }
    )


def plain_settings(options: Mapping[str, object]) -> Settings:
    """Options as settings.

    Raises:
        InvalidTextError: one holds a lone surrogate, which no file and no model takes.
    """
    settings = {name: _plain(value) for name, value in options.items()}
    for name, value in settings.items():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InvalidTextError(
                f"{name}={value!r:.{SHOWN}} is not valid Unicode text: {error}"
            ) from error
    return settings


def _plain(value: object) -> object:
    """A value as JSON gives it back; a function by its name."""
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, str | int | float):
        return value
    named = value if hasattr(value, "__qualname__") else type(value)
    module = getattr(named, "__module__", None) or "builtins"
    return f"{module}.{getattr(named, '__qualname__', named)}"


def settings_path(target: Path) -> Path:
    """Where the settings of an output stand: `out.csv` -> `out.csv.settings.json`."""
    return target.with_name(target.name + SUFFIX)


def check_settings(target: Path, settings: Settings) -> None:
    """See that an output was begun with the same settings.

    Raises:
        OptionError: it was not, or nothing tells.
    """
    path = settings_path(target)
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise OptionError(
            f"{str(target)!r} has rows, but there is no {path.name!r} beside it to tell how they "
            "were made; put it back, or choose another output"
        ) from None
    except (OSError, ValueError) as error:
        raise OptionError(
            f"{str(path)!r} cannot be read: {error}; choose another output"
        ) from error
    if not isinstance(known, dict):
        raise OptionError(f"{str(path)!r} holds no settings; choose another output")
    changed = [name for name in {**known, **settings} if known.get(name) != settings.get(name)]
    if changed:
        told = "; ".join(
            f"{name} was {known.get(name)!r:.{SHOWN}} and is {settings.get(name)!r:.{SHOWN}}"
            for name in changed
        )
        raise OptionError(
            f"{str(target)!r} was begun with other settings: {told}; set them back to go on, or "
            "choose another output"
        )


def write_settings(target: Path, settings: Settings) -> None:
    """Put the settings beside an output, whole or not at all."""
    path = settings_path(target)
    data = json.dumps(settings, ensure_ascii=False, indent=1).encode()
    fresh = path.with_name(path.name + ".tmp")  # of our own: the output is locked
    try:
        with fresh.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
