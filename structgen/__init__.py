"""structgen: Pydantic models in, validated objects out, for local language models.

    import structgen as sg

    triage = sg.generate(Triage, "My card was charged twice.")

Names are loaded at their first use, so that the engine can be used without importing torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structgen.api import agenerate as agenerate
    from structgen.api import astream as astream
    from structgen.api import check as check
    from structgen.api import default_lm as default_lm
    from structgen.api import generate as generate
    from structgen.api import stream as stream
    from structgen.api import structured as structured
    from structgen.api import warmup as warmup
    from structgen.classification.api import classify as classify
    from structgen.classification.api import classify_many as classify_many
    from structgen.classification.classifier import Classifier as Classifier
    from structgen.classification.evaluation import Evaluated as Evaluated
    from structgen.classification.evaluation import Evaluation as Evaluation
    from structgen.classification.evaluation import evaluate as evaluate
    from structgen.classification.fields import ClassifiedFields as ClassifiedFields
    from structgen.classification.fields import classify_fields as classify_fields
    from structgen.classification.files import classify_file as classify_file
    from structgen.classification.multi import MultiLabelClassifier as MultiLabelClassifier
    from structgen.classification.results import Classification as Classification
    from structgen.classification.results import LabelAnswer as LabelAnswer
    from structgen.classification.results import Level as Level
    from structgen.classification.results import MultiLabel as MultiLabel
    from structgen.classification.results import RankedLabel as RankedLabel
    from structgen.classification.several import SeveralEvaluated as SeveralEvaluated
    from structgen.classification.several import SeveralEvaluation as SeveralEvaluation
    from structgen.classification.several import evaluate_several as evaluate_several
    from structgen.classification.shortlist import BM25 as BM25
    from structgen.classification.shortlist import Nearest as Nearest
    from structgen.compiler import CompiledSchema as CompiledSchema
    from structgen.compiler import cache_info as cache_info
    from structgen.compiler import clear_cache as clear_cache
    from structgen.compiler import compile as compile
    from structgen.errors import BudgetError as BudgetError
    from structgen.errors import EnvironmentFault as EnvironmentFault
    from structgen.errors import GenerationError as GenerationError
    from structgen.errors import IllegalTokenError as IllegalTokenError
    from structgen.errors import InvalidTextError as InvalidTextError
    from structgen.errors import LimitError as LimitError
    from structgen.errors import MissingDependencyError as MissingDependencyError
    from structgen.errors import ModelError as ModelError
    from structgen.errors import OptionError as OptionError
    from structgen.errors import PromptTooLongError as PromptTooLongError
    from structgen.errors import SchemaError as SchemaError
    from structgen.errors import StructgenError as StructgenError
    from structgen.errors import UnsatisfiableSchemaError as UnsatisfiableSchemaError
    from structgen.errors import UnsupportedSchemaError as UnsupportedSchemaError
    from structgen.errors import UsageError as UsageError
    from structgen.errors import ValidationFailedError as ValidationFailedError
    from structgen.errors import VocabularyError as VocabularyError
    from structgen.explanation import Explanation as Explanation
    from structgen.explanation import explain as explain
    from structgen.generator import Generator as Generator
    from structgen.linter import DesignWarning as DesignWarning
    from structgen.linter import Finding as Finding
    from structgen.linter import lint as lint
    from structgen.many import generate_as_completed as generate_as_completed
    from structgen.many import generate_many as generate_many
    from structgen.memory import CacheInfo as CacheInfo
    from structgen.memory import CacheUse as CacheUse
    from structgen.options import Limits as Limits
    from structgen.results import AlignedInfo as AlignedInfo
    from structgen.results import Generation as Generation
    from structgen.results import LabelScore as LabelScore
    from structgen.results import Timings as Timings
    from structgen.results import TokenScore as TokenScore
    from structgen.results import Usage as Usage
    from structgen.runtime.aligned import Aligned as Aligned
    from structgen.runtime.hf import HFModel as HFModel
    from structgen.runtime.hf import load as load
    from structgen.runtime.lm import LanguageModel as LanguageModel
    from structgen.schema.functions import Arguments as Arguments
    from structgen.schema.functions import arguments_model as arguments_model
    from structgen.schema.functions import arguments_of as arguments_of
    from structgen.schema.roots import OneOf as OneOf
    from structgen.schema.roots import Regex as Regex
    from structgen.schema.roots import Sequence as Sequence
    from structgen.schema.roots import SomeOf as SomeOf
    from structgen.schema.roots import Text as Text
    from structgen.schema.roots import Thinking as Thinking
    from structgen.schema.roots import Thought as Thought
    from structgen.streams import AsyncStream as AsyncStream
    from structgen.streams import Stream as Stream
    from structgen.streams import StreamEvent as StreamEvent
    from structgen.taxonomy import Entry as Entry
    from structgen.taxonomy import Taxonomy as Taxonomy
    from structgen.taxonomy.verification import Verification as Verification
    from structgen.tokens.session import Session as Session
    from structgen.tokens.session import fill_masks as fill_masks
    from structgen.tokens.vocabulary import Vocabulary as Vocabulary
    from structgen.toolset.calls import ToolCall as ToolCall
    from structgen.toolset.choice import Tools as Tools
    from structgen.toolset.choice import tools as tools
    from structgen.toolset.tool import Tool as Tool
    from structgen.warming import WarmedSchema as WarmedSchema
    from structgen.warming import WarmupReport as WarmupReport

__version__ = "0.1.0"

_HOMES = {
    "structgen.api": (
        "agenerate",
        "astream",
        "check",
        "default_lm",
        "generate",
        "stream",
        "structured",
        "warmup",
    ),
    "structgen.classification.api": ("classify", "classify_many"),
    "structgen.classification.classifier": ("Classifier",),
    "structgen.classification.evaluation": ("Evaluated", "Evaluation", "evaluate"),
    "structgen.classification.fields": ("ClassifiedFields", "classify_fields"),
    "structgen.classification.files": ("classify_file",),
    "structgen.classification.multi": ("MultiLabelClassifier",),
    "structgen.classification.results": (
        "Classification",
        "LabelAnswer",
        "Level",
        "MultiLabel",
        "RankedLabel",
    ),
    "structgen.classification.several": (
        "SeveralEvaluated",
        "SeveralEvaluation",
        "evaluate_several",
    ),
    "structgen.classification.shortlist": ("BM25", "Nearest"),
    "structgen.compiler": ("CompiledSchema", "cache_info", "clear_cache", "compile"),
    "structgen.errors": (
        "BudgetError",
        "EnvironmentFault",
        "GenerationError",
        "IllegalTokenError",
        "InvalidTextError",
        "LimitError",
        "MissingDependencyError",
        "ModelError",
        "OptionError",
        "PromptTooLongError",
        "SchemaError",
        "StructgenError",
        "UnsatisfiableSchemaError",
        "UnsupportedSchemaError",
        "UsageError",
        "ValidationFailedError",
        "VocabularyError",
    ),
    "structgen.explanation": ("Explanation", "explain"),
    "structgen.generator": ("Generator",),
    "structgen.linter": ("DesignWarning", "Finding", "lint"),
    "structgen.memory": ("CacheInfo", "CacheUse"),
    "structgen.many": ("generate_as_completed", "generate_many"),
    "structgen.options": ("Limits",),
    "structgen.results": (
        "AlignedInfo",
        "Generation",
        "LabelScore",
        "Timings",
        "TokenScore",
        "Usage",
    ),
    "structgen.runtime.aligned": ("Aligned",),
    "structgen.runtime.hf": ("HFModel", "load"),
    "structgen.runtime.lm": ("LanguageModel",),
    "structgen.schema.functions": ("Arguments", "arguments_model", "arguments_of"),
    "structgen.schema.roots": (
        "OneOf",
        "Regex",
        "Sequence",
        "SomeOf",
        "Text",
        "Thinking",
        "Thought",
    ),
    "structgen.streams": ("AsyncStream", "Stream", "StreamEvent"),
    "structgen.taxonomy": ("Entry", "Taxonomy"),
    "structgen.taxonomy.verification": ("Verification",),
    "structgen.tokens.session": ("Session", "fill_masks"),
    "structgen.tokens.vocabulary": ("Vocabulary",),
    "structgen.toolset.calls": ("ToolCall",),
    "structgen.toolset.choice": ("Tools", "tools"),
    "structgen.toolset.tool": ("Tool",),
    "structgen.warming": ("WarmedSchema", "WarmupReport"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]  # one list, not two


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'structgen' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
