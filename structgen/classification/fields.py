"""The labels inside a value: for each, how probable every alternative was at that place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from structgen.classification.finishing import Rules, finish
from structgen.classification.label_trie import written_behind
from structgen.classification.prompting import Choices
from structgen.classification.reading import PromptReader, check_room
from structgen.classification.results import Classification
from structgen.classification.scoring import Scored
from structgen.classification.walk import walk
from structgen.generator import Generator
from structgen.prompts import Prompt
from structgen.results import Generation
from structgen.runtime.lm import LanguageModel
from structgen.runtime.trees import TreeSource
from structgen.schema.nodes import Choice, Labels
from structgen.scores import labels_in
from structgen.tokens.vocabulary import Vocabulary

T = TypeVar("T")

QUOTE = b'"'


@dataclass(frozen=True, slots=True)
class ClassifiedFields(Generic[T]):
    """A value, and how probable the alternatives to each of its labels were.

    Example: `ClassifiedFields(value=Triage(...), fields={"$.team": Classification(...)}, ...)`
    """

    value: T
    fields: Mapping[str, Classification]
    """By JSON path. The probabilities hold given all that was written before the field; the first
    label of a ranking is the most probable one, which the value need not hold."""
    generation: Generation[T]


def classify_fields(generator: Generator[T], prompt: Prompt) -> ClassifiedFields[T]:
    """Generate a value, and find the exact distribution of each of its labels.

    Example: `classify_fields(Generator(Triage, lm), "My card ...").fields["$.team"].ranking`
    """
    result = generator.run(prompt)
    prompt_ids = generator.lm.encode_prompt(generator.render(prompt))
    places = list(_places(generator, result, prompt_ids))
    reader = PromptReader(generator.lm)
    fields = {place.path: _distribution(place, generator.lm, reader) for place in places}
    return ClassifiedFields(result.value, fields, result)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a label was written."""

    path: str
    labels: tuple[bytes, ...]
    before: list[int]
    """All tokens up to the one that holds the label's first byte."""
    held: bytes
    """What that token holds before the label."""
    quoted: bool


def _places(
    generator: Generator[Any], result: Generation[Any], prompt_ids: list[int]
) -> Iterator[_Place]:
    session = generator.compiled.session(prompt_ids=prompt_ids)
    kept = prompt_ids[: len(prompt_ids) - len(session.held_back)]
    pieces = generator.compiled.pieces(result.text)
    for path, labels, start, _ in labels_in(pieces, result.text):
        read, n_tokens = 0, 0
        for token in result.tokens[: len(result.token_ids)]:
            if read + len(token.text) > start:
                break
            read, n_tokens = read + len(token.text), n_tokens + 1
        held = result.text.encode()[read:start]
        if n_tokens == 0:
            held = generator.compiled.vocabulary.decode(session.held_back) + held
        before = [*kept, *result.token_ids[:n_tokens]]
        yield _Place(path, labels.texts, before, held, _is_quoted(labels))


def _is_quoted(labels: Labels | Choice) -> bool:
    return isinstance(labels, Labels) and all(text.startswith(QUOTE) for text in labels.texts)


def _distribution(place: _Place, lm: LanguageModel, reader: PromptReader) -> Classification:
    """Strings end with a quote, whatever token it stands in; other labels with anything else."""
    texts = [text[:-1] if place.quoted else text for text in place.labels]
    vocabulary = lm.vocabulary
    before = vocabulary.bytes_of(place.before[-1]) or b""
    trie = written_behind(vocabulary, before, place.held, tuple(t.decode() for t in texts))
    check_room(lm, place.before, int(trie.depths.max()) + 1)
    cache, logits, n_passes = reader.read([place.before])
    trees = TreeSource(lm, cache, [len(place.before)])
    end_ids = _closing(vocabulary) if place.quoted else vocabulary.eos_token_ids
    walked = walk(trees, logits, trie, end_ids, "end" if place.quoted else "open")
    lengths = trie.depths[trie.label_nodes].astype("int64") + 1
    scored = Scored(walked.log_probs[0], lengths, n_passes + walked.forward_passes)
    names = tuple(text.decode() for text in place.labels)
    return finish(scored, Choices(names, names), Rules())


@lru_cache(maxsize=8)
def _closing(vocabulary: Vocabulary) -> tuple[int, ...]:
    """The tokens that begin with a quote."""
    ids = range(vocabulary.width)
    return tuple(i for i in ids if (vocabulary.bytes_of(i) or b"").startswith(QUOTE))
