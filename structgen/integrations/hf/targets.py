"""What the rows of a call of `generate` shall become, and where they end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from structgen.automata.frames import IntArray
from structgen.compiler import CompiledSchema
from structgen.compiler import compile as compile_schema
from structgen.errors import OptionError
from structgen.tokens.vocabulary import Vocabulary, id_set


@dataclass(frozen=True, slots=True)
class Targets:
    """One schema for all prompts, or one for each; all are bound to the same vocabulary."""

    compiled: tuple[CompiledSchema[Any], ...]

    @property
    def vocabulary(self) -> Vocabulary:
        return self.compiled[0].vocabulary

    def of_rows(self, n_rows: int) -> list[CompiledSchema[Any]]:
        """The schema of each row, where beams and returned sequences of a prompt are neighbours.

        Example: two schemas A and B and four rows -> `[A, A, B, B]`
        """
        n_rows_each, rest = divmod(n_rows, len(self.compiled))
        if rest or not n_rows_each:
            raise OptionError(
                f"there are {len(self.compiled)} schemas for {n_rows} rows; pass one schema, or "
                "one for each prompt of the batch"
            )
        return [compiled for compiled in self.compiled for _ in range(n_rows_each)]


def targets(schema: object, tokenizer: object) -> Targets:
    """Compile what is not compiled yet.

    Args:
        schema: anything that `structgen.compile` takes, a `CompiledSchema`, or a list of those.
        tokenizer: a tokenizer or a `Vocabulary`; None where everything is compiled.
    """
    each = list(cast("Sequence[object]", schema)) if isinstance(schema, list | tuple) else [schema]
    if not each:
        raise OptionError("the list of schemas is empty; pass one for each prompt of the batch")
    vocabulary = _vocabulary(each, tokenizer)
    compiled = tuple(
        one if isinstance(one, CompiledSchema) else compile_schema(one, vocabulary) for one in each
    )
    if any(one.vocabulary != vocabulary for one in compiled):
        raise OptionError(
            "the schemas are compiled for different vocabularies; compile them for the one of the "
            "model that generates"
        )
    return Targets(compiled)


def _vocabulary(schemas: Sequence[object], tokenizer: object) -> Vocabulary:
    for one in schemas:
        if isinstance(one, CompiledSchema):
            return one.vocabulary
    if isinstance(tokenizer, Vocabulary):
        return tokenizer
    if tokenizer is None:
        raise OptionError("a schema that is not compiled yet needs the model's tokenizer too")
    return Vocabulary.from_tokenizer(tokenizer)


@dataclass(frozen=True, slots=True)
class Ends:
    """The end tokens at which `generate` stops, as masks of int32[N], read-only."""

    only: IntArray
    """1 for these tokens alone: all that is left behind the end of a value."""
    kept: IntArray | None
    """0 for the vocabulary's other end tokens, 1 elsewhere; None if there are no others."""


def ends(vocabulary: Vocabulary, stops: int | Iterable[int] | None) -> Ends:
    """Masks for `stops`, the `eos_token_id` of a generation config; None for all end tokens.

    Example: the vocabulary's end tokens are 1 and 2, `stops` is `[2, 5]` -> only 2 may end a value
    """
    known = frozenset(vocabulary.eos_token_ids)
    used = known
    if stops is not None:
        used = known & id_set("eos_token_id", [stops] if isinstance(stops, int) else stops)
    if not used:
        raise OptionError(
            f"generate() stops at {stops}, but the end tokens of the vocabulary are "
            f"{sorted(known)}; make it with Vocabulary.from_tokenizer(tokenizer, eos_token_ids=...)"
        )
    others = known - used
    return Ends(_words(vocabulary, used), ~_words(vocabulary, others) if others else None)


def _words(vocabulary: Vocabulary, token_ids: Iterable[int]) -> IntArray:
    bits = np.zeros(vocabulary.n_words * 32, np.uint8)
    bits[list(token_ids)] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def check_count(name: str, value: object, *, least: int) -> None:
    """Refuse what is neither None nor a whole number of at least `least`."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"{name}={value!r} must be a whole number from {least} up, or None")
