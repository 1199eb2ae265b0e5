"""Equal content, equal fingerprint."""

from __future__ import annotations

import os
import subprocess
import sys

from pydantic import BaseModel, Field, create_model

from structgen.options import Limits, Options
from structgen.schema.fingerprint import fingerprint
from structgen.schema.load import load_schema


def digest(source, **options) -> str:
    return fingerprint(load_schema(source).schema, Options(**options))


def test_equal_content_is_equal_and_other_content_is_not():
    one, same = create_model("M", a=(int, 1)), create_model("M", a=(int, 2))
    assert digest(one) == digest(same)
    others = [
        create_model("M", a=(int, ...)),
        create_model("M", b=(int, 1)),
        create_model("M", a=(str, 1)),
        create_model("M", a=(int, Field(1, le=5))),
        create_model("M", a=(int, 1), b=(int, 1)),
        create_model("M", b=(int, 1), a=(int, 1)),
    ]
    assert len({digest(one), *map(digest, others)}) == len(others) + 1


def test_options_matter():
    model = create_model("M", a=(int, 1))
    options = [
        {}, {"layout": "compact"}, {"layout": "flexible"}, {"require_all": True},
        {"limits": Limits(max_depth=3)},
    ]  # fmt: skip
    assert len({digest(model, **chosen) for chosen in options}) == len(options)


SCRIPT = """
from pydantic import BaseModel, Field
from structgen.options import Options
from structgen.schema.fingerprint import fingerprint
from structgen.schema.load import load_schema

class Inner(BaseModel):
    x: "list[Inner]" = []

class M(BaseModel, extra="allow"):
    one: int = Field(alias="two")
    three: int = 3
    four: Inner
    five: Inner

print(fingerprint(load_schema(M).schema, Options()))
"""


def test_the_same_in_every_process():
    found = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1


def test_loading_twice_gives_the_same():
    class Tree(BaseModel):
        children: list[Tree] = []

    assert digest(Tree) == digest(Tree)
