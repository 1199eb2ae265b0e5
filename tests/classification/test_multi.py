"""Several labels for one text."""

from __future__ import annotations

import math

import numpy as np
import pytest

from structgen.classification.multi import MultiLabelClassifier
from structgen.classification.results import MultiLabel
from structgen.errors import InvalidTextError, OptionError, PromptTooLongError
from structgen.testing import RandomLM
from tests.classification import brute_force
from tests.classification.examples import LABELS, VOCABULARY

ROWS = [("a", ["sales"]), ("b", ["billing", "bill"]), {"text": "c", "labels": []}, ("d", {"bill"})]
TEXTS = ["a", "b", "c", "d"]


@pytest.mark.parametrize("method", ["independent", "generated"])
def test_several_labels(lm, method):
    found = MultiLabelClassifier(LABELS, lm, method=method).many(["a", "b", "c"])
    for one in found:
        assert len(set(one.labels)) == len(one.labels)
        assert set(one.labels) <= set(LABELS)
        assert len(one.answers) == (len(LABELS) if method == "independent" else 0)
    if method == "independent":
        everything = MultiLabelClassifier(LABELS, lm, threshold=0.0)("a")
        assert everything.labels == tuple(LABELS)
        each = dict.fromkeys(LABELS, 1.0) | {"sales": 0.0}
        assert "sales" in MultiLabelClassifier(LABELS, lm, threshold=each)("a").labels


def test_yes_is_weighed_against_no(lm):
    classifier = MultiLabelClassifier(LABELS, lm)
    for answer in classifier("a").answers:
        ids = lm.encode_prompt(classifier.render("a"))
        yes, no, asked = (sum(math.exp(alone(lm, ids, f"{answer.label}:{word}")) for word in words)
                          for words in ((" Yes", " yes"), (" No", " no"), ("",)))  # fmt: skip
        assert answer.probability == pytest.approx(yes / (yes + no), rel=1e-4)
        assert answer.valid_mass == pytest.approx((yes + no) / asked, rel=1e-4)


def alone(lm: RandomLM, prompt_ids: list[int], text: str) -> float:
    """The log-probability of one text, whatever follows it."""
    assert VOCABULARY.encode is not None
    return brute_force.log_prob(lm, prompt_ids, VOCABULARY.encode(text), end=False)


def test_all_questions_of_all_texts_are_one_tree_behind_one_reading(lm):
    classifier = MultiLabelClassifier(LABELS, lm)
    classifier.many(["a", "b"])  # reads what prompts share
    lm.chunks.clear()
    found = classifier.many(["some text", "another one"])
    first, *rest = lm.chunks
    assert len(first) == 2, "a row for each text"
    assert sum(map(len, first)) < 40, "without the instructions"
    assert len({one.forward_passes for one in found}) == 1
    alone = [classifier(text) for text in ("some text", "another one")]
    assert [one.labels for one in found] == [one.labels for one in alone]
    assert rest, "the questions are read behind it"


def shares(classifier: MultiLabelClassifier, texts: list[str]) -> np.ndarray:
    found = classifier.many(texts, batch_size=3)
    return np.array([[one.probability for one in text.answers] for text in found])


def divided(share: np.ndarray, prior: np.ndarray) -> np.ndarray:
    yes, no = share / prior, (1 - share) / (1 - prior)
    return yes / (yes + no)


@pytest.mark.parametrize(
    ("calibrate", "neutral"),
    [(True, ["N/A", "", "[MASK]"]), ("content_free", ["N/A", "", "[MASK]"]), (["x"], ["x"]),
     ("batch", TEXTS)],
)  # fmt: skip
def test_calibration_divides_yes_and_no_by_their_means(lm, calibrate, neutral):
    plain = MultiLabelClassifier(LABELS, lm)
    prior = shares(plain, neutral).mean(0)
    calibrated = MultiLabelClassifier(LABELS, lm, calibrate=calibrate)
    expected = divided(shares(plain, TEXTS), prior)
    assert shares(calibrated, TEXTS) == pytest.approx(expected, rel=1e-4)
    assert calibrated.compares_texts == (calibrate == "batch")
    known = MultiLabelClassifier(
        LABELS, lm, calibrate=dict(zip(LABELS, prior.tolist(), strict=True))
    )
    assert shares(known, TEXTS) == pytest.approx(expected, rel=1e-4)
    assert known.priors == pytest.approx(dict(zip(LABELS, prior.tolist(), strict=True)))


def test_texts_that_fail_have_no_part_in_the_mean():
    lm = RandomLM(VOCABULARY, 3, context_length=300)
    classifier = MultiLabelClassifier(LABELS, lm, calibrate="batch")
    found = classifier.many(["a", "word " * 100, "b"], on_error="return")
    assert isinstance(found[1], PromptTooLongError)
    assert isinstance(found[0], MultiLabel)
    assert isinstance(found[2], MultiLabel)
    alone = classifier.many(["a", "b"])
    assert [found[0].answers, found[2].answers] == [one.answers for one in alone]


def test_one_text_is_not_compared_with_itself():
    lm = RandomLM(VOCABULARY, 3, context_length=300)
    classifier = MultiLabelClassifier(LABELS, lm, calibrate="batch")
    with pytest.raises(OptionError, match="classify several together"):
        classifier("a")
    with pytest.raises(OptionError, match="priors by label"):
        classifier.many(["a"])
    with pytest.raises(OptionError, match="only one could be read"):
        classifier.many(["a", "word " * 100], on_error="return")
    with pytest.raises(OptionError, match="only one could be read"):
        classifier.fit_thresholds(ROWS[:1])
    assert classifier.many([]) == []
    (failed,) = classifier.many(["word " * 100], on_error="return")
    assert isinstance(failed, PromptTooLongError)
    fitted = classifier.fit_thresholds(ROWS)
    assert len(fitted("a").answers) == len(LABELS), "its priors are known"


@pytest.mark.parametrize("n_texts", [2, 3, 7])
def test_equal_texts_are_undecided_and_get_no_label(n_texts):
    for seed in range(10):
        classifier = MultiLabelClassifier(LABELS, RandomLM(VOCABULARY, seed), calibrate="batch")
        for one in classifier.many(["hello"] * n_texts, batch_size=2):
            assert [answer.probability for answer in one.answers] == [0.5] * len(LABELS)
            assert one.labels == ()


def test_a_label_applies_above_its_threshold_and_at_none_always(lm):
    shares = {one.label: one.probability for one in MultiLabelClassifier(LABELS, lm)("a").answers}
    assert MultiLabelClassifier(LABELS, lm, threshold=shares)("a").labels == ()
    below = {label: share - 1e-9 for label, share in shares.items()}
    assert MultiLabelClassifier(LABELS, lm, threshold=below)("a").labels == tuple(LABELS)
    never = MultiLabelClassifier(LABELS, lm, calibrate=dict.fromkeys(LABELS, 1.0), threshold=0.0)
    assert never("a").labels == tuple(LABELS)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"method": "both"}, "method"), ({"threshold": 2}, "threshold"),
     ({"threshold": {"a": 1}}, "threshold"), ({"question": "?"}, "label"),
     ({"question": 3}, "label"), ({"calibrate": "pmi"}, "'batch'"), ({"calibrate": 1}, "calibrate"),
     ({"calibrate": np.array(["a", "b"])}, "calibrate=array"),
     ({"calibrate": ["a", "\ud800"]}, "calibrate=.*text 1 is not valid"),
     ({"calibrate": "foo"}, "must be 'content_free', 'batch', True, .* a dict of"),
     ({"question": "\ud800{label}: "}, "question=.*not valid"),
     ({"instructions": "\ud800"}, "instructions=.*not valid"), ({"instructions": 3}, "not str"),
     ({"method": "generated", "threshold": 0.4}, "'generated' does not take threshold,"),
     ({"method": "generated", "threshold": {**dict.fromkeys(LABELS, 0.5), "bill": 0.6}},
      "threshold"),
     ({"method": "generated", "calibrate": True}, "'generated' does not take calibrate,"),
     ({"method": "generated", "question": "Is it {label}? ", "instructions": "Say."},
      "'generated' does not take instructions, question, which is for 'independent'"),
     ({"max_items": 3, "antichain": True}, "'independent' does not take max_items, antichain,"),
     ({"min_items": 1}, "'independent' does not take min_items, which is for 'generated'"),
     ({"calibrate": {"sales": 0.5}}, "each label"), ({"calibrate": []}, "calibrate"),
     ({"calibrate": dict.fromkeys(LABELS, 7)}, "from 0")],
)  # fmt: skip
def test_wrong_options_of_several_labels(lm, options, message):
    with pytest.raises(OptionError, match=message):
        MultiLabelClassifier(LABELS, lm, **options)


def test_usual_values_of_the_other_method_are_none_that_were_given(lm):
    MultiLabelClassifier(LABELS, lm, method="generated", threshold=0.5, calibrate=False)
    MultiLabelClassifier(LABELS, lm, min_items=0, max_items=None, antichain=False)


def test_a_question_tells_labels_apart(lm):
    with pytest.raises(OptionError, match="alike"):
        MultiLabelClassifier(["a", "aYes"], lm, question="{label}")


@pytest.mark.parametrize("calibrate", [None, "batch", "content_free"])
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_fitted_thresholds_make_a_new_classifier(lm, calibrate, average):
    classifier = MultiLabelClassifier(LABELS, lm, calibrate=calibrate)
    before = classifier.thresholds
    fitted = classifier.fit_thresholds(ROWS, average=average, batch_size=3, progress=False)
    assert classifier.thresholds == before == dict.fromkeys(LABELS, 0.5)
    assert classifier.priors is None
    assert not fitted.compares_texts
    assert (fitted.priors is None) == (calibrate is None)
    again = MultiLabelClassifier(
        LABELS, lm, threshold=fitted.thresholds, calibrate=fitted.priors
    ).many(TEXTS)
    assert [one.labels for one in again] == [one.labels for one in fitted.many(TEXTS)]
    assert repr(fitted).startswith("<MultiLabelClassifier ")
    assert (fitted.taxonomy, fitted.lm) == (classifier.taxonomy, lm)


@pytest.mark.parametrize(
    ("rows", "message"),
    [([], "no rows"), ([("a", ["unknown"])], "row 0 has labels"), ([("a", "sales")], "a list"),
     ([("a", [3])], "no text: 3"), (["ab"], "a pair"), ([("a", ["sales"], 1)], "a pair"),
     ([{"text": "a", "label": "sales"}], "'labels'"), ("ab", "rows must be"),
     ({"a": ["sales"]}, "rows must be"), (None, "rows must be"), (5, "rows must be"),
     ([("a", None)], "a list")],
)  # fmt: skip
def test_wrong_rows(lm, rows, message):
    with pytest.raises(OptionError, match=message):
        MultiLabelClassifier(LABELS, lm).fit_thresholds(rows)


def test_wrong_ways_to_fit(lm):
    with pytest.raises(OptionError, match="generated"):
        MultiLabelClassifier(LABELS, lm, method="generated").fit_thresholds(ROWS)
    classifier = MultiLabelClassifier(LABELS, lm)
    with pytest.raises(OptionError, match="average"):
        classifier.fit_thresholds(ROWS, average="weighted")  # pyright: ignore[reportArgumentType]
    with pytest.raises(OptionError, match="on_error"):
        classifier.fit_thresholds(ROWS, on_error="ignore")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidTextError, match="text 0"):
        classifier.fit_thresholds([(3, ["sales"])])  # pyright: ignore[reportArgumentType]


def test_rows_that_cannot_be_asked_about_are_raised_or_left_out():
    lm = RandomLM(VOCABULARY, 3, context_length=300)
    classifier = MultiLabelClassifier(LABELS, lm, calibrate="batch")
    long = ("word " * 100, ["sales"])
    with pytest.raises(PromptTooLongError) as caught:
        classifier.fit_thresholds([long, *ROWS])
    assert caught.value.__notes__ == ["structgen: this was text 0"]
    fitted = classifier.fit_thresholds([long, *ROWS], on_error="return")
    alone = classifier.fit_thresholds(ROWS)
    assert fitted.thresholds == pytest.approx(alone.thresholds)
    assert fitted.priors == pytest.approx(alone.priors)
    with pytest.raises(PromptTooLongError) as caught:
        classifier.fit_thresholds([long], on_error="return")
    assert caught.value.__notes__ == ["structgen: all rows failed"]
