"""From the token ids that `generate` returns to validated values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, cast, overload

from torch import Tensor

from structgen.compiler import CompiledSchema
from structgen.errors import GenerationError, OptionError
from structgen.integrations.hf.targets import Targets
from structgen.tokens.session import Session

T = TypeVar("T")


class Bound(Protocol):
    """What `generate` was given: a `StructgenLogitsProcessor` or a `StructgenGenerate`."""

    @property
    def targets(self) -> Targets: ...
    def may_stop_after(self, n_tokens: int, prompt_length: int) -> bool: ...


@overload
def parse(source: CompiledSchema[T], sequences: object, prompt_length: int) -> list[T]: ...
@overload
def parse(source: Bound, sequences: object, prompt_length: int) -> list[Any]: ...
def parse(source: CompiledSchema[Any] | Bound, sequences: object, prompt_length: int) -> list[Any]:
    """The validated value of each row.

    Example: `parse(processor, ids, inputs.input_ids.shape[1]) -> [Person(...), Person(...)]`

    Args:
        source: what the rows were generated with.
        sequences: what `generate` returned: ids [R, L], or an output that holds them.
        prompt_length: tokens of the prompt, padding included: `input_ids.shape[1]`.

    Raises:
        GenerationError: a row's value is not finished, or its tokens are not legal.
        ValidationFailedError: a Python validator rejected a value.
    """
    rows = _rows(sequences)
    if isinstance(source, CompiledSchema):
        compiled, bound = [source] * len(rows), None
    else:
        compiled, bound = source.targets.of_rows(len(rows)), source
    texts: list[bytes] = []
    for index, (one, row) in enumerate(zip(compiled, rows, strict=True)):
        session = _read(one, row[prompt_length:], index)
        may_stop = bound is not None and bound.may_stop_after(session.n_tokens, prompt_length)
        texts.append(_finished(one, session, index, may_stop=may_stop))
    return [one.validate(text) for one, text in zip(compiled, texts, strict=True)]


def _rows(sequences: object) -> list[list[int]]:
    ids = getattr(sequences, "sequences", sequences)
    rows = ids.tolist() if isinstance(ids, Tensor) else ids
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise OptionError(
            f"parse() takes what generate() returned, token ids of shape [rows, length], got "
            f"{type(sequences).__name__}"
        )
    return cast("list[list[int]]", rows)


def _read(compiled: CompiledSchema[Any], tokens: Sequence[int], index: int) -> Session:
    """A session behind these tokens; what stands behind the end of a value is not looked at."""
    session = compiled.session()
    for token in tokens:
        if session.finished or session.complete:
            break
        if not session.allows(token):
            written = compiled.vocabulary.decode(session.token_ids)
            raise GenerationError(
                f"row {index}: token {token} cannot follow {written!r} in {compiled.title}, so it "
                "was not chosen by structgen; pass the prompt_length and the schema of these "
                "rows, and look for stopping criteria that closed the row"
            )
        session.advance(token)
    return session


def _finished(
    compiled: CompiledSchema[Any], session: Session, index: int, *, may_stop: bool
) -> bytes:
    """The bytes of a value that was ended on purpose."""
    text = compiled.vocabulary.decode(session.token_ids)
    if session.finished or session.complete or (session.accepting and may_stop):
        return text
    raise GenerationError(
        f"row {index}: the value of {compiled.title} is not finished after {session.n_tokens} "
        f"tokens: {text!r}; give max_new_tokens to structgen too, which then finishes each value "
        "within it"
    )
