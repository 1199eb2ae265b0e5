"""Classifiers of several labels compared on labelled texts."""

from __future__ import annotations

import pytest

from structgen.classification import metrics
from structgen.classification.multi import MultiLabelClassifier
from structgen.classification.several import evaluate_several
from structgen.errors import OptionError, PromptTooLongError
from structgen.testing import RandomLM
from tests.classification.examples import LABELS, VOCABULARY

ROWS = [("a", ["sales"]), ("b", ["sales", "bill"]), {"text": "c", "labels": []}]


def test_figures_of_sets_by_hand():
    predicted = [("a",), ("a", "b"), (), ("c",)]
    expected = [{"a"}, {"b"}, set[str](), {"d"}]
    # right: a, b; given: a a b c; wanted: a b d
    assert metrics.micro_f1_of_sets(predicted, expected) == pytest.approx(4 / 7)
    assert metrics.macro_f1_of_sets(predicted, expected) == pytest.approx((2 / 3 + 1 + 0 + 0) / 4)
    assert metrics.subset_accuracy(predicted, expected) == 0.5
    assert metrics.micro_f1_of_sets([()], [()]) == metrics.macro_f1_of_sets([()], [()]) == 1


def test_classifiers_are_compared_with_each_other_and_with_not_reading(lm):
    every = MultiLabelClassifier(LABELS, lm, threshold=0.0)
    none = MultiLabelClassifier(
        LABELS, lm, threshold=1.0, calibrate=dict.fromkeys(LABELS, 1.0 - 1e-9)
    )
    found = evaluate_several({"every": every, "none": none}, ROWS, progress=False)
    first, second = found.classifiers
    assert first.micro_f1 == pytest.approx(2 * 3 / (3 * 4 + 3))
    assert (first.n_labels, first.subset_accuracy, first.n_texts) == (4, 0, 3)
    assert (second.micro_f1, second.n_labels) == (0, 0)
    assert second.subset_accuracy == pytest.approx(1 / 3)
    assert found.expected_labels == 1
    assert found.best is first
    assert (found.baseline.name, found.baseline.micro_f1) == (
        "always 'sales'",
        pytest.approx(4 / 6),
    )
    head, _, *rows = str(found).splitlines()
    assert [row.split(" | ")[0] for row in rows] == ["| every", "| none", "| always 'sales'"]
    assert {row.count("|") for row in rows} == {head.count("|")}
    assert len(first.results) == 3
    assert first.forward_passes > 0


def test_texts_that_cannot_be_asked_about_are_counted():
    lm = RandomLM(VOCABULARY, 3, context_length=300)
    one = {"one": MultiLabelClassifier(LABELS, lm)}
    rows = [("word " * 100, ["bill"]), *ROWS]
    with pytest.raises(PromptTooLongError):
        evaluate_several(one, rows)
    (found,) = evaluate_several(one, rows, on_error="return").classifiers
    (alone,) = evaluate_several(one, ROWS).classifiers
    assert (list(found.errors), found.n_texts, found.micro_f1) == ([0], 3, alone.micro_f1)
    with pytest.raises(PromptTooLongError) as caught:
        evaluate_several(one, rows[:1], on_error="return")
    assert caught.value.__notes__ == ["structgen: all texts failed with the classifier 'one'"]


def test_not_reading_is_measured_on_texts_with_which_no_classifier_failed():
    short = MultiLabelClassifier(LABELS, RandomLM(VOCABULARY, 3, context_length=300))
    long = MultiLabelClassifier(LABELS, RandomLM(VOCABULARY, 3, context_length=4000))
    rows = [("word " * 100, ["bill"])] * 5 + ROWS
    found = evaluate_several({"short": short, "long": long}, rows, on_error="return")
    assert [one.n_texts for one in found.classifiers] == [3, 8]
    assert (found.baseline.name, found.baseline.n_texts) == ("always 'sales'", 3)
    assert found.baseline.micro_f1 == pytest.approx(4 / 6)
    assert found.expected_labels == 1


def test_names_and_labels_do_not_break_the_table(lm):
    classifier = MultiLabelClassifier(["a|b", "c"], lm)
    found = evaluate_several({"x|y\nz": classifier}, [("a", ["a|b"])])
    head, _, *rows = found.table().splitlines()
    assert [row.split(" | ")[0] for row in rows] == ["| x\\|y z", "| always 'a\\|b'"]
    assert {row.replace("\\|", "").count("|") for row in rows} == {head.count("|")}


@pytest.mark.parametrize(
    ("change", "message"),
    [({"classifiers": {}}, "at least one"), ({"rows": None}, "rows must be"),
     ({"classifiers": {"x": 3}}, "no Multi"),
     ({"rows": []}, "no rows"), ({"rows": [("a", ["x"])]}, "row 0"),
     ({"on_error": "no"}, "on_error")],
)  # fmt: skip
def test_wrong_ways_to_compare(lm, change, message):
    options = {"classifiers": {"one": MultiLabelClassifier(LABELS, lm)}, "rows": ROWS} | change
    with pytest.raises(OptionError, match=message):
        evaluate_several(**options)


@pytest.mark.parametrize("name", [3, None, ("a",)])
def test_names_are_texts(lm, name):
    with pytest.raises(OptionError, match="a name that is no text"):
        evaluate_several({name: MultiLabelClassifier(LABELS, lm)}, ROWS)
    assert not lm.chunks, "nothing was measured"


def test_classifiers_with_other_labels_are_not_compared(lm):
    each = {"one": MultiLabelClassifier(LABELS, lm), "other": MultiLabelClassifier(["a", "b"], lm)}
    with pytest.raises(OptionError, match="has other labels"):
        evaluate_several(each, ROWS)
