"""The exact content of a source: equal bytes mean equal nodes, and where that is unsure, none."""

from __future__ import annotations

import enum
import functools
import re
import subprocess
import sys
import time
import typing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    create_model,
    field_validator,
    model_validator,
)

from structgen.bench.workload import MODELS
from structgen.errors import SchemaError
from structgen.options import Options
from structgen.schema import identity as module
from structgen.schema.fingerprint import fingerprint
from structgen.schema.identity import CLASSES, UNREAD, copied, identity
from structgen.schema.keywords import HARMLESS
from structgen.schema.load import load_schema
from tests.names import plain
from tests.shapes import models as shapes


class Colour(enum.Enum):
    RED = "red"
    ONE = 1


class Word(enum.StrEnum):
    RED = "red"


def one(annotation: Any, **settings: Any) -> type[BaseModel]:
    return create_model("One", __config__=ConfigDict(**settings), part=(annotation, ...))


def parts(name: str, **fields: Any) -> type[BaseModel]:
    return create_model(name, **fields)


class Inner(BaseModel):
    a: int


class Other(BaseModel):
    a: int


def checked(value: int) -> int:
    return value


class WithValidator(BaseModel):
    part: int

    @field_validator("part")
    @classmethod
    def check(cls, value: int) -> int:
        return value

    @model_validator(mode="after")
    def check_all(self) -> WithValidator:
        return self


DIFFERENT: list[Any] = [
    *MODELS,
    one(int), one(str), one(float), one(bool), one(Any), one(int | str), one(str | int),
    one(list[int]), one(tuple[int, ...]), one(set[int]), one(dict[str, int]), one(dict[int, int]),
    one(Annotated[int, Field(ge=1)]), one(Annotated[int, Field(gt=1)]),
    one(Annotated[float, Field(ge=1)]), one(Annotated[str, Field(min_length=1)]),
    one(Annotated[str, Field(max_length=1)]), one(Annotated[str, Field(pattern="a")]),
    one(Annotated[str, Field(pattern="b")]), one(Literal[1]), one(Literal["1"]), one(Literal["a"]),
    one(Literal["a", "b"]), one(Literal["b", "a"]), one(Colour), one(Word),
    one(Literal[Colour.RED]), one(Literal[Word.RED]), one(date), one(int | None),
    one(Inner), one(Inner | Other), one(Other), parts("Two", a=(Inner, ...), b=(Inner, ...)),
    parts("Two", a=(Inner, ...), b=(Other, ...)), parts("Two", a=(Inner, 1), b=(Inner, ...)),
    one(str, str_max_length=3), one(str, extra="allow"), one(str, str_strip_whitespace=True),
    parts("One", other=(int, ...)), parts("One", part=(int, 1)), parts("Two", part=(int, ...)),
    parts("One", part=(int, Field(alias="x"))), one(Annotated[int, AfterValidator(checked)]),
    {"type": "integer"}, {"type": "number"}, {"type": ["integer"]}, {"const": 1}, {"const": 1.0},
    {"const": True}, {"const": "1"}, {"properties": {"a": {}, "b": {}}},
    {"properties": {"b": {}, "a": {}}},
]  # fmt: skip


def test_different_sources_have_different_contents():
    contents = [identity(source) for source in DIFFERENT]
    assert None not in contents
    assert len(set(contents)) == len(contents)


@pytest.mark.parametrize("source", DIFFERENT, ids=repr)
def test_the_content_stays_the_same(source):
    assert identity(source) == identity(source)
    if isinstance(source, dict):
        assert copied(identity(source)) == source


@pytest.mark.parametrize("build", [lambda: one(list[Inner]), lambda: parts("P", a=(Inner, 1))])
def test_equal_classes_have_equal_contents(build):
    assert identity(build()) == identity(build())


def shape_models() -> list[type[BaseModel]]:
    found = [value for value in vars(shapes).values() if isinstance(value, type)]
    return [value for value in found if issubclass(value, BaseModel) and value is not BaseModel]


def test_equal_contents_mean_equal_nodes():
    """Over everything at hand, with everything that has one content."""
    nodes: dict[bytes, str] = {}
    for source in [*DIFFERENT, *DIFFERENT, *shape_models()]:
        content = identity(source)
        if content is None:
            continue
        try:
            digest = fingerprint(load_schema(source).schema, Options())
        except SchemaError:
            continue
        assert nodes.setdefault(content, digest) == digest


def validator(value: Any) -> Any:
    return value


OBSCURE: list[Any] = [
    int, list[int], "a", None, {"a": object()}, {"a": Word.RED}, {"a": {1: date(2020, 1, 1)}},
    one(Annotated[str, Field(pattern=re.compile("a"))]),
    one(Annotated[date, Field(ge=date(2020, 1, 1))]),
    one(Annotated[Decimal, Field(ge=Decimal("1.5"))]),
    one(Annotated[int, AfterValidator(functools.partial(validator))]),
]  # fmt: skip


@pytest.mark.parametrize("source", OBSCURE, ids=plain)
def test_what_cannot_be_written_exactly_has_no_content(source):
    assert identity(source) is None


def test_functions_of_pydantic_are_always_read():
    from ipaddress import IPv4Address

    assert identity(one(IPv4Address)) is None


def test_the_users_validators_do_not_count_but_that_there_are_some_does():
    content = identity(WithValidator)
    assert content is not None
    assert content != identity(create_model("WithValidator", part=(int, ...)))


def test_unfinished_models_have_no_content():
    class Late(BaseModel):
        later: Missing  # noqa: F821

    assert identity(Late) is None


def test_the_readers_look_at_nothing_that_is_left_out():
    """No reader names one of the keys, and each is among those that change nothing."""
    assert UNREAD <= HARMLESS
    folder = Path(module.__file__).parent
    for path in folder.glob("core*.py"):
        text = path.read_text(encoding="utf-8")
        for key in UNREAD - {"default"}:
            assert f'["{key}"]' not in text, path
            assert f'get("{key}"' not in text, path
        assert '["default"]' not in text
        assert 'get("default"' not in text
    assert {"model", "enum"} <= CLASSES


SCRIPT = """
from structgen.schema.identity import identity
from structgen.bench.workload import MODELS
import hashlib
print(hashlib.sha256(b"".join(map(identity, MODELS))).hexdigest())
"""


def test_other_processes_find_the_same_content():
    root = Path(module.__file__).parents[2]
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=root, check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
        ).stdout
        for seed in "12"
    ]  # fmt: skip
    assert runs[0] == runs[1] != ""


def test_typing_constructs_do_not_disturb():
    assert identity(one(typing.Optional[int])) == identity(one(int | None))  # noqa: UP045


def test_parts_that_hold_each_other_many_times_have_no_identity():
    schema: dict[str, object] = {"type": "integer"}
    for _ in range(200):
        schema = {"anyOf": [schema, schema]}
    started = time.process_time()
    assert identity(schema) is None
    assert time.process_time() - started < 5
