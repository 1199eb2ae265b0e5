"""One-call functions over `Generator`, the default model, and the `structured` decorator."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from pydantic import BaseModel

from structgen.checks import check_beams, check_max_new_tokens, check_retries
from structgen.errors import OptionError
from structgen.generator import MAX_NEW_TOKENS, Generator
from structgen.later import later
from structgen.options import Layout, Options
from structgen.prompts import Prompt, SchemaPrompt
from structgen.runtime.lm import LanguageModel
from structgen.runtime.sampling import Sampling
from structgen.schema.roots import Form
from structgen.tokens.vocabulary import Vocabulary, id_set

if TYPE_CHECKING:
    import structgen.aligned as aligned
    import structgen.linter as linter
    import structgen.prompts as prompting
    import structgen.runtime.hf as models
    import structgen.schema.bans as bans
    import structgen.schema.load as loading
    import structgen.streams as streams
    import structgen.warming as warming
else:
    aligned = later("structgen.aligned")
    bans = later("structgen.schema.bans")
    linter = later("structgen.linter")
    loading = later("structgen.schema.load")
    models = later("structgen.runtime.hf")
    prompting = later("structgen.prompts")
    streams = later("structgen.streams")
    warming = later("structgen.warming")

T = TypeVar("T")
Model = TypeVar("Model", bound=type[BaseModel])

_default_lock = threading.Lock()
_default: list[models.HFModel] = []


def default_lm() -> models.HFModel:
    """The default model, SmolLM2-135M-Instruct; loaded at the first call and kept.

    Raises:
        MissingDependencyError: its wheel is not installed; the message says how.
    """
    with _default_lock:
        if not _default:
            _default.append(models.load())
        return _default[0]


class GeneratorOptions(TypedDict, total=False):
    """The options of `Generator`."""

    max_new_tokens: int
    do_sample: bool
    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    seed: int | None
    repetition_penalty: float
    num_beams: int
    sampling: aligned.SamplingMethod
    retries: int
    layout: Layout
    require_all: bool
    schema_prompt: SchemaPrompt
    banned_strings: Iterable[str] | None
    allowed_token_ids: Iterable[int] | None
    banned_token_ids: Iterable[int] | None


@overload
def generate(
    schema: type[T] | Form[T],
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    **options: Unpack[GeneratorOptions],
) -> T: ...
@overload
def generate(
    schema: Any,
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    **options: Unpack[GeneratorOptions],
) -> Any: ...
def generate(
    schema: Any,
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    **options: Unpack[GeneratorOptions],
) -> Any:
    """Generate one value of a type; keep a `Generator` to generate many.

    Example: `generate(Triage, "My card was charged twice.") -> Triage(...)`

    Args:
        lm: a language model, see `structgen.load`; None for the default one.
        options: those of `Generator`.

    Raises:
        StructgenError: see `Generator`; the schema and the options are checked before a model is
            loaded.
    """
    return _generator("generate", schema, prompt, lm, options)(prompt)


@overload
def stream(
    schema: type[T] | Form[T],
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    **options: Unpack[GeneratorOptions],
) -> streams.Stream[T]: ...
@overload
def stream(
    schema: Any,
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    **options: Unpack[GeneratorOptions],
) -> streams.Stream[Any]: ...
def stream(
    schema: Any,
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    **options: Unpack[GeneratorOptions],
) -> streams.Stream[Any]:
    """Generate one value of a type, token by token; arguments as for `generate`.

    Example: `for event in stream(Triage, "My card was charged twice."): print(event.partial)`
    """
    return _generator("stream", schema, prompt, lm, options).stream(prompt)


@overload
def astream(
    schema: type[T] | Form[T],
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    **options: Unpack[GeneratorOptions],
) -> streams.AsyncStream[T]: ...
@overload
def astream(
    schema: Any,
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    **options: Unpack[GeneratorOptions],
) -> streams.AsyncStream[Any]: ...
def astream(
    schema: Any,
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    **options: Unpack[GeneratorOptions],
) -> streams.AsyncStream[Any]:
    """The same for `async for`: compiling, loading and each step run in a worker thread.

    The arguments are checked with the first event.

    Example: `async for event in astream(Triage, "My card was charged twice."): ...`
    """
    return streams.AsyncStream(
        lambda: _generator("astream", schema, prompt, lm, options).stream(prompt)
    )


@overload
async def agenerate(
    schema: type[T] | Form[T],
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    **options: Unpack[GeneratorOptions],
) -> T: ...
@overload
async def agenerate(
    schema: Any,
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    **options: Unpack[GeneratorOptions],
) -> Any: ...
async def agenerate(
    schema: Any,
    prompt: Prompt,
    *,
    lm: LanguageModel | None = None,
    **options: Unpack[GeneratorOptions],
) -> Any:
    """Generate one value of a type in worker threads; arguments as for `generate`.

    Example: `await agenerate(Triage, "My card was charged twice.") -> Triage(...)`
    """
    made = partial(_generator, "agenerate", schema, prompt, lm, options)
    return await (await streams.in_thread(made)).agenerate(prompt)


def _generator(
    caller: str, schema: Any, prompt: Prompt, lm: LanguageModel | None, options: GeneratorOptions
) -> Generator[Any]:
    """The handle; what can be checked without a model is checked before one is loaded."""
    for name in options.keys() - GeneratorOptions.__annotations__.keys():
        raise TypeError(f"{caller}() got an unexpected keyword argument {name!r}")
    options = with_sets(options)
    if lm is None:
        _check_early(schema, prompt, options)
        lm = default_lm()
    return Generator[Any](schema, lm, **options)


def with_sets(options: GeneratorOptions) -> GeneratorOptions:
    """The same options with what can be looked at twice in place of iterators."""
    banned = bans.banned_texts(options.get("banned_strings", ()))
    made: GeneratorOptions = {**options, "banned_strings": banned}
    allowed = options.get("allowed_token_ids")
    if allowed is not None:
        made["allowed_token_ids"] = id_set("allowed_token_ids", allowed)
    made["banned_token_ids"] = id_set("banned_token_ids", options.get("banned_token_ids", ()))
    return made


def _check_early(schema: Any, prompt: Prompt, options: GeneratorOptions) -> None:
    """Refuse what would be refused with a model too."""
    Options(options.get("layout", "spaced"), options.get("require_all", False))
    enforced = bans.without_strings(
        loading.load_schema(schema).schema, bans.banned_texts(options.get("banned_strings", ()))
    )
    prompting.schema_text(enforced, options.get("schema_prompt", True))
    prompting.check_prompt(prompt)
    check_max_new_tokens(options.get("max_new_tokens", MAX_NEW_TOKENS))
    named = {field.name for field in fields(Sampling)} & options.keys()
    sampling = Sampling(**{name: options[name] for name in named})
    beams = check_beams(options.get("num_beams", 1), sampling)
    aligned.aligned_options(options.get("sampling", "masked"), sampling, beams)
    check_retries(options.get("retries", 0), sampling, beams)


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
    linter.ignore_in_class(model, ignore)
    if model.__pydantic_complete__:
        if not lint:
            loading.load_schema(model)
        elif findings := linter.lint(model, ignore=ignore):
            warnings.warn(linter.DesignWarning(model.__name__, findings), stacklevel=frames)
    return model


def warmup(
    *schemas: Any,
    lm: LanguageModel | None = None,
    vocabulary: Vocabulary | None = None,
    layout: Layout = "spaced",
    require_all: bool = False,
) -> warming.WarmupReport:
    """Compile schemas ahead of time, fill the masks of their strings, and keep both on disk.

    It also loads the kernels, which takes a process 0.1 s once. A process that starts later finds
    the schemas on disk.

    Example: `warmup(Triage, Invoice, lm=lm).total_s`

    Args:
        lm: whose vocabulary is meant; None for the default model, unless there is a `vocabulary`.
    """
    if vocabulary is None:
        vocabulary = (lm or default_lm()).vocabulary
    return warming.warm_up(schemas, vocabulary, Options(layout, require_all))


def check(schema: Any) -> None:
    """Raise what compiling `schema` would raise about the schema itself; needs no model."""
    loading.load_schema(schema)
