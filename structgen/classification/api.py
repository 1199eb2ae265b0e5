"""One-call functions over `Classifier` and the default model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from structgen.api import default_lm
from structgen.batch import BATCH_SIZE, OnError, check_batch_options
from structgen.classification.prompting import check_texts, refuse_text
from structgen.classification.results import Classification
from structgen.errors import UsageError
from structgen.later import later
from structgen.runtime.lm import LanguageModel
from structgen.taxonomy import Taxonomy

if TYPE_CHECKING:
    import structgen.classification.classifier as handle
    import structgen.classification.options as choices
else:
    handle = later("structgen.classification.classifier")
    choices = later("structgen.classification.options")


def classify(
    text: str,
    labels: Taxonomy | Iterable[str] | Any,
    *,
    lm: LanguageModel | None = None,
    **options: Unpack[choices.ClassifierOptions],
) -> Classification:
    """Which of the labels a text has, and how probable each of them is.

    Example: `classify("My card was charged twice.", ["billing", "sales"]).label` -> `"billing"`

    Args:
        labels: a `Taxonomy`, or anything that makes one.
        lm: a language model, see `structgen.load`; None for the default one.
        options: those of `Classifier`; keep one to classify many texts.
    """
    check_texts([text])
    return _classifier("classify", labels, lm, options)(text)


@overload
def classify_many(
    texts: Iterable[str],
    labels: Taxonomy | Iterable[str] | Any,
    *,
    lm: LanguageModel | None = None,
    batch_size: int = BATCH_SIZE,
    on_error: Literal["raise"] = "raise",
    progress: bool | None = None,
    **options: Unpack[choices.ClassifierOptions],
) -> list[Classification]: ...
@overload
def classify_many(
    texts: Iterable[str],
    labels: Taxonomy | Iterable[str] | Any,
    *,
    lm: LanguageModel | None = None,
    batch_size: int = BATCH_SIZE,
    on_error: Literal["return"],
    progress: bool | None = None,
    **options: Unpack[choices.ClassifierOptions],
) -> list[Classification | UsageError]: ...
def classify_many(
    texts: Iterable[str],
    labels: Taxonomy | Iterable[str] | Any,
    *,
    lm: LanguageModel | None = None,
    batch_size: int = BATCH_SIZE,
    on_error: OnError = "raise",
    progress: bool | None = None,
    **options: Unpack[choices.ClassifierOptions],
) -> list[Classification] | list[Classification | UsageError]:
    """The same for many texts, in their order; what their prompts share is read once.

    Args:
        batch_size: texts that the model reads at a time.
        on_error: "return" puts the error of a text that cannot be asked about, such as one that is
            too long, in the place of its classification; "raise" raises the first.
        progress: a progress bar; None shows one where standard error is a terminal.
    """
    check_batch_options(batch_size, on_error, progress)
    refuse_text(texts)
    if on_error == "raise":  # before a model is loaded
        texts = check_texts(texts)
    found = _classifier("classify_many", labels, lm, options)
    return found.many(texts, batch_size=batch_size, on_error=on_error, progress=progress)


def _classifier(
    caller: str, labels: Any, lm: LanguageModel | None, options: choices.ClassifierOptions
) -> handle.Classifier:
    """The handle; labels are checked before a model is loaded."""
    for name in options.keys() - choices.ClassifierOptions.__annotations__.keys():
        raise TypeError(f"{caller}() got an unexpected keyword argument {name!r}")
    taxonomy = labels if isinstance(labels, Taxonomy) else Taxonomy(labels)
    return handle.Classifier(taxonomy, lm or default_lm(), **options)
