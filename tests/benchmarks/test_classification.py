"""Classification with the default model: time, exactness and accuracy on labelled texts.

Options are chosen by the dev rows; the test rows say how good they are. STRUCTGEN_BENCH_TEXTS sets
how many rows of each file are used (default: 100 of each; 0 for all).
"""

from __future__ import annotations

import json
import os
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from structgen.classification.classifier import Classifier
from structgen.classification.evaluation import evaluate
from structgen.classification.label_trie import label_trie
from structgen.classification.multi import MultiLabelClassifier
from structgen.classification.options import ClassifierOptions
from structgen.classification.several import evaluate_several
from structgen.runtime.hf import HFModel
from structgen.taxonomy import Taxonomy
from tests.benchmarks.reporting import Report

DATA = Path(os.environ.get("STRUCTGEN_DATA", Path(__file__).parents[3] / "shared" / "data"))
N_TEXTS = int(os.environ.get("STRUCTGEN_BENCH_TEXTS", "100")) or None
SETS = ["uci_sentiment", "ag_news", "banking77", "clinc150"]
INSTRUCTIONS = {
    "uci_sentiment": "Decide whether the review is positive or negative.",
    "ag_news": "Decide what the news article is about.",
    "banking77": "Decide what the bank's customer wants.",
    "clinc150": "Decide what the user wants.",
}

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(
        not (DATA / "classification").is_dir(),
        reason="the labelled texts are not in the folder that STRUCTGEN_DATA names",
    ),
]


def rows_of(name: str, part: str) -> list[dict[str, Any]]:
    with (DATA / "classification" / name / f"{part}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in islice(file, N_TEXTS)]


def labels_of(name: str) -> Taxonomy:
    return Taxonomy.from_file(DATA / "classification" / name / "labels.txt", separator=None)


def examples_of(name: str, count: int) -> list[tuple[str, str]]:
    """Texts of the dev rows, each of another label."""
    found: dict[str, str] = {}
    for row in rows_of(name, "dev"):
        found.setdefault(row["label"], row["text"])
    return [(text, label) for label, text in list(found.items())[:count]]


def configurations(name: str) -> dict[str, ClassifierOptions]:
    told = ClassifierOptions(instructions=INSTRUCTIONS[name])
    n_labels = len(labels_of(name))
    made: dict[str, ClassifierOptions] = {
        "raw": told,
        "no list": {**told, "list_labels": False},
        "ending=end": {**told, "ending": "end"},
        "length=mean": {**told, "length": "mean"},
        "content_free": {**told, "calibrate": "content_free"},
        "pmi": {**told, "calibrate": "pmi"},
        "batch": {**told, "calibrate": "batch"},
        "few-shot": {**told, "examples": examples_of(name, 4)},
        "few-shot, batch": {**told, "examples": examples_of(name, 4), "calibrate": "batch"},
        "index": {**told, "index": True},
    }
    if n_labels > 20:
        made["shortlist"] = {**told, "shortlist": "bm25", "none_of_these": False}
    return made


@pytest.mark.parametrize("name", SETS)
def test_accuracy(name: str, smollm2: HFModel, report: Report) -> None:
    for part in ("dev", "test"):
        found = evaluate(
            labels_of(name), rows_of(name, part), configurations(name), lm=smollm2, progress=False
        )
        report.add(f"accuracy, {name}, {part}", {
            one.name: {
                "accuracy": round(one.accuracy, 3), "macro F1": round(one.macro_f1, 3),
                "top 3": round(one.top_k[3], 3), "ECE": round(one.calibration_error, 3),
                "s a text": round(one.seconds, 3),
            }
            for one in found.configurations
        })  # fmt: skip


def test_the_time_of_an_exact_distribution(smollm2: HFModel, report: Report) -> None:
    """Beside reading the prompt once, and one pass over the labels' beginnings."""
    labels = labels_of("banking77")
    texts = [row["text"] for row in rows_of("banking77", "dev")][:12]
    ours = theirs = 0.0
    for text in texts:
        classifier = Classifier(labels, smollm2)  # a new one: nothing is shared between texts
        ids = smollm2.encode_prompt(classifier.render(text))
        started = time.perf_counter()
        classifier(text)
        ours += time.perf_counter() - started
        theirs += least_time(smollm2, ids, labels)
    shared = Classifier(labels, smollm2)
    shared(texts[0])
    started = time.perf_counter()
    shared.many(texts, progress=False)
    together = time.perf_counter() - started
    report.add("exact distribution over banking77", {
        "s a text": round(ours / len(texts), 3),
        "prompt once and one pass, s": round(theirs / len(texts), 3),
        "ratio (reach: 2.5)": round(ours / theirs, 2),
        "s a text, prompts share their beginning": round(together / len(texts), 3),
    })  # fmt: skip


@torch.no_grad()
def least_time(lm: HFModel, ids: list[int], labels: Taxonomy) -> float:
    """Reading the prompt, then as many tokens as labels have distinct beginnings.

    The tokens are one row, as of running text: rows of their own, with a copy of the prompt's keys
    and values each, take ten times as long.
    """
    assert lm.vocabulary.encode is not None
    trie = label_trie([lm.vocabulary.encode(label) for label in labels])
    started = time.perf_counter()
    cache, _ = lm.prefill([ids])
    lm.extend(cache, [trie.token_ids.tolist()])
    return time.perf_counter() - started


def test_several_labels(smollm2: HFModel, report: Report) -> None:
    """Thresholds are fitted to dev rows, at most 100 of them."""
    path = DATA / "classification" / "goemotions"
    labels = Taxonomy.from_file(path / "labels.txt", separator=None)
    fitted_on = pairs_of(rows_of("goemotions", "dev")[:100])
    raw, free, batch = (
        MultiLabelClassifier(labels, smollm2, calibrate=way)
        for way in (None, "content_free", "batch")
    )
    classifiers = {"independent": raw, "content_free": free, "batch": batch}
    for average in ("macro", "micro"):
        for name, one in (("thresholds", raw), ("batch, thresholds", batch)):
            classifiers[f"{name} ({average})"] = one.fit_thresholds(
                fitted_on, average=average, progress=False
            )
    classifiers["generated"] = MultiLabelClassifier(
        labels, smollm2, method="generated", min_items=1, max_items=3
    )
    found = evaluate_several(classifiers, pairs_of(rows_of("goemotions", "test")), progress=False)
    report.add("several labels, goemotions", {
        one.name: {
            "micro F1": round(one.micro_f1, 3), "macro F1": round(one.macro_f1, 3),
            "all right": round(one.subset_accuracy, 3), "labels a text": round(one.n_labels, 2),
            "s a text": round(one.seconds, 3),
        }
        for one in (*found.classifiers, found.baseline)
    })  # fmt: skip


def pairs_of(rows: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    return [(row["text"], row["labels"]) for row in rows]
