"""Measuring configurations of a classifier on labelled texts, side by side."""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from structgen.api import default_lm
from structgen.batch import BATCH_SIZE, OnError, check_batch_options
from structgen.classification import metrics
from structgen.classification.classifier import Classifier
from structgen.classification.metrics import ReliabilityBin
from structgen.classification.options import ClassifierOptions
from structgen.classification.prompting import check_texts
from structgen.classification.results import Classification
from structgen.errors import MissingDependencyError, OptionError, UsageError
from structgen.runtime.lm import LanguageModel
from structgen.taxonomy import Taxonomy

TOP = (3, 5)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One configuration on N texts; what failed has no part in the figures.

    Example: `Evaluated(name="raw", accuracy=0.61, macro_f1=0.58, ...)`
    """

    name: str
    n_texts: int
    """Texts that were classified."""
    accuracy: float
    """A text on which the classifier abstains counts as wrong."""
    macro_f1: float
    top_k: Mapping[int, float]
    """Share of texts whose right label is among the first k."""
    calibration_error: float
    """Expected calibration error of the first label's probability."""
    log_loss: float
    """Mean of minus the log-probability of the right label, in nats; a label that is not in the
    ranking counts with a probability of 1e-12."""
    abstained: float
    """Share of texts without a label."""
    valid_mass: float
    """Mean."""
    seconds: float
    """Mean for a text, everything included."""
    forward_passes: float
    """Mean for a text."""
    reliability: tuple[ReliabilityBin, ...]
    confusion: Mapping[tuple[str, str | None], int]
    """By (expected, predicted), most frequent first."""
    results: tuple[Classification, ...]
    """Of the texts that were classified, in their order."""
    errors: Mapping[int, UsageError]
    """By the row's index: texts that could not be asked about, where errors are returned."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Configurations compared on the same texts; printing it shows a table."""

    configurations: tuple[Evaluated, ...]

    @property
    def best(self) -> Evaluated:
        """The configuration with the highest accuracy; of equal ones the first."""
        return max(self.configurations, key=lambda one: one.accuracy)

    def table(self) -> str:
        """The figures as a Markdown table."""
        head = ["configuration", "accuracy", "macro F1", "top 3", "top 5", "calibration error"]
        head += ["log loss", "abstained", "failed", "valid mass", "s / text", "passes"]
        rows = [head, ["---"] * len(head)]
        for one in self.configurations:
            figures = [one.accuracy, one.macro_f1, one.top_k[3], one.top_k[5]]
            figures += [one.calibration_error, one.log_loss, one.abstained]
            cells = [f"{figure:.3f}" for figure in figures]
            cells += [str(len(one.errors))]
            cells += [f"{one.valid_mass:.2g}", f"{one.seconds:.3f}", f"{one.forward_passes:.1f}"]
            rows.append([one.name, *cells])
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def __str__(self) -> str:
        return self.table()

    def plot(self, path: str | Path) -> None:
        """Draw the reliability of every configuration to a PNG file.

        Raises:
            MissingDependencyError: matplotlib, of the extra `bench`, is not installed.
        """
        try:
            figures: Any = importlib.import_module("matplotlib.figure")
        except ImportError as error:
            raise MissingDependencyError(
                "matplotlib", "a reliability plot", "pip install 'structgen-toolkit[bench]'"
            ) from error
        figure = figures.Figure(figsize=(5, 5))
        axes: Any = figure.subplots()
        axes.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle="--")
        for one in self.configurations:
            points = [(b.confidence, b.accuracy) for b in one.reliability]
            axes.plot(*zip(*points, strict=True), marker="o", label=one.name)
        axes.set(xlabel="probability of the first label", ylabel="share that is right")
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.legend()
        figure.savefig(path, dpi=120, bbox_inches="tight")


def evaluate(
    labels: Taxonomy | Iterable[str] | Any,
    rows: Iterable[tuple[str, str] | Mapping[str, Any]],
    configurations: Mapping[str, ClassifierOptions] | None = None,
    *,
    lm: LanguageModel | None = None,
    batch_size: int = BATCH_SIZE,
    on_error: OnError = "raise",
    progress: bool | None = None,
) -> Evaluation:
    """Classify labelled texts with each configuration, and measure.

    Example: `print(evaluate(topics, rows, {"raw": {}, "described": {"descriptions": True}}))`

    Args:
        rows: pairs of a text and its label, or dicts with `text` and `label`.
        configurations: options of `Classifier` by name; None is the usual ones, called "raw".
        lm: a language model, see `structgen.load`; None for the default one.
        on_error: "return" leaves out texts that cannot be asked about, such as those that are too
            long, and counts them; "raise" raises the first error, as it does where all texts fail.

    Raises:
        OptionError: there are no rows, or one has a label that the taxonomy has not.
    """
    check_batch_options(batch_size, on_error, progress)
    taxonomy = labels if isinstance(labels, Taxonomy) else Taxonomy(labels)
    texts, expected = _checked_rows(rows, taxonomy)
    made = {"raw": ClassifierOptions()} if configurations is None else configurations
    if not made:
        raise OptionError("configurations is empty; pass None for the usual options")
    lm = lm or default_lm()
    # All are made before any is run, so that a wrong option costs no time.
    each = {name: Classifier(taxonomy, lm, **options) for name, options in made.items()}
    found: list[Evaluated] = []
    for name, classifier in each.items():
        started = time.perf_counter()
        results = classifier.many(
            texts, batch_size=batch_size, on_error=on_error, progress=progress
        )
        seconds = (time.perf_counter() - started) / len(texts)
        found.append(_measured(name, results, expected, seconds))
    return Evaluation(tuple(found))


def _measured(
    name: str,
    found: Sequence[Classification | UsageError],
    labels: Sequence[str],
    seconds: float,
) -> Evaluated:
    errors = {row: one for row, one in enumerate(found) if isinstance(one, UsageError)}
    if len(errors) == len(found):
        errors[0].add_note(f"structgen: all texts failed in the configuration {name!r}")
        raise errors[0]
    results = [one for one in found if not isinstance(one, UsageError)]
    expected = [label for row, label in enumerate(labels) if row not in errors]
    predicted = [found.label for found in results]
    bins = metrics.reliability(results, expected)
    n_texts = len(results)
    return Evaluated(
        name=name,
        n_texts=n_texts,
        accuracy=metrics.accuracy(predicted, expected),
        macro_f1=metrics.macro_f1(predicted, expected),
        top_k={k: metrics.top_k_accuracy(results, expected, k) for k in TOP},
        calibration_error=metrics.calibration_error(bins),
        log_loss=math.fsum(map(_loss, results, expected)) / n_texts,
        abstained=sum(label is None for label in predicted) / n_texts,
        valid_mass=math.fsum(found.valid_mass for found in results) / n_texts,
        seconds=seconds,
        forward_passes=sum(found.forward_passes for found in results) / n_texts,
        reliability=bins,
        confusion=metrics.confusion(predicted, expected),
        results=tuple(results),
        errors=errors,
    )


def _loss(found: Classification, label: str) -> float:
    share = next((one.probability for one in found.ranking if one.label == label), 0.0)
    return -math.log(max(share, 1e-12))


def _checked_rows(
    rows: Iterable[tuple[str, str] | Mapping[str, Any]], taxonomy: Taxonomy
) -> tuple[list[str], list[str]]:
    texts: list[str] = []
    expected: list[str] = []
    known = set(taxonomy.labels)
    for index, row in enumerate(rows):
        pair = (row.get("text"), row.get("label")) if isinstance(row, Mapping) else tuple(row)
        if len(pair) != 2 or pair[1] not in known:
            raise OptionError(f"row {index} is no pair of a text and a known label: {row!r:.200}")
        texts.append(pair[0])  # pyright: ignore[reportArgumentType]  # checked below
        expected.append(pair[1])
    if not texts:
        raise OptionError("there are no rows to evaluate")
    return check_texts(texts), expected
