"""The engines that are measured, each in a file of its own.

A peer need not be installed: its package is imported when an engine of it is made.
"""

from __future__ import annotations

from importlib.util import find_spec

from structgen.bench.engines.base import Engine, Setup
from structgen.bench.engines.llguidance import LLGuidance
from structgen.bench.engines.lm_format_enforcer import LMFormatEnforcer
from structgen.bench.engines.ours import Structgen
from structgen.bench.engines.outlines_core import OutlinesCore
from structgen.bench.engines.xgrammar import XGrammar

__all__ = ["ENGINES", "Engine", "Setup", "is_installed"]

ENGINES: dict[str, type[Engine]] = {
    engine.name: engine
    for engine in (Structgen, LLGuidance, XGrammar, OutlinesCore, LMFormatEnforcer)
}


def is_installed(name: str) -> bool:
    """Whether the package of an engine can be imported."""
    return find_spec(ENGINES[name].package) is not None
