"""Strings whose patterns and lengths contradict each other, wherever nothing has to be one."""

from __future__ import annotations

import random
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, Json, create_model

from structgen.automata.patterns import pattern_frame
from structgen.compiler import compile  # noqa: A004
from structgen.errors import UnsatisfiableSchemaError
from structgen.linter import lint
from structgen.schema.nodes import Pattern, String
from structgen.testing import byte_vocabulary
from tests.walks import generate

BYTES = byte_vocabulary()
SHORT = Annotated[str, Field(pattern="^a{3}$", max_length=2)]
LONG = Annotated[str, Field(pattern="^a{3}$", min_length=4)]
DATE = {"type": "string", "maxLength": 1, "format": "date"}
YEAR = {"type": "string", "pattern": "^[0-9]{4}$", "maxLength": 3}


class Optional(BaseModel):
    a: SHORT | None = None


def fits(schema: Any, text: str) -> bool | None:
    session = compile(schema, BYTES).session()
    for byte in text.encode():
        if not session.allows(byte):
            return False
        session.advance(byte)
    return True if session.accepting else None


@pytest.mark.parametrize(
    ("schema", "accepted", "rejected"),
    [
        (Optional, ["{}", '{"a": null}'], ['{"a": "']),
        (list[SHORT | bool], ["[]", "[true]"], ['["']),
        (list[LONG | bool], ["[]", "[true]"], ['["']),
        (list[SHORT], ["[]"], ['["']),
        (set[LONG], ["[]"], ['["']),
        (dict[LONG, int], ["{}"], ['{"']),
        (dict[str, SHORT], ["{}"], ['{"']),
        (Json[LONG] | None, ["null"], ['"']),
        ({"anyOf": [DATE, {"type": "boolean"}]}, ["true"], ['"']),
        ({"type": "array", "items": DATE}, ["[]"], ["[\""]),
        ({"type": "array", "prefixItems": [{"type": "integer"}, DATE]}, ["[]", "[1]"], ["[1,"]),
        ({"anyOf": [{"type": "array", "items": DATE, "minItems": 2}, {"type": "null"}]}, ["null"],
         ["["]),
        ({"type": "object", "properties": {"a": DATE, "b": {"type": "null"}}},
         ["{}", '{"b": null}'], ['{"a": ']),
        ({"type": "object", "additionalProperties": YEAR}, ["{}"], ['{"']),
        ({"type": "object", "propertyNames": YEAR}, ["{}"], ['{"']),
        ({"anyOf": [{"type": "object", "additionalProperties": YEAR, "minProperties": 1},
                    {"type": "null"}]}, ["null"], ["{"]),
        ({"type": "array", "contains": YEAR, "minContains": 0, "maxContains": 1},
         ["[]", '["2024"]'], []),
    ],
    ids=lambda part: str(part)[:50],
)  # fmt: skip
def test_nothing_begins_such_a_string(schema, accepted, rejected):
    for text in accepted:
        assert fits(schema, text) is True, text
        compile(schema, BYTES).validate(text)
    for text in rejected:
        assert fits(schema, text) is False, text
    compiled = compile(schema, BYTES)
    for more in range(10):
        text, _ = generate(compiled.session, BYTES, random.Random(more), compiled.min_tokens + more)
        compiled.validate(text)


@pytest.mark.parametrize(
    "schema",
    [SHORT, LONG, create_model("M", a=(SHORT, ...)), DATE,
     {"type": "object", "propertyNames": YEAR, "minProperties": 1},
     {"type": "array", "items": DATE, "minItems": 1}],
)  # fmt: skip
def test_a_schema_that_needs_one_is_refused(schema):
    with pytest.raises(UnsatisfiableSchemaError):
        compile(schema, BYTES)


def test_no_frame_is_made_for_one():
    with pytest.raises(AssertionError, match="without any text"):
        pattern_frame(String(0, 2, (Pattern("^a{3}$"),)))
    lint(Optional)
