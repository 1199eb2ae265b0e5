"""One-call functions over `Generator`, the default model, and the `structured` decorator."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pydantic import BaseModel

from structgen.errors import OptionError
from structgen.generator import MAX_NEW_TOKENS, Generator, check_max_new_tokens, check_retries
from structgen.linter import DesignWarning, ignore_in_class
from structgen.linter import lint as lint_schema
from structgen.options import Layout, Options
from structgen.prompts import Prompt, SchemaPrompt, check_prompt, schema_text
from structgen.runtime.lm import LanguageModel
from structgen.runtime.sampling import Sampling
from structgen.schema.bans import banned_texts, without_strings
from structgen.schema.load import load_schema
from structgen.schema.roots import Form
from structgen.tokens.vocabulary import id_set

if TYPE_CHECKING:
    from structgen.runtime.hf import HFModel

T = TypeVar("T")
Model = TypeVar("Model", bound=type[BaseModel])

_default_lock = threading.Lock()
_default: list[HFModel] = []


def default_lm() -> HFModel:
    """The default model, SmolLM2-135M-Instruct; loaded at the first call and kept.

    Raises:
        MissingDependencyError: its wheel is not installed; the message says how.
    """
    with _default_lock:
        if not _default:
            from structgen.runtime.hf import load

            _default.append(load())
        return _default[0]


@overload
def generate(
    schema: type[T] | Form[T],
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
    do_sample: bool = False,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    seed: int | None = None,
    retries: int = 0,
    layout: Layout = "spaced",
    require_all: bool = False,
    schema_prompt: SchemaPrompt = True,
    banned_strings: Iterable[str] | None = (),
    allowed_token_ids: Iterable[int] | None = None,
    banned_token_ids: Iterable[int] | None = (),
) -> T: ...
@overload
def generate(
    schema: Any,
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
    do_sample: bool = False,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    seed: int | None = None,
    retries: int = 0,
    layout: Layout = "spaced",
    require_all: bool = False,
    schema_prompt: SchemaPrompt = True,
    banned_strings: Iterable[str] | None = (),
    allowed_token_ids: Iterable[int] | None = None,
    banned_token_ids: Iterable[int] | None = (),
) -> Any: ...
def generate(
    schema: Any,
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
    do_sample: bool = False,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    seed: int | None = None,
    retries: int = 0,
    layout: Layout = "spaced",
    require_all: bool = False,
    schema_prompt: SchemaPrompt = True,
    banned_strings: Iterable[str] | None = (),
    allowed_token_ids: Iterable[int] | None = None,
    banned_token_ids: Iterable[int] | None = (),
) -> Any:
    """Generate one value of a type; keep a `Generator` to generate many.

    Example: `generate(Triage, "My card was charged twice.") -> Triage(...)`

    Args:
        lm: a language model, see `structgen.load`; None for the default one.

    The other options are those of `Generator`.

    Raises:
        StructgenError: see `Generator`; the schema and the options are checked before a model is
            loaded.
    """
    banned = banned_texts(banned_strings)
    allowed = None if allowed_token_ids is None else id_set("allowed_token_ids", allowed_token_ids)
    unwanted = id_set("banned_token_ids", banned_token_ids)
    if lm is None:
        Options(layout, require_all)
        schema_text(without_strings(load_schema(schema).schema, banned), schema_prompt)
        check_prompt(prompt)
        check_max_new_tokens(max_new_tokens)
        check_retries(retries, Sampling(do_sample, temperature, top_k, top_p, min_p, seed))
        lm = default_lm()
    generator = Generator[Any](
        schema,
        lm,
        max_new_tokens=max_new_tokens,
        do_sample=do_sample,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        seed=seed,
        retries=retries,
        layout=layout,
        require_all=require_all,
        schema_prompt=schema_prompt,
        banned_strings=banned,
        allowed_token_ids=allowed,
        banned_token_ids=unwanted,
    )
    return generator(prompt)


@overload
def structured(model: Model) -> Model: ...


@overload
def structured(*, ignore: Collection[str] = (), lint: bool = True) -> Callable[[Model], Model]: ...


def structured(
    model: Model | None = None, *, ignore: Collection[str] = (), lint: bool = True
) -> Model | Callable[[Model], Model]:
    """Class decorator: check a Pydantic model where it is written, and its design.

    The class itself is returned, unchanged. It is compiled at the first use and found again by
    its identity. A model that refers to classes not defined yet is checked at its first use.
    What the design lint finds is one `DesignWarning` a class.

    Example:
        @structured
        class Triage(BaseModel): ...

        @structured(ignore=["SG103"])
        class Person(BaseModel): ...

    Args:
        ignore: codes or names of lint rules to leave out for this class, also where it is a part of
            others, see `structgen.lint`.
        lint: False for no design lint at all.

    Raises:
        SchemaError: a part of the model cannot be enforced; all faults at once.
        OptionError: it is no Pydantic model, or a rule is unknown.
    """
    if model is None:
        return partial(_checked, ignore=ignore, lint=lint, frames=2)
    return _checked(model, ignore, lint, frames=3)


def _checked(model: Model, ignore: Collection[str], lint: bool, frames: int) -> Model:
    """The model itself; `frames` further out is the code to warn about."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise OptionError(f"structured is for Pydantic models, got {model!r}")
    ignore_in_class(model, ignore)
    if model.__pydantic_complete__:
        if not lint:
            load_schema(model)
        elif findings := lint_schema(model, ignore=ignore):
            warnings.warn(DesignWarning(model.__name__, findings), stacklevel=frames)
    return model


def check(schema: Any) -> None:
    """Raise what compiling `schema` would raise about the schema itself; needs no model."""
    load_schema(schema)
