"""Measuring classifiers of several labels on labelled texts, side by side."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from structgen.batch import BATCH_SIZE, OnError, check_batch_options
from structgen.classification import metrics
from structgen.classification.labelled import LabelledRow, check_rows
from structgen.classification.multi import MultiLabelClassifier
from structgen.classification.results import MultiLabel
from structgen.errors import OptionError, UsageError


@dataclass(frozen=True, slots=True)
class SeveralEvaluated:
    """One classifier of several labels on N texts; what failed has no part in the figures.

    Example: `SeveralEvaluated(name="raw", micro_f1=0.31, macro_f1=0.22, ...)`
    """

    name: str
    n_texts: int
    """Texts that were classified."""
    micro_f1: float
    """Over all labels of all texts together."""
    macro_f1: float
    """Mean over the labels that occur, as given or as right."""
    subset_accuracy: float
    """Share of texts all of whose labels were found, and no other."""
    n_labels: float
    """Labels that a text was given, on average."""
    seconds: float
    """Mean for a text, everything included."""
    forward_passes: float
    """Mean for a text."""
    results: tuple[MultiLabel, ...]
    """Of the texts that were classified, in their order."""
    errors: Mapping[int, UsageError]
    """By the row's index: texts that could not be asked about, where errors are returned."""


@dataclass(frozen=True, slots=True)
class SeveralEvaluation:
    """Classifiers of several labels compared on the same texts; printing it shows a table."""

    classifiers: tuple[SeveralEvaluated, ...]
    baseline: SeveralEvaluated
    """What is reached without reading: every text gets the one label that most of them have. Of
    texts with which no classifier failed; where there are none, of all."""
    expected_labels: float
    """Labels that such a text has, on average."""

    @property
    def best(self) -> SeveralEvaluated:
        """The classifier with the highest micro F1; of equal ones the first."""
        return max(self.classifiers, key=lambda one: one.micro_f1)

    def table(self) -> str:
        """The figures as a Markdown table, the baseline last."""
        head = ["classifier", "micro F1", "macro F1", "all right", "labels / text"]
        rows = [[*head, "failed", "s / text", "passes"], ["---"] * 8]
        for one in (*self.classifiers, self.baseline):
            cells = [f"{one.micro_f1:.3f}", f"{one.macro_f1:.3f}", f"{one.subset_accuracy:.3f}"]
            cells += [f"{one.n_labels:.2f}", str(len(one.errors)), f"{one.seconds:.3f}"]
            rows.append([_cell(one.name), *cells, f"{one.forward_passes:.1f}"])
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def __str__(self) -> str:
        return self.table()


def evaluate_several(
    classifiers: Mapping[str, MultiLabelClassifier],
    rows: Iterable[LabelledRow],
    *,
    batch_size: int = BATCH_SIZE,
    on_error: OnError = "raise",
    progress: bool | None = None,
) -> SeveralEvaluation:
    """Find the labels of labelled texts with each classifier, and measure.

    Example: `print(evaluate_several({"raw": classifier, "fitted": fitted}, rows))`

    Args:
        classifiers: by name, all with the same labels.
        rows: pairs of a text and its labels, or dicts with `text` and `labels`.
        on_error: "return" leaves out texts that cannot be asked about, such as those that are too
            long, and counts them; "raise" raises the first error, as it does where all texts fail.

    Raises:
        OptionError: there are no rows or no classifiers, a name is no text, one has other labels
            than the first, a row has a label that they have not, or too few texts could be read for
            `calibrate="batch"`.
    """
    check_batch_options(batch_size, on_error, progress)
    first = _checked(classifiers)
    texts, expected = check_rows(rows, first.taxonomy)
    found: list[SeveralEvaluated] = []
    for name, classifier in classifiers.items():
        started = time.perf_counter()
        results = classifier.many(
            texts, batch_size=batch_size, on_error=on_error, progress=progress
        )
        seconds = (time.perf_counter() - started) / len(texts)
        found.append(_measured(name, results, expected, seconds))
    failed = set[int]().union(*(one.errors for one in found))
    read = [labels for row, labels in enumerate(expected) if row not in failed] or expected
    counts = Counter(label for labels in read for label in labels)
    frequent = max(first.taxonomy.labels, key=lambda label: counts[label])
    always = [MultiLabel((frequent,), (), 0)] * len(read)
    return SeveralEvaluation(
        tuple(found),
        _measured(f"always {frequent!r}", always, read, 0.0),
        counts.total() / len(read),
    )


def _cell(name: str) -> str:
    """A name as a cell of a Markdown table."""
    return " ".join(name.splitlines()).replace("|", "\\|")


def _checked(classifiers: Mapping[str, MultiLabelClassifier]) -> MultiLabelClassifier:
    """The first classifier; all have its labels."""
    if not isinstance(classifiers, Mapping) or not classifiers:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError("classifiers must be a dict of classifiers by name, with at least one")
    first = next(iter(classifiers.values()))
    for name, one in classifiers.items():
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"classifiers has a name that is no text: {name!r:.80}")
        if not isinstance(one, MultiLabelClassifier):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"classifiers[{name!r}] is no MultiLabelClassifier: {one!r:.80}")
        if set(one.taxonomy.labels) != set(first.taxonomy.labels):
            raise OptionError(f"classifiers[{name!r}] has other labels than the first classifier")
    return first


def _measured(
    name: str,
    found: Sequence[MultiLabel | UsageError],
    labels: Sequence[frozenset[str]],
    seconds: float,
) -> SeveralEvaluated:
    errors = {row: one for row, one in enumerate(found) if isinstance(one, UsageError)}
    if len(errors) == len(found):
        errors[0].add_note(f"structgen: all texts failed with the classifier {name!r}")
        raise errors[0]
    results = [one for one in found if not isinstance(one, UsageError)]
    expected = [one for row, one in enumerate(labels) if row not in errors]
    predicted = [one.labels for one in results]
    return SeveralEvaluated(
        name=name,
        n_texts=len(results),
        micro_f1=metrics.micro_f1_of_sets(predicted, expected),
        macro_f1=metrics.macro_f1_of_sets(predicted, expected),
        subset_accuracy=metrics.subset_accuracy(predicted, expected),
        n_labels=sum(map(len, predicted)) / len(results),
        seconds=seconds,
        forward_passes=sum(one.forward_passes for one in results) / len(results),
        results=tuple(results),
        errors=errors,
    )
