"""Compiled schemas: remembered, validated, described."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from pydantic import BaseModel, Field, TypeAdapter, create_model, field_validator

from structgen.compiler import Compiler, clear_cache, compile  # noqa: A004
from structgen.errors import InvalidTextError, ValidationFailedError
from structgen.options import Limits, Options
from structgen.tokens.vocabulary import Vocabulary
from tests import strategies
from tests.walks import allowed, feed

BYTES = strategies.byte_vocabulary()
OTHER = Vocabulary.from_bytes([bytes([b]) for b in range(256)] + [b"ab"], 300)


class Model(BaseModel):
    name: str = Field(max_length=5)
    count: int = 1


def test_a_class_is_compiled_once():
    assert compile(Model, BYTES) is compile(Model, BYTES)
    assert compile(Model, BYTES) is compile(Model, strategies.byte_vocabulary())
    different = [
        compile(Model, BYTES),
        compile(Model, OTHER),
        compile(Model, BYTES, layout="compact"),
        compile(Model, BYTES, require_all=True),
        compile(Model, BYTES, limits=Limits(max_depth=5)),
    ]
    assert len({id(compiled) for compiled in different}) == len(different)


def test_equal_classes_share_their_masks_but_not_their_values():
    twin = create_model("Model", name=(str, Field(max_length=5)), count=(int, 2))
    one, two = compile(Model, BYTES), compile(twin, BYTES)
    assert one is not two
    assert one.program is two.program
    assert one.fingerprint == two.fingerprint
    text = '{"name": "x"}'
    assert one.validate(text) == Model(name="x", count=1)
    assert type(two.validate(text)) is twin
    assert two.validate(text).count == 2


def test_other_types_are_found_by_content():
    assert compile(list[int], BYTES).program is compile(TypeAdapter(list[int]), BYTES).program


def test_clearing_forgets():
    before = compile(Model, BYTES)
    clear_cache()
    after = compile(Model, BYTES)
    assert before is not after
    assert before.program is not after.program
    session = before.session()
    session.advance(ord("{"))
    assert allowed(session) == [ord('"')]


def test_the_cache_is_bounded():
    compiler = Compiler(capacity_bytes=100_000)
    models = [create_model("M", **{f"f{i}": (int, ...)}) for i in range(6)]
    first = compiler.compile(models[0], BYTES, Options())
    for model in models[1:]:
        compiler.compile(model, BYTES, Options())
    assert compiler.compile(models[0], BYTES, Options()) is not first


def test_forgotten_classes_are_freed():
    compiler = Compiler(capacity_bytes=100_000)

    def make() -> weakref.ref[Any]:
        model = create_model("Gone", a=(int, ...))
        compiler.compile(model, BYTES, Options())
        return weakref.ref(model)

    gone = make()
    for i in range(4):
        compiler.compile(create_model("M", **{f"f{i}": (int, ...)}), BYTES, Options())
    compiler.clear()
    gc.collect()
    assert gone() is None


def test_a_model_that_is_completed_later_is_compiled_again():
    class Late(BaseModel):
        inner: Missing  # defined below

    class Missing(BaseModel):
        value: int

    Late.model_rebuild(_types_namespace={"Missing": Missing})
    compiled = compile(Late, BYTES)
    assert compiled.min_tokens == len('{"inner": {"value": 0}}')
    assert compiled is compile(Late, BYTES)


def test_what_a_compiled_schema_says():
    compiled = compile(Model, BYTES)
    assert compiled.title == "Model"
    assert compiled.vocabulary == BYTES
    assert compiled.min_tokens == len('{"name": ""}')
    assert compiled.options == Options()
    assert compiled.memory_bytes() > 1000
    assert "Model" in repr(compiled)
    assert compiled.validators == ()


def test_validators_run_after_generation():
    class Checked(BaseModel):
        even: int

        @field_validator("even")
        @classmethod
        def check(cls, value: int) -> int:
            if value % 2:
                raise ValueError("this is odd")
            return value

    compiled = compile(Checked, BYTES)
    assert compiled.validators == ("$.even",)
    assert compiled.validate('{"even": 2}').even == 2
    text = '{"even": 3}'
    session = compiled.session()
    feed(session, list(text.encode()), BYTES)
    assert session.complete
    with pytest.raises(ValidationFailedError, match="this is odd") as caught:
        compiled.validate(text)
    assert caught.value.text == text
    assert text in str(caught.value)


@pytest.mark.parametrize("data", [b'"\xff"', b"\xc3", '"\ud800"', b'"\xed\xa0\x80"'])
def test_values_that_are_no_text(data):
    with pytest.raises(InvalidTextError, match="not UTF-8"):
        compile(str, BYTES).validate(data)


@pytest.mark.parametrize("text", ["", "1", '"a', '"a" x', b"\xc3\xa9", "null"])
def test_texts_that_do_not_validate(text):
    with pytest.raises(ValidationFailedError):
        compile(str, BYTES).validate(text)


def test_bytes_and_text_validate_alike():
    compiled = compile(Model, BYTES)
    text = '{"name": "é\U0001f600"}'
    assert compiled.validate(text) == compiled.validate(text.encode())


def test_layouts():
    texts = {
        "spaced": '{"name": "a", "count": 2}',
        "compact": '{"name":"a","count":2}',
        "flexible": '{ \n"name":\t"a" ,\r\n "count": 2 }',
    }
    for layout in texts:
        for other, text in texts.items():
            session = compile(Model, BYTES, layout=layout).session()
            try:
                feed(session, list(text.encode()), BYTES)
            except AssertionError:
                fits = False
            else:
                fits = session.accepting
            assert fits == (layout == other or (layout == "flexible"))


def test_whitespace_is_bounded():
    compiled = compile(list[int], BYTES, layout="flexible", limits=Limits(max_whitespace=3))
    session = compiled.session()
    feed(session, list(b"[ \n\t"), BYTES)
    assert not session.allows(ord(" "))
    session.advance(ord("1"))
    feed(session, list(b"   "), BYTES)
    assert allowed(session) == [ord(","), ord("]")]
