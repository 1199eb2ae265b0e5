"""Modules that are imported when something of theirs is first used.

`import structgen` is to cost little where nothing is generated yet: with a schema and a model come
seconds of work anyhow, and importing numba and what needs it is lost in them. Modules that can wait
are named once, at the top of a file, as types for the reader and the type checker:

    if TYPE_CHECKING:
        import structgen.jobs as jobs
    else:
        jobs = later("structgen.jobs")

`jobs.drive(...)` then takes half a microsecond more than if it were imported: nothing for loops.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from structgen.deadline import uncounted


class _Later:
    """Has what a module has. Nothing is kept here, so that tests may replace what is there."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<{self._name}, imported when it is used>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies name the same module; asking the module how to copy it would fail."""
        return later, (self._name,)

    def __getattr__(self, attribute: str) -> Any:
        if self._name not in sys.modules:
            with uncounted():  # kernels that are not cached yet are compiled by their imports
                import_module(self._name)
        return getattr(import_module(self._name), attribute)


def later(name: str) -> Any:
    """The module of this name, imported when something of it is first used."""
    return _Later(name)


def imported(module: ModuleType) -> None:
    """Import a module that was to come later, where the wait for it belongs."""
    module.__name__  # noqa: B018  # what a module has is asked of the module
