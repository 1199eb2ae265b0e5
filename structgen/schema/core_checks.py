"""What people call the checks that only run on the finished value."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

_WHEN = {"function-before": " (before)", "function-wrap": " (around)"}


@dataclass(frozen=True, slots=True)
class AfterCheck:
    """What no mask can enforce: it is checked on the finished value.

    Example: `AfterCheck("$.born", "lies in the past")`
    """

    path: str
    what: str


def validator(core: Mapping[str, Any]) -> str:
    """What explanations call a Python validator, with its name and when it runs."""
    function = core["function"]
    function = function["function"] if isinstance(function, dict) else function
    name = called(function)
    when = _WHEN.get(core["type"], "")
    return f"the validator {name}{when}" if name else f"a Python validator{when}"


def called(function: Any) -> str:
    """The name of a function in backticks, nothing for one without a name."""
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    name = str(getattr(function, "__name__", type(function).__name__))
    return "" if name == "<lambda>" else f"`{name}`"


def construction(core: Mapping[str, Any]) -> list[str]:
    """What the class of a model or dataclass itself runs when it is made from a value."""
    after = core.get("post_init")
    if after is True:
        after = "__post_init__"
    elif after:
        own = getattr(core["cls"], after)
        after = after if own.__name__ != "init_private_attributes" else None  # Pydantic's own
    found = ["__init__"] * bool(core.get("custom_init")) + [after] * bool(after)
    return [f"the model's `{name}`" for name in found]
