from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel, Field

import structgen as sg
from structgen.errors import InvalidTextError, OptionError, UnsupportedSchemaError
from structgen.testing import RandomLM, ScriptedLM, small_vocabulary

WORDS = small_vocabulary(['{"', '":', " true", " false", "team", ", "])


class Team(BaseModel):
    team: Literal["billing", "sales"]
    note: str = Field(max_length=6)


class Flag(BaseModel):
    flag: bool
    numbers: list[int] = Field(max_length=2)


PAIRS = [(Team, "one"), (Flag, "two"), (Literal["a", "b"], "three"), (Team, "four"), (int, "5")]


@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_a_batch_may_mix_schemas(batch_size):
    lm = RandomLM(WORDS, 3)
    values = sg.generate_many(PAIRS, lm=lm, batch_size=batch_size, do_sample=True, seed=5)
    assert [type(v) for v in values] == [Team, Flag, str, Team, int]
    for i, (schema, prompt) in enumerate(PAIRS):
        alone = sg.generate(schema, prompt, lm=lm, do_sample=True, seed=5 + i)
        assert values[i] == alone


def test_results_come_as_they_finish():
    found = dict(sg.generate_as_completed(iter(PAIRS), lm=RandomLM(WORDS), batch_size=2))
    assert sorted(found) == list(range(5))
    assert all(isinstance(result, sg.Generation) for result in found.values())


def test_a_failed_row_is_a_value_in_its_place():
    pairs = [(Team, "fine"), (Team, b"bytes")]
    values = sg.generate_many(pairs, lm=RandomLM(WORDS), on_error="return")
    assert isinstance(values[0], Team)
    assert isinstance(values[1], InvalidTextError)


def test_a_bad_schema_shows_before_anything_runs():
    class Wrong(BaseModel):
        call: Literal["x"]
        what: complex

    lm = RandomLM(WORDS)
    with pytest.raises(UnsupportedSchemaError, match=r"\$\.what"):
        sg.generate_many([(Team, "fine"), (Wrong, "x")], lm=lm, on_error="return")
    assert lm.chunks == []


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        (3, {}, "got 3"),
        ([(Team, "a"), Team], {}, "entry 1 must be"),
        (["ab"], {}, "entry 0 must be"),
        (PAIRS, {"num_beams": 2}, "num_beams=2"),
        (PAIRS, {"on_error": "no"}, "on_error='no'"),
        (PAIRS, {"batch_size": -1}, "batch_size=-1"),
    ],
)
def test_what_is_no_batch_is_refused(pairs, options, message):
    with pytest.raises(OptionError, match=message):
        sg.generate_many(pairs, lm=RandomLM(WORDS), **options)


def test_an_iterator_of_bans_holds_for_every_schema():
    class Word(BaseModel):
        text: str = Field(max_length=4)

    class Other(Word):
        pass

    lm = ScriptedLM(WORDS, '{"text": "qq"}')
    values = sg.generate_many([(Word, "a"), (Other, "b")], lm=lm, banned_strings=iter(["q"]))
    assert not any("q" in value.text for value in values)
