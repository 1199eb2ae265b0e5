"""Texts that cannot be asked about."""

from __future__ import annotations

import pytest

from structgen.classification.api import classify_many
from structgen.classification.classifier import Classifier
from structgen.classification.multi import MultiLabelClassifier
from structgen.classification.results import Classification, MultiLabel
from structgen.errors import InvalidTextError, ModelError, OptionError, PromptTooLongError
from structgen.testing import RandomLM
from tests.classification.examples import LABELS, TREE, VOCABULARY


def test_wrong_texts_are_named(lm):
    classifier = Classifier(LABELS, lm)
    with pytest.raises(InvalidTextError, match="text 1 is int"):
        classifier.many(["a", 1])
    with pytest.raises(InvalidTextError, match="not valid Unicode"):
        classifier("\ud800")
    with pytest.raises(OptionError, match="list of texts"):
        classifier.many("abc")
    with pytest.raises(OptionError, match="drill"):
        Classifier(LABELS, lm, strategy="drill")("x")
    with pytest.raises(OptionError, match="lm must be"):
        Classifier(LABELS, "gpt2")


def test_a_prompt_that_is_too_long_is_refused():
    lm = RandomLM(VOCABULARY, context_length=300)
    with pytest.raises(PromptTooLongError):
        Classifier(LABELS, lm)("word " * 100)


def later(text, k):
    yield from ()
    raise ValueError("the index is gone")


@pytest.mark.parametrize(
    ("shortlist", "problem"),
    [
        (lambda text, k: {}[text], "raised KeyError"),
        (later, "later returned .*: ValueError: the index is gone"),
        (lambda text, k: [["a"]], "no list of labels"),
        (lambda text, k: LABELS[0], "no list of labels"),
        (lambda text, k: None, "no list of labels"),
    ],
)
def test_a_shortlist_that_fails_is_no_fault_of_the_text(lm, shortlist, problem):
    classifier = Classifier(LABELS, lm, shortlist=shortlist)
    with pytest.raises(OptionError, match=f"the shortlist function .*{problem}"):
        classifier.many(["a text"], on_error="return", progress=False)


LONG = "word " * 100
SHORT = ["a text", "another", "and a third"]


@pytest.fixture
def short_lm() -> RandomLM:
    return RandomLM(VOCABULARY, 3, context_length=300)


@pytest.mark.parametrize(
    "options",
    [{}, {"calibrate": "content_free"}, {"calibrate": "batch"}, {"strategy": "search"},
     {"shortlist": lambda text, k: LABELS[: 1 + len(text) % 3]}],
)  # fmt: skip
@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_the_others_get_what_they_get_without_a_text_that_is_too_long(
    short_lm, options, batch_size
):
    classifier = Classifier(LABELS, short_lm, **options)
    alone = classifier.many(SHORT)
    texts = [LONG, SHORT[0], LONG, *SHORT[1:], LONG]
    found = classifier.many(texts, batch_size=batch_size, on_error="return")
    assert [isinstance(one, PromptTooLongError) for one in found] == [
        text == LONG for text in texts
    ]
    for one, expected in zip(
        [one for one in found if isinstance(one, Classification)], alone, strict=True
    ):
        assert one.label == expected.label
        assert one.probability == pytest.approx(expected.probability, abs=1e-6)


def test_drilling_down_keeps_the_other_texts_too():
    lm = RandomLM(VOCABULARY, 3, context_length=400)
    classifier = Classifier(TREE, lm, strategy="drill")
    long, short = classifier.many([LONG, "a"], on_error="return")
    assert isinstance(long, PromptTooLongError)
    assert (short.label, short.probability) == (classifier("a").label, classifier("a").probability)


def test_all_texts_may_be_too_long(short_lm):
    for calibrate in (None, "batch"):
        found = Classifier(LABELS, short_lm, calibrate=calibrate).many([LONG], on_error="return")
        assert [type(one) for one in found] == [PromptTooLongError]


def test_an_error_says_which_text_it_was(short_lm):
    classifier = Classifier(LABELS, short_lm)
    with pytest.raises(PromptTooLongError) as caught:
        classifier.many(["a", "b", LONG], batch_size=2)
    assert caught.value.__notes__ == ["structgen: this was text 2"]
    with pytest.raises(PromptTooLongError) as caught:
        classifier(LONG)
    assert not hasattr(caught.value, "__notes__")
    with pytest.raises(OptionError, match="on_error"):
        classifier.many(["a"], on_error="ignore")


def test_what_is_no_text_is_an_error_of_its_own(short_lm):
    found = classify_many(["a", 3, "\ud800"], LABELS, lm=short_lm, on_error="return")  # pyright: ignore[reportArgumentType]
    assert [type(one) for one in found[1:]] == [InvalidTextError, InvalidTextError]
    assert isinstance(found[0], Classification)
    with pytest.raises(InvalidTextError, match="text 1 is int"):
        classify_many(["a", 3], LABELS, lm=short_lm)  # pyright: ignore[reportArgumentType]


def test_what_all_texts_share_is_raised(short_lm):
    class Broken(RandomLM):
        def logits(self, token_ids):
            return super().logits(token_ids) * float("nan")

    with pytest.raises(ModelError, match="finite"):
        Classifier(LABELS, Broken(VOCABULARY)).many(["a"], on_error="return")


@pytest.mark.parametrize("method", ["independent", "generated"])
def test_several_labels_keep_the_other_texts_too(method):
    lm = RandomLM(VOCABULARY, 3, context_length=300)
    classifier = MultiLabelClassifier(LABELS, lm, method=method)
    found = classifier.many(["a", LONG, "\ud800", "b"], on_error="return", progress=False)
    assert [type(one) for one in found] == [
        MultiLabel, PromptTooLongError, InvalidTextError, MultiLabel,
    ]  # fmt: skip
    good = [one for one in found if isinstance(one, MultiLabel)]
    for one, alone in zip(good, classifier.many(["a", "b"]), strict=True):
        assert (one.labels, one.answers) == (alone.labels, alone.answers)
    with pytest.raises(PromptTooLongError):
        classifier.many(["a", LONG])
