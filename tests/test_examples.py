"""The examples and every Python block of the README and the docs run, and say what they show.

In Markdown, a `python` block is run, all blocks of a page in one namespace; the `text` or `json`
block right behind it is what it prints. A `py` block is a fragment and is not run.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from structgen import api
from structgen.testing import RandomLM, byte_vocabulary

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
DOCS = sorted((ROOT / "docs").glob("*.md"))
README = ROOT / "README.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    """A Python block of a page, and the output that is shown for it."""

    code: str
    line: int
    shown: str | None


def blocks(path: Path) -> Iterator[Block]:
    """The Python blocks of a Markdown page."""
    text = path.read_text(encoding="utf-8")
    fences = list(FENCE.finditer(text))
    for index, fence in enumerate(fences):
        if fence[1] == "python":
            behind = fences[index + 1 : index + 2]
            shown = [
                after[2]
                for after in behind
                if after[1] in ("text", "json") and not text[fence.end() : after.start()].strip()
            ]
            line = text.count("\n", 0, fence.start()) + 2
            yield Block(fence[2], line, shown[0] if shown else None)


def run(block: Block, path: Path, namespace: dict[str, Any]) -> None:
    """Run a block as if it stood in its page, so that tracebacks name the page's lines."""
    code = "\n" * (block.line - 1) + block.code
    exec(compile(code, str(path), "exec", dont_inherit=True), namespace)


def load(path: Path) -> ModuleType:
    """An example as a module, whose `main` is not run."""
    spec = importlib.util.spec_from_file_location(f"examples_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Pydantic looks the names of annotations up there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def quiet_again() -> Iterator[None]:
    """What a page sets on the logger holds for that page only."""
    logger = logging.getLogger("structgen")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture
def default_model(smollm2, monkeypatch):
    """The default model, loaded once for all tests."""
    monkeypatch.setattr(api, "_default", [smollm2])


def test_blocks_are_found_with_what_is_shown_for_them(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n\n```python\nprint(1)\n```\n\n```text\n1\n```\nwords\n```py\n?\n```\n")
    assert list(blocks(page)) == [Block("print(1)\n", 4, "1\n")]


@pytest.mark.usefixtures("default_model")
@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_the_docs_say_what_their_code_prints(path, capsys):
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(path):
        run(block, path, namespace)
        printed = plain(capsys.readouterr().out)
        assert printed == plain(block.shown or ""), f"{path.name}, line {block.line}"


def plain(text: str) -> str:
    """Without what depends on Pydantic's version and on trailing blanks."""
    text = re.sub(r"errors\.pydantic\.dev/[\d.]+", "errors.pydantic.dev/x", text)
    return "\n".join(line.rstrip() for line in text.splitlines())


@pytest.mark.usefixtures("default_model")
def test_the_readmes_example_runs_and_has_the_shape_that_is_shown(capsys):
    namespace: dict[str, Any] = {"__name__": "__main__"}
    outputs: list[str] = []
    for block in blocks(README):
        run(block, README, namespace)
        outputs.append(capsys.readouterr().out)
        assert block.shown is not None
        # What is chosen may differ between processors, whose rounding does; the shape may not.
        if block.shown.startswith("{"):
            assert list(json.loads(block.shown)) == list(json.loads(outputs[-1]))
            for text in (block.shown, outputs[-1]):
                namespace["Person"].model_validate_json(text)
        else:
            number, quoted = re.compile(r"[\d.]+"), re.compile("'[^']*'")
            shown_and_found = (plain(block.shown), plain(outputs[-1]))
            shapes = {quoted.sub("Q", number.sub("#", text)) for text in shown_and_found}
            assert len(shapes) == 1
    assert len(outputs) == 6


def test_the_readme_links_to_files_that_exist():
    for page in (README, *DOCS):
        for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_map_of_the_code_names_every_file():
    page = (ROOT / "docs" / "internals.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+\.py)`", page))
    files = {path.name for path in (ROOT / "structgen").rglob("*.py")} - {"__init__.py"}
    assert named == files


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_short_and_says_what_it_shows(path):
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) < (150 if path.name == "demo.py" else 50)
    assert re.match(r'"""[^\n]+"""\n', source)
    assert 'if __name__ == "__main__":' in source


EXPECTED = {
    "agent_tools.py": r"(.*[?.] -> (forecast|set_timer) \([01]\.\d\d\): .*\n){2}"
    r"only a timer: ringing in \d+ minutes\nseveral: .+\n",
    "classification.py": r"(.*\.\n(  [01]\.\d\d \w+( > \w+)?\n){2}  next: [01]\.\d\d .*\n){3}"
    r"\d forward passes for 5 labels\n",
    "extraction.py": r"name='.*' age=\d+ home=Home\(.*\).*(\n\$\.\S+ +\".*\" .* \d\.\d\d)+\n",
    "hf_generate.py": r"(with beams: name='.*' age=\d+ job='\w+'\n){2}"
    r"(fewer passes: .*\n){2}\d+ tokens in \d+ forward passes\n",
    "reasoning_then_answer.py": r"Answer: \{.*\}\n.*\n.*\nReasonedAnswer: \{.*\}\n.*\n.*\n",
    "recursive_outline.py": r".+\n(.*\n)*\(\d+ tokens, finish_reason='complete'\)\n",
    "streaming.py": r"(?: *\d+ min  .+\n){2,4}Title: .+\n",
    "tool_choice.py": r"(.*\? -> |.*\. -> )(Weather|Timer|Mail)\(tool=.*\)\n(.*\n)+",
}


@pytest.mark.usefixtures("default_model")
@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_prints_what_it_promises(name, capsys):
    load(ROOT / "examples" / name).main()
    assert re.fullmatch(EXPECTED[name], capsys.readouterr().out)


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES} == {*EXPECTED, "demo.py"}


@pytest.fixture(scope="module")
def demo():
    return load(ROOT / "examples" / "demo.py")


@pytest.mark.usefixtures("default_model")
def test_the_demo_succeeds_with_the_default_model(demo, capsys):
    assert demo.main(["My card was charged twice for order 48213.", ""]) == 0
    assert re.search(r"valid objects +2 of 2\n", capsys.readouterr().out)


def test_the_demo_holds_with_a_model_that_talks_nonsense(demo, monkeypatch, capsys):
    monkeypatch.setattr(api, "_default", [RandomLM(byte_vocabulary())])
    assert demo.main() == 0
    printed = capsys.readouterr()
    table, summary = printed.out.split("\n\n")
    assert len(table.splitlines()) == 22
    assert "valid objects            20 of 20" in summary
    assert printed.err == "", "no progress bar where nobody watches"


def test_the_demo_fails_if_an_object_is_not_valid(demo, monkeypatch, capsys):
    monkeypatch.setattr(api, "_default", [RandomLM(byte_vocabulary())])
    monkeypatch.setattr(demo, "is_valid", lambda text: False)
    assert demo.main(["Hello"]) == 1
    assert "0 of 1" in capsys.readouterr().out


def test_the_demo_asks_pydantic_itself(demo):
    good = '{"reasoning": "", "team": "sales", "urgent": true, "order": null, "tags": []}'
    assert demo.is_valid(good)
    assert not demo.is_valid(good.replace("sales", "sale"))
    assert not demo.is_valid(good[:-1])


def test_the_demos_messages_are_varied():
    lines = (ROOT / "examples" / "messages.jsonl").read_text(encoding="utf-8").splitlines()
    messages = [json.loads(line)["message"] for line in lines]
    assert len(messages) == 20
    assert "" in messages
    assert max(map(len, messages)) > 2400
    assert any('"' in message for message in messages)
    assert any(ord(character) > 0x1F000 for message in messages for character in message)


@pytest.mark.parametrize(
    ("text", "fitted"),
    [
        ("ab", "ab   "),
        ("abcde", "abcde"),
        ("abcdef", "abcd…"),
        ("日本", "日本 "),
        ("日本語", "日本…"),
        ("ab日本", "ab日…"),
        ("abcd日", "abcd…"),
        ("a\nb\x1b[1m", "a b?…"),
        ("e\u0301", "e\u0301    "),
        ("👋👋👋", "👋👋…"),
        ("", "     "),
    ],
)
def test_a_cell_takes_its_columns(demo, text, fitted):
    assert demo.fit(text, 5) == fitted
    assert sum(map(demo.n_columns, fitted)) == 5
