"""Every keyword: which values are valid, as one table."""

from __future__ import annotations

from typing import Any

import pytest

from structgen.explanation import explain
from structgen.schema.jsonschema import admits, read_json_schema

NODE: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#"}}}
BRANCHES: dict[str, Any] = {
    "properties": {"kind": {"enum": ["a", "b"]}},
    "required": ["kind"],
    "if": {"properties": {"kind": {"const": "a"}}},
    "then": {"required": ["x"]},
    "else": {"required": ["y"]},
}
TABLE: list[tuple[Any, list[Any], list[Any]]] = [
    # types and choices
    (True, [None, 1, {}], []),
    ({}, [None, 1, {}], []),
    ({"type": "null"}, [None], [0, False, ""]),
    ({"type": "boolean"}, [True], [0, "true", None]),
    ({"type": "integer"}, [1, 1.0, -3], [1.5, True, "1"]),
    ({"type": "number"}, [1, 1.5], [True, "1"]),
    ({"type": ["string", "null"]}, ["", None], [1]),
    ({"type": ["integer", "number"]}, [1, 1.5], [""]),
    ({"const": 1}, [1, 1.0], [True, "1"]),
    ({"const": False}, [False], [0]),
    ({"enum": [1.0, "a", None]}, [1, "a", None], [2]),
    ({"const": {"a": [1, {}], "b": None}}, [{"b": None, "a": [1, {}]}], [{}, {"a": [1, {}]}]),
    ({"enum": [[], {}, [1]]}, [[], {}, [1]], [[2], {"a": 1}]),
    ({"enum": ["a", "bb", 3], "type": "string", "minLength": 2}, ["bb"], ["a", 3]),
    ({"enum": [1, 2], "const": 2}, [2], [1]),
    # numbers
    ({"minimum": 1.5}, [1.5, 2, "x"], [1]),
    ({"exclusiveMinimum": 1}, [1.1], [1]),
    ({"minimum": 1, "exclusiveMinimum": True}, [1.1], [1]),
    ({"maximum": 1, "exclusiveMaximum": True}, [0.9], [1]),
    ({"type": "integer", "minimum": 1.5, "exclusiveMaximum": 4}, [2, 3], [1, 4]),
    ({"minimum": 2, "exclusiveMinimum": 1}, [2], [1.5]),
    ({"type": "integer", "maximum": 10**30}, [10**30], [10**30 + 1]),
    ({"multipleOf": 0.01}, [4.02, 0, -0.01, "x"], [0.005]),
    ({"multipleOf": 2, "type": "integer", "minimum": 3}, [4], [3, 2]),
    ({"multipleOf": 0.5, "type": "integer"}, [1, 10**20], [0.5]),
    ({"allOf": [{"multipleOf": 4}, {"multipleOf": 6}]}, [12, 0], [4, 6, 8]),
    ({"multipleOf": 1e-8}, [12391239123, 1e-8], [1.5e-8]),
    ({"type": "integer", "format": "int32"}, [2**31 - 1], [2**31]),
    # strings
    ({"minLength": 2, "maxLength": 3.0}, ["ab", "äöü", "💩💩", 1], ["a", "abcd", "💩"]),
    ({"pattern": "^a+$"}, ["aa", 1], ["ab", ""]),
    ({"pattern": "b"}, ["abc"], ["ac"]),
    ({"format": "date"}, ["2024-02-29", 7], ["2023-02-29"]),
    ({"type": "string", "format": "password"}, ["x"], [1]),
    ({"allOf": [{"pattern": "^a"}, {"pattern": "b$"}]}, ["ab", "acb"], ["a", "b"]),
    # arrays
    ({"items": {"type": "integer"}}, [[], [1], "x"], [["a"]]),
    ({"prefixItems": [{"type": "string"}], "items": False}, [[], ["a"]], [[1], ["a", 1]]),
    ({"prefixItems": [{"type": "string"}]}, [["a", 1]], [[1]]),
    ({"items": [{"const": 1}], "additionalItems": {"const": 2}}, [[1, 2, 2]], [[2], [1, 1]]),
    ({"items": False}, [[]], [[1]]),
    ({"minItems": 1, "maxItems": 2}, [[1], [1, 1]], [[], [1, 1, 1]]),
    ({"uniqueItems": True}, [[1, 2], [1, True], [[1], [2]]], [[1, 1.0], [{"a": 1}, {"a": 1}]]),
    ({"contains": {"const": 1}}, [[1], [2, 1]], [[], [2]]),
    ({"contains": {"const": 1}, "minContains": 0}, [[], [2]], []),
    ({"contains": {"const": 1}, "minContains": 2}, [[1, 1], [1, 2, 1]], [[1]]),
    ({"contains": {"const": 1}, "maxContains": 1}, [[1], [2, 1]], [[1, 1], []]),
    ({"contains": True, "maxContains": 2}, [[1], [1, 2]], [[], [1, 2, 3]]),
    ({"items": {"type": "string"}, "contains": {"const": 1}}, ["x"], [[1], ["a"], []]),
    # objects
    ({"required": ["a"]}, [{"a": 1}, 3], [{}]),
    ({"properties": {"a": {"type": "integer"}}}, [{}, {"a": 1, "b": "x"}], [{"a": "x"}]),
    ({"properties": {"a": {}}, "additionalProperties": False}, [{"a": 1}], [{"b": 1}]),
    ({"additionalProperties": {"type": "integer"}}, [{"x": 1}], [{"x": "1"}]),
    ({"properties": {"a": False}}, [{}, {"b": 1}], [{"a": 1}]),
    (
        {"patternProperties": {"^a": {"minimum": 2}, "b$": {"maximum": 5}}},
        [{"a": 9, "b": 1, "ab": 3, "c": None}],
        [{"a": 1}, {"b": 6}, {"ab": 1}, {"ab": 6}],
    ),
    (
        {"properties": {"ab": {"minimum": 0}}, "patternProperties": {"^a": {"maximum": 5}}},
        [{"ab": 3}],
        [{"ab": -1}, {"ab": 6}],
    ),
    (
        {"patternProperties": {"^a": {"type": "string"}}, "additionalProperties": False},
        [{"ab": "x"}],
        [{"ab": 1}, {"b": "x"}],
    ),
    ({"propertyNames": {"maxLength": 2}}, [{"ab": 1}], [{"abc": 1}]),
    ({"propertyNames": {"enum": ["a"]}, "required": ["a"]}, [{"a": 1}], [{"a": 1, "b": 1}, {}]),
    ({"propertyNames": False}, [{}, 1], [{"a": 1}]),
    ({"minProperties": 1, "maxProperties": 2}, [{"a": 1}], [{}, {"a": 1, "b": 1, "c": 1}]),
    ({"dependentRequired": {"a": ["b"]}}, [{}, {"b": 1}, {"a": 1, "b": 1}, 1], [{"a": 1}]),
    ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, [{"a": 1, "b": 1}], [{"c": 1}]),
    ({"dependentSchemas": {"a": {"maxProperties": 1}}}, [{"a": 1}], [{"a": 1, "b": 1}]),
    # combinations
    ({"allOf": [{"type": "integer"}, {"minimum": 2}]}, [2], [1, 2.5, "x"]),
    ({"anyOf": [{"type": "integer"}, {"minLength": 2}]}, [1, "ab", 1.5], ["a"]),
    ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, ["a", 1], [1.5]),
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{"a": 1}], [{}, {"a": 1, "b": 1}, 1]),
    ({"oneOf": [{"maximum": 5}, {"minimum": 3}]}, [2, 6], [4, "x"]),
    ({"oneOf": [True, True]}, [], [1]),
    ({"not": {"type": "string"}}, [1, None], ["a"]),
    ({"type": "integer", "not": {"enum": [1, 2]}}, [0, 3], [1, 2]),
    ({"type": "number", "not": {"type": "integer"}}, [0.5, -1e-30], [1, 2.0, 1e300]),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, [1.5], [1, "a"]),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2.5, "a"], [3, 1.5]),
    ({"not": {"not": {"type": "integer"}}}, [1, 1e30], [1.5, "a"]),
    ({"type": "integer", "not": {"multipleOf": 3}}, [1, -2], [0, 9, 1.5]),
    ({"not": {"not": {"type": "integer", "not": {"multipleOf": 3}}}}, [1, -2], [0, 9, 1.5, "a"]),
    ({"type": "number", "not": {"multipleOf": 0.1, "minimum": 0}}, [0.05, -1], [0.5, 3]),
    ({"not": {"required": ["a"]}}, [{}], [{"a": 1}, 1]),
    ({"not": {"items": {"type": "string"}}}, [[1], ["a", 1]], [[], ["a"], 3]),
    ({"not": {"const": {"a": 1}}}, [{}, {"a": 2}, {"a": 1, "b": 1}, [1]], [{"a": 1}]),
    ({"type": "string", "not": {"pattern": "^a"}}, ["b", ""], ["a"]),
    (BRANCHES, [{"kind": "a", "x": 1}, {"kind": "b", "y": 1}], [{"kind": "a", "y": 1}, {}]),
    ({"if": {"const": 1}, "else": {"type": "string"}}, [1, "a"], [2]),
    ({"then": False}, [1], []),
    # references
    (NODE, [{}, {"next": {"next": {}}}], [{"next": 1}, {"next": {"next": 1}}]),
    ({"$ref": "#/$defs/a", "minimum": 3, "$defs": {"a": {"type": "integer"}}}, [3], [2, 3.5]),
    ({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"type": "null"}}}, [None], [1]),
    ({"$ref": "#x", "$defs": {"a": {"$anchor": "x", "const": 1}}}, [1], [2]),
    ({"$id": "http://a/b", "$ref": "c", "$defs": {"c": {"$id": "c", "const": 1}}}, [1], [2]),
    ({"$id": "http://a/b?", "$ref": "#/$defs/c", "$defs": {"c": {"const": 1}}}, [1], [2]),
    ({"$id": "tag:a", "$ref": "#c", "$defs": {"c": {"$anchor": "c", "const": 1}}}, [1], [2]),
    (
        {
            "$ref": "#/$defs/c",
            "$defs": {
                "c": {"$id": "tag:c", "$ref": "#/$defs/d", "$defs": {"d": {"const": 1}}},
                "d": {"const": 2},
            },
        },
        [1],
        [2],
    ),
    (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"a": {"$ref": "#/definitions/x", "minimum": 5}},
            "definitions": {"x": {"type": "integer"}},
        },
        [{"a": 1}],
        [{"a": "x"}],
    ),
    # what is left over
    (
        {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
        [{"a": 1}],
        [{"b": 1}],
    ),
    (
        {
            "anyOf": [{"required": ["a"], "properties": {"a": {}}}, {"properties": {"b": {}}}],
            "unevaluatedProperties": False,
        },
        [{"a": 1}, {"b": 1}, {"a": 1, "b": 1}],
        [{"c": 1}],
    ),
    ({"prefixItems": [{}], "unevaluatedItems": {"const": 1}}, [["x", 1]], [["x", 2]]),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), TABLE, ids=lambda part: str(part)[:60])
def test_exactly_the_valid_values_are_admitted(
    schema: Any, valid: list[Any], invalid: list[Any]
) -> None:
    read = read_json_schema(schema, "test")
    assert read.faults == ()
    for value in valid:
        assert admits(read.definitions, read.root, value), value
    for value in invalid:
        assert not admits(read.definitions, read.root, value), value


REFUSED: list[tuple[Any, str, str]] = [
    ({"type": "str"}, "$.type", "'str' is not a type"),
    ({"maxLenght": 3}, "$.maxLenght", "'maxLenght' is not a keyword"),
    ({"requried": []}, "$.requried", "is not a keyword"),
    ({"nullable": True}, "$.nullable", "is not a keyword"),
    ({"properties": {"a b": {"pattern": "("}}}, '$.properties["a b"].pattern', "cannot be"),
    ({"pattern": "(a)\\1"}, "$.pattern", "cannot be enforced"),
    ({"format": "datetime"}, "$.format", "is not known"),
    ({"format": "IPv4"}, "$.format", "is not known"),
    ({"format": "hostnmae"}, "$.format", "is not known"),
    ({"format": 3}, "$.format", "must be a string"),
    ({"required": True}, "$.required", "list of property names"),
    ({"$ref": "http://example.com/x"}, "$.$ref", "leads out of this schema"),
    ({"$ref": "#/$defs/x"}, "$.$ref", "leads to nothing"),
    ({"$ref": "#/allOf/" + "9" * 5000, "allOf": [{}]}, "$.$ref", "leads to nothing"),
    ({"$ref": "#"}, "$", "leads back to itself"),
    ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "$", "leads back to itself"),
    ({"minLength": -1}, "$.minLength", "0 or more"),
    ({"multipleOf": 0}, "$.multipleOf", "more than 0"),
    ({"minimum": float("inf")}, "$.minimum", "finite"),
    ({"anyOf": []}, "$.anyOf", "not empty"),
    ({"$schema": "http://example.com/other"}, "$.$schema", "dialect"),
    ([], "$", "must be an object or a boolean"),
]


@pytest.mark.parametrize(("schema", "path", "problem"), REFUSED, ids=lambda part: str(part)[:60])
def test_what_cannot_be_enforced_is_refused_with_its_path(
    schema: Any, path: str, problem: str
) -> None:
    faults = read_json_schema(schema, "test").faults
    assert [fault.path for fault in faults] == [path]
    assert problem in faults[0].problem


@pytest.mark.parametrize("name", ["mongoId", "ISO 8601", "topic", "relative-uri", "byte"])
@pytest.mark.parametrize("kind", ["string", "number", "array"])
def test_formats_that_nobody_asserts_are_told_and_not_enforced(name: str, kind: str) -> None:
    read = read_json_schema({"type": kind, "format": name}, "test")
    assert read.faults == ()
    assert [fault.path for fault in read.ignored] == ["$.format"]
    assert f"{name!r} is not enforced" in read.ignored[0].problem
    assert read.root == read_json_schema({"type": kind}, "test").root


@pytest.mark.parametrize("name", ["date-time", "int32", "password", "double"])
def test_formats_with_a_meaning_are_not_told(name: str) -> None:
    assert read_json_schema({"format": name}, "test").ignored == ()


def test_a_keyword_beside_the_one_that_it_resembles_is_an_annotation() -> None:
    assert read_json_schema({"requires": ["a"], "required": ["a"]}, "test").faults == ()
    faults = read_json_schema({"requires": ["a"]}, "test").faults
    assert "did you mean 'required'?" in faults[0].advice


@pytest.mark.parametrize("keyword", ["minimum", "multipleOf", "const"])
def test_numbers_that_python_cannot_write_are_refused(keyword: str) -> None:
    faults = read_json_schema({keyword: 10**5000}, "test").faults
    assert [fault.path for fault in faults] == [f"$.{keyword}"]
    assert "digits" in faults[0].problem


SURROGATES = [{"const": "\ud800"}, {"pattern": "\ud800"}, {"properties": {"\ud800": {}}}]


@pytest.mark.parametrize("schema", SURROGATES, ids=ascii)
def test_lone_surrogates_are_refused(schema: Any) -> None:
    faults = read_json_schema(schema, "test").faults
    assert len(faults) == 1
    assert "surrogate" in faults[0].problem or "not text" in faults[0].problem


def test_all_faults_are_collected() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "strin"}, "b": {"pattern": "["}},
        "allOf": [{"items": 3}, {"minimum": "1"}],
    }
    faults = read_json_schema(schema, "test").faults
    assert [fault.path for fault in faults] == [
        "$.properties.a.type",
        "$.properties.b.pattern",
        "$.allOf[0].items",
        "$.allOf[1].minimum",
    ]


@pytest.mark.parametrize("name", ["x-order", "_format", "label", "id2", "foo", "propertyOrder"])
def test_other_unknown_keywords_are_annotations(name: str) -> None:
    assert read_json_schema({name: 1}, "test").faults == ()


IMPOSSIBLE: list[tuple[Any, str]] = [
    (False, "$"),
    ({"type": "string", "enum": [1]}, "$"),
    ({"type": "object", "required": ["a"], "properties": {"a": False}}, "$.properties.a"),
    ({"type": "integer", "minimum": 3, "maximum": 2}, "$"),
    ({"type": "string", "minLength": 3, "maxLength": 2}, "$"),
    ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "$"),
    ({"type": "string", "pattern": "^aaa$", "maxLength": 2}, "$"),
]


@pytest.mark.parametrize(("schema", "path"), IMPOSSIBLE, ids=lambda part: str(part)[:60])
def test_a_schema_without_valid_values_says_why(schema: Any, path: str) -> None:
    impossible = read_json_schema(schema, "test").impossible
    assert [fault.path for fault in impossible] == [path]


def test_a_format_that_is_not_enforced_is_shown_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shown = str(explain({"properties": {"a": {"type": "string", "format": "mongoId"}}}))
    assert "$.properties.a.format: the format 'mongoId' is not enforced" in shown
    assert "mongoId" in caplog.text


@pytest.mark.parametrize("kind", ["null", "boolean", "string", "number", "integer", "array"])
def test_a_plain_type_is_what_the_reader_of_its_keywords_makes_of_it(kind):
    """A mark that the author made leads past the table of plain types."""
    plain = read_json_schema({"type": kind, "title": "a", "description": "b"})
    marked = read_json_schema({"type": kind, "x-mark": 1})
    assert plain.root == marked.root
    assert (plain.faults, plain.ignored) == (marked.faults, marked.ignored) == ((), ())
