"""Labels that no tokens of a vocabulary spell: they could never be chosen, in silence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from structgen.automata.program import Program
from structgen.errors import VocabularyError
from structgen.tokens.vocabulary import Vocabulary

SHOWN = 5
"""Labels that an error names."""
ABSENT = b"null"
"""What stands for no value, beside others that can be written."""


def check_labels(program: Program, vocabulary: Vocabulary) -> None:
    """See that a vocabulary can write every label of a program.

    Raises:
        VocabularyError: it cannot write some of them.
    """
    missing = bytes(vocabulary.missing_bytes)
    data = program.blob.tobytes()
    if not missing or len(data.translate(None, missing)) == len(data):
        return
    starts = program.starts.tolist()
    labels = [data[a:b] for a, b in pairwise(starts)]
    found = [label for label in unspelled(labels, vocabulary) if label != ABSENT]
    if not found:
        return
    lacking = sorted(set(b"".join(found)) & set(missing))
    shown = ", ".join(repr(_text(label)) for label in found[:SHOWN])
    listed = ", ".join(f"0x{byte:02X}" for byte in lacking[:16])
    raise VocabularyError(
        f"the vocabulary cannot write {len(found)} of {len(labels)} labels, among them {shown}; it "
        f"has no token for the bytes {listed}; rename them, or use a byte-level tokenizer or one "
        "with byte fallback",
        missing_bytes=lacking,
    )


def unspelled(labels: Iterable[bytes], vocabulary: Vocabulary) -> Iterator[bytes]:
    """The labels that are not some tokens one after another."""
    missing = bytes(vocabulary.missing_bytes)
    pieces: frozenset[bytes] | None = None
    for label in labels:
        if len(label.translate(None, missing)) == len(label):
            continue  # byte by byte, if need be
        if pieces is None:
            tokens = map(vocabulary.bytes_of, range(vocabulary.width))
            pieces = frozenset(filter(None, tokens))
        if not _is_spelled(label, pieces, vocabulary.max_token_bytes):
            yield label


def _is_spelled(data: bytes, pieces: frozenset[bytes], longest: int) -> bool:
    reached = np.zeros(len(data) + 1, np.bool_)
    reached[0] = True
    for end in range(1, len(data) + 1):
        starts = range(max(0, end - longest), end)
        reached[end] = any(reached[start] and data[start:end] in pieces for start in starts)
    return bool(reached[-1])


def _text(label: bytes) -> str:
    """A label as it was declared; in JSON it is quoted."""
    text = label.decode()
    try:
        found = json.loads(text)
    except ValueError:  # a plain text
        return text
    return found if isinstance(found, str) else text
