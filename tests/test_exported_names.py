"""What `import structgen as sg` offers is pinned: a name more or less is a decision."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import get_type_hints

import pytest

import structgen

NAMES = [
    "Aligned",
    "AlignedInfo",
    "Arguments",
    "AsyncStream",
    "BM25",
    "BudgetError",
    "CacheInfo",
    "CacheUse",
    "Classification",
    "ClassifiedFields",
    "Classifier",
    "CompiledSchema",
    "DesignWarning",
    "Entry",
    "EnvironmentFault",
    "Evaluated",
    "Evaluation",
    "Explanation",
    "Finding",
    "Generation",
    "GenerationError",
    "Generator",
    "HFModel",
    "IllegalTokenError",
    "InvalidTextError",
    "LabelAnswer",
    "LabelScore",
    "LanguageModel",
    "Level",
    "LimitError",
    "Limits",
    "MissingDependencyError",
    "ModelError",
    "MultiLabel",
    "MultiLabelClassifier",
    "Nearest",
    "OneOf",
    "OptionError",
    "PromptTooLongError",
    "RankedLabel",
    "Regex",
    "SchemaError",
    "Sequence",
    "Session",
    "SeveralEvaluated",
    "SeveralEvaluation",
    "SomeOf",
    "Stream",
    "StreamEvent",
    "StructgenError",
    "Taxonomy",
    "Text",
    "Thinking",
    "Thought",
    "Timings",
    "TokenScore",
    "Tool",
    "ToolCall",
    "Tools",
    "UnsatisfiableSchemaError",
    "UnsupportedSchemaError",
    "Usage",
    "UsageError",
    "ValidationFailedError",
    "Verification",
    "Vocabulary",
    "VocabularyError",
    "WarmedSchema",
    "WarmupReport",
    "agenerate",
    "arguments_model",
    "arguments_of",
    "astream",
    "cache_info",
    "check",
    "classify",
    "classify_fields",
    "classify_file",
    "classify_many",
    "clear_cache",
    "compile",
    "default_lm",
    "evaluate",
    "evaluate_several",
    "explain",
    "fill_masks",
    "generate",
    "generate_as_completed",
    "generate_many",
    "lint",
    "load",
    "stream",
    "structured",
    "tools",
    "warmup",
]


def test_the_public_names_are_these():
    assert structgen.__all__ == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_resolves_and_is_documented(name):
    value = getattr(structgen, name)
    assert inspect.getdoc(value)
    assert value.__module__.startswith("structgen.")
    assert not value.__doc__.startswith(f"{name}("), "a docstring that dataclass made up"


def test_names_are_listed_before_they_are_loaded():
    assert set(NAMES) <= set(dir(structgen))


def test_type_checkers_see_the_same_names():
    source = Path(structgen.__file__).read_text(encoding="utf-8")
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    imported = [alias for node in ast.walk(blocks[0]) if isinstance(node, ast.ImportFrom)
                for alias in node.names]  # fmt: skip
    assert sorted(alias.asname or "" for alias in imported) == NAMES
    assert all(alias.asname == alias.name for alias in imported), "re-exports need `as`"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'generat'"):
        structgen.generat  # noqa: B018


def test_the_version_is_the_packages():
    import tomllib

    text = (Path(structgen.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["project"]["version"] == structgen.__version__


@pytest.mark.parametrize("name", sorted(structgen.__all__))
def test_annotations_are_known_at_run_time(name):
    public = getattr(structgen, name)
    parts = [public, *vars(public).values()] if isinstance(public, type) else [public]
    for part in parts:
        if inspect.isfunction(part) and part.__module__.startswith("structgen"):
            get_type_hints(part)
