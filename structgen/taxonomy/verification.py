"""The structural proof: what an automaton accepts is enumerated and compared with the labels.

The automaton that was compiled for a vocabulary is walked byte by byte, through all bytes that it
allows anywhere, so that nothing is assumed about how it was built. Then each label is written with
the tokens that the tokenizer itself would take, each of which the masks must allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from structgen.compiled import CompiledSchema
from structgen.compiler import compile as compile_schema
from structgen.errors import Fault, IllegalTokenError, VocabularyError
from structgen.schema.nodes import json_text
from structgen.schema.roots import OneOf
from structgen.tokens.automaton import bind
from structgen.tokens.profiles import ProfileCache
from structgen.tokens.states import State
from structgen.tokens.tables import TableSource
from structgen.tokens.vocabulary import Vocabulary
from structgen.tokens.writable import unspelled

MOST_SHOWN = 20
"""Texts of a kind that a result names."""
MOST_FORCED = 4096
MOST_BYTES = 16 * 2**20
"""Of the masks that are kept apart for the walk; a set of labels needs none."""


@dataclass(frozen=True, slots=True)
class Language:
    """What one compiled form of a taxonomy accepts, compared with its labels."""

    count: int
    """Different texts that the automaton accepts."""
    missing: tuple[str, ...]
    """Labels that it does not accept."""
    extra: tuple[str, ...]
    """Texts that it accepts and that are no labels, at most `MOST_SHOWN`."""
    unreached: tuple[str, ...]
    """Labels that the tokenizer's own tokens do not lead to, or do not spell."""

    @property
    def ok(self) -> bool:
        """Whether it accepts the labels and nothing else, and every one can be reached."""
        return not (self.missing or self.extra or self.unreached)


@dataclass(frozen=True, slots=True)
class Verification:
    """What `Taxonomy.verify` has found; it is true where everything holds."""

    name: str
    n_labels: int
    bare: Language
    """Written as plain text."""
    json: Language
    """Written as JSON strings."""
    encodes: bool
    """Whether it is known how the tokenizer writes a text; otherwise only bytes were looked at."""

    @property
    def ok(self) -> bool:
        return self.bare.ok and self.json.ok

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        if self.ok:
            told = (
                "each is reached by the tokenizer's own tokens, which spell it exactly"
                if self.encodes
                else "how the tokenizer writes them is not known"
            )
            return (
                f"{self.name}: the automata accept exactly the {self.n_labels} labels, "
                f"{self.bare.count} texts bare and {self.json.count} in JSON; {told}"
            )
        parts = [*_told("bare", self.bare), *_told("in JSON", self.json)]
        return f"{self.name}: of {self.n_labels} labels " + "; ".join(parts)


def _told(form: str, found: Language) -> Iterator[str]:
    for what, texts in (
        ("not accepted", found.missing),
        ("accepted though no label", found.extra),
        ("not reached by the tokenizer's own tokens", found.unreached),
    ):
        if texts:
            shown = ", ".join(f"{text!r:.80}" for text in texts[:3])
            yield f"{len(texts)} are {what} {form}, such as {shown}"


def verify(
    texts: Sequence[str], annotation: Any, vocabulary: Vocabulary, name: str
) -> Verification:
    """Compare what is accepted, bare and as JSON, with the texts of a taxonomy.

    Args:
        annotation: the type of one label.
    """
    bare = _language(compile_schema(OneOf(texts), vocabulary), {t.encode(): t for t in texts})
    quoted = {json_text(text): text for text in texts}
    as_json = _language(compile_schema(annotation, vocabulary), quoted)
    return Verification(name, len(texts), bare, as_json, vocabulary.encode is not None)


def _language(compiled: CompiledSchema[Any], expected: dict[bytes, str]) -> Language:
    found: set[bytes] = set()
    extra: list[str] = []
    longest = max(map(len, expected))
    for text in accepted(compiled, longest):
        if text in expected:
            found.add(text)
        else:
            extra.append(text.decode(errors="replace"))
            if len(extra) == MOST_SHOWN:
                break  # there may be no end of them
    missing = [label for text, label in expected.items() if text not in found]
    return Language(
        len(found) + len(extra), tuple(missing), tuple(extra), tuple(_unreached(compiled, expected))
    )


def accepted(compiled: CompiledSchema[Any], longest: int) -> Iterator[bytes]:
    """Every text that the automaton accepts; one that grows beyond `longest` is not followed on.

    Where only one byte can follow, it is taken without a mask, which the engine does as well.
    """
    limits = compiled.options.limits
    automaton = bind(compiled.program, _bytes_alone(), limits)
    tables = TableSource(automaton, ProfileCache(MOST_BYTES), limits)
    pending: list[tuple[bytes, State]] = [(b"", tables.current().start)]
    while pending:
        text, state = pending.pop()
        table = tables.current()  # a new one, when the old one is full
        state = table.adopt(state)
        forced = table.forced_bytes(state, MOST_FORCED)
        if forced:
            text, state = text + forced, table.after(state, forced)
        if state.accepting:
            yield text
        if state.complete:
            continue
        if len(text) > longest:
            yield text  # no label begins like this
            continue
        row = table.row(state).dense()
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")[:256])
        for byte in allowed.tolist():
            data = bytes((byte,))
            pending.append((text + data, table.after(state, data)))


@cache
def _bytes_alone() -> Vocabulary:
    """A vocabulary of the single bytes, whose ids are their values."""
    return Vocabulary.from_bytes([bytes((byte,)) for byte in range(256)], eos_token_ids=256)


def _unreached(compiled: CompiledSchema[Any], expected: dict[bytes, str]) -> Iterator[str]:
    """Labels whose tokens are not all allowed, one after the other, or do not spell them.

    Labels with the same first tokens stand together, so that these are taken once.
    """
    vocabulary = compiled.vocabulary
    if vocabulary.encode is None:
        return
    written: list[tuple[list[int], str]] = []
    for data, label in expected.items():
        try:
            ids = vocabulary.encode(data.decode())
        except VocabularyError:
            yield label
            continue
        if vocabulary.decode(ids) == data:
            written.append((ids, label))
        else:
            yield label
    session = compiled.session()
    for ids, label in sorted(written):
        taken = session.token_ids
        same = 0
        while same < min(len(taken), len(ids)) and taken[same] == ids[same]:
            same += 1
        session.rollback(len(taken) - same)
        try:
            for token_id in ids[same:]:
                if not session.allows(token_id):
                    yield label
                    break
                session.advance(token_id)
            else:
                if not session.accepting:
                    yield label
        except IllegalTokenError:  # although the mask allows it
            yield label


def unwritable_labels(texts: Sequence[str], vocabulary: Vocabulary) -> list[Fault]:
    """The labels that no tokens of a vocabulary spell."""
    if not vocabulary.missing_bytes:
        return []
    rows = {text.encode(): row for row, text in enumerate(texts)}
    found = list(unspelled(rows, vocabulary))
    advice = "rename it, or use another tokenizer"
    faults = [
        Fault(f"[{rows[data]}]", f"the tokenizer has no tokens that write {data.decode()!r:.200}",
              advice)
        for data in found[:MOST_SHOWN]
    ]  # fmt: skip
    if len(found) > MOST_SHOWN:
        faults.append(Fault("$", f"in all {len(found)} labels that it cannot write"))
    return faults
