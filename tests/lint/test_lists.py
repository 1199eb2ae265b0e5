"""Rules about lists."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field, create_model

import structgen as sg

TOPICS = sg.Taxonomy(["Cats", "Dogs", "Other"], name="topics")
TOPIC = Annotated[str, TOPICS]


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (list[TOPIC], True),
        (list[TOPICS.Label], True),
        (list[TOPIC] | None, True),
        (list[TOPIC | None], True),
        (tuple[TOPIC, ...], True),
        (set[TOPIC], False),
        (TOPICS.Labels(), False),
        (TOPICS.Labels(max_length=2), False),
        (Annotated[list[TOPIC], Field(max_length=1)], False),
        (list[Literal["Cats", "Dogs"]], False),
        (TOPIC, False),
    ],
)
def test_a_list_of_a_taxonomys_labels_may_repeat_them(kind, found):
    model = create_model("Ticket", topics=(kind, ...))
    paths = [one.path for one in sg.lint(model) if one.code == "SG109"]
    assert paths == ["$.topics"] * found
    assert not [one for one in sg.lint(model, ignore=["repeated-labels"]) if one.code == "SG109"]


def test_a_json_schema_has_no_taxonomies():
    schema = {"type": "array", "items": {"enum": ["Cats", "Dogs", "Other"]}}
    assert "SG109" not in {one.code for one in sg.lint(schema)}
