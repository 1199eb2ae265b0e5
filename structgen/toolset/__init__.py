"""Tools that a model may call: names that cannot be wrong, and arguments that fit."""

from structgen.toolset.calls import ToolCall
from structgen.toolset.choice import Tools, tools
from structgen.toolset.tool import Tool

__all__ = ["Tool", "ToolCall", "Tools", "tools"]
