"""The options of a classifier, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict, get_args

from structgen.classification.calibration import Calibration
from structgen.classification.finishing import LengthRule
from structgen.classification.scoring import Tokenization
from structgen.classification.shortlist import Retriever
from structgen.classification.walk import Ending
from structgen.errors import OptionError
from structgen.prompts import Prompt
from structgen.taxonomy import Taxonomy

Strategy: TypeAlias = Literal["auto", "full", "search", "drill"]
"""`full` reads every label, `search` the most probable ones, `drill` goes down a hierarchy level by
level. `auto` is `full` up to MOST_FULL labels, and `search` above."""

MOST_FULL = 1000
NONE_OF_THESE = "none of these"


class ClassifierOptions(TypedDict, total=False):
    """The options of `Classifier`."""

    instructions: str
    examples: Iterable[tuple[str, str]]
    prompt: Callable[[str], Prompt] | None
    list_labels: bool | None
    descriptions: bool
    index: bool
    none_of_these: str | bool | None
    strategy: Strategy
    top_k: int | None
    max_passes: int
    max_open_mass: float
    beam: int
    tokenization: Tokenization
    ending: Ending | None
    length: LengthRule
    calibrate: Calibration | Sequence[str] | None
    shortlist: Retriever | Literal["bm25"] | None
    shortlist_size: int
    min_probability: float
    min_valid_mass: float
    max_pass_tokens: int


def check_one_of(name: str, value: object, kind: object) -> None:
    """Refuse what is none of a `Literal`'s values."""
    if value not in get_args(kind):
        shown = ", ".join(map(repr, get_args(kind)))
        raise OptionError(f"{name}={value!r} is unknown; use one of {shown}")


def check_number(name: str, value: object, low: float, high: float) -> float:
    """A number between bounds."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or math.isnan(value) or not low <= value <= high:  # pyright: ignore[reportOperatorIssue, reportArgumentType]
        raise OptionError(f"{name}={value!r} must be a number from {low} to {high}")
    return float(value)  # pyright: ignore[reportArgumentType]


def check_whole(name: str, value: object) -> int:
    """A whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError(f"{name}={value!r} must be a whole number above 0")
    return value


def check_flag(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise OptionError(f"{name}={value!r} must be True or False")
    return value


def check_together(
    strategy: Strategy, *, calibrates: bool, length: LengthRule, any_way: bool
) -> None:
    """Refuse options that contradict each other."""
    if strategy != "full" and calibrates:
        raise OptionError(
            f"calibrate needs every label's probability, and strategy={strategy!r} does not look "
            f"at all of them; pass strategy='full', which is usual up to {MOST_FULL} labels, or a "
            "shortlist"
        )
    if strategy == "search" and length == "mean":
        raise OptionError("length='mean' has no bounds to search by; pass strategy='full'")
    if any_way and strategy != "search":
        raise OptionError(
            f"tokenization='any' sums over ways to write a label, by strategy='search'; "
            f"strategy={strategy!r} reads canonical tokens"
        )
    if any_way and length == "mean":
        raise OptionError("length='mean' needs tokenization='canonical'")


def check_drill(used: Mapping[str, object], length: LengthRule) -> None:
    """Refuse what going down a hierarchy has no use for: it asks questions of its own."""
    named = sorted(name for name, value in used.items() if value is not None and value is not False)
    if length != "sum":
        named.append("length")
    if named:
        raise OptionError(f"strategy='drill' asks its own questions and does not take {named}")


def chosen_strategy(strategy: Strategy, n_labels: int, tokenization: Tokenization) -> Strategy:
    """The strategy that `auto` stands for."""
    if strategy != "auto":
        return strategy
    return "search" if n_labels > MOST_FULL or tokenization == "any" else "full"


def ending_of(ending: Ending | None, tokenization: Tokenization) -> Ending:
    """The rule that None stands for; sums over ways to write a label all need its end."""
    if ending == "open" and tokenization == "any":
        raise OptionError("ending='open' needs tokenization='canonical'; pass ending='end'")
    return ending or ("end" if tokenization == "any" else "open")


def way_out_of(
    none_of_these: str | bool | None, taxonomy: Taxonomy, *, has_shortlist: bool
) -> str | None:
    """The label that stands for no label; a shortlist has one unless it is switched off."""
    if none_of_these is None:
        none_of_these = has_shortlist
    if none_of_these is False:
        return None
    text = NONE_OF_THESE if none_of_these is True else none_of_these
    if not isinstance(text, str) or not text.strip() or text in {*taxonomy.labels, *taxonomy.texts}:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(
            f"none_of_these={none_of_these!r} must be True, False or a text that is no label"
        )
    return text
