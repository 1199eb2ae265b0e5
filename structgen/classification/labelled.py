"""Rows of a text and all labels that it has, as people write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from structgen.classification.prompting import check_texts
from structgen.errors import OptionError
from structgen.taxonomy import Taxonomy

LabelledRow: TypeAlias = tuple[str, Iterable[str]] | Mapping[str, Any]
"""A text and its labels: a pair, or a dict with `text` and `labels`."""

SHOWN = 5
"""Labels that an error names."""


def check_rows(
    rows: Iterable[LabelledRow], taxonomy: Taxonomy
) -> tuple[list[str], list[frozenset[str]]]:
    """The texts, and the labels of each.

    Example: `check_rows([("Thanks!", ["joy"])], taxonomy)` -> `(["Thanks!"], [{"joy"}])`

    Raises:
        OptionError: there are no rows, one is of another form, or has a label that the taxonomy
            has not.
        InvalidTextError: a text is none.
    """
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"rows must be a list of texts with their labels, got {rows!r:.80}")
    known = set(taxonomy.labels)
    texts: list[Any] = []
    expected: list[frozenset[str]] = []
    for index, row in enumerate(rows):
        text, labels = _parts(row, index)
        unknown = sorted(labels - known)
        if unknown:
            raise OptionError(
                f"row {index} has labels that are not in the taxonomy: {unknown[:SHOWN]}"
            )
        texts.append(text)
        expected.append(labels)
    if not texts:
        raise OptionError("there are no rows; pass texts with their labels")
    return check_texts(texts), expected


def _parts(row: object, index: int) -> tuple[object, frozenset[str]]:
    """The text and the labels of one row."""
    if isinstance(row, Mapping) and {"text", "labels"} <= set(row):  # pyright: ignore[reportUnknownArgumentType]
        text, labels = row["text"], row["labels"]  # pyright: ignore[reportUnknownVariableType]
    elif isinstance(row, tuple | list) and len(row) == 2:  # pyright: ignore[reportUnknownArgumentType]
        text, labels = row  # pyright: ignore[reportUnknownVariableType]
    else:
        raise OptionError(
            f"row {index} must be a pair of a text and its labels, or a dict with 'text' and "
            f"'labels', got {row!r:.200}"
        )
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise OptionError(f"the labels of row {index} must be a list of labels, got {labels!r:.80}")
    found = list[Any](labels)  # pyright: ignore[reportUnknownArgumentType]
    for label in found:
        if not isinstance(label, str):
            raise OptionError(f"row {index} has a label that is no text: {label!r:.80}")
    return text, frozenset(found)  # pyright: ignore[reportUnknownVariableType]
