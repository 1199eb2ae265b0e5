"""Every rule has a page, its code runs and prints what is shown, and the index names all."""

from __future__ import annotations

import re
from typing import Any

import pytest

from structgen.linter import RULES
from tests.test_examples import ROOT, blocks, plain, run

PAGES = ROOT / "docs" / "lint"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_page_says_what_why_example_and_instead(rule, capsys):
    path = PAGES / f"{rule.code}.md"
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {rule.code}: {rule.name}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["What", "Why", "Example", "Instead"]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed: list[str] = []
    for block in blocks(path):
        run(block, path, namespace)
        printed.append(plain(capsys.readouterr().out))
        assert printed[-1] == plain(block.shown or ""), f"{path.name}, line {block.line}"
    example, instead = printed
    assert {line.split()[0] for line in example.splitlines()} == {rule.code}
    assert instead == "[]"


def test_there_are_no_other_pages():
    assert {path.stem for path in PAGES.iterdir()} == {rule.code for rule in RULES}


def test_the_index_names_every_rule():
    index = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
    for rule in RULES:
        assert f"| [`{rule.code}`](lint/{rule.code}.md) | `{rule.name}` |" in index
