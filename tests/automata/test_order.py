"""The order of frames: what is called stands before what calls it, as far as that is possible."""

from __future__ import annotations

from typing import Any

from structgen.automata.assemble import assemble
from structgen.options import Options
from structgen.schema.load import load_schema

NUMBER: dict[str, Any] = {"type": "integer"}
TEXT: dict[str, Any] = {"type": "string", "pattern": "^a+$"}


def test_callees_stand_before_their_callers() -> None:
    shared = {"type": "object", "properties": {"list": {"type": "array", "items": TEXT}}}
    middle = {"type": "object", "properties": {"shared": {"$ref": "#/$defs/shared"}, "n": NUMBER}}
    schema = {
        "type": "object",
        "properties": {"first": {"$ref": "#/$defs/shared"}, "second": middle, "text": TEXT},
        "$defs": {"shared": shared},
    }
    frames = assemble(load_schema(schema).schema, Options()).frames
    place = {key: index for index, key in enumerate(frames)}
    called = [(callee, key) for key, frame in frames.items() for callee in frame.calls.callees]
    known = [pair for pair in called if pair[0] in place]
    recursive = {"any array", "any map"}
    assert len(known) > 5
    for callee, key in known:
        if not {str(part) for part in (*flat(callee), *flat(key))} & recursive:
            assert place[callee] < place[key]


def flat(key: object) -> tuple[object, ...]:
    return key if isinstance(key, tuple) else (key,)


def test_recursive_frames_stand_there_once() -> None:
    schema = {
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    }
    frames = assemble(load_schema(schema).schema, Options()).frames
    assert len(frames) == 1
    assert [callee for frame in frames.values() for callee in frame.calls.callees] == list(frames)
