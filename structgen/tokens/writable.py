"""Labels that no tokens of a vocabulary spell: they could never be chosen, in silence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from structgen.automata.frames import IntArray
from structgen.automata.kernels import Bytes, kernel
from structgen.automata.program import Program
from structgen.deadline import check_deadline
from structgen.errors import VocabularyError
from structgen.tokens.trie import BYTE, END, TOKEN
from structgen.tokens.vocabulary import Vocabulary

Flags: TypeAlias = NDArray[np.bool_]

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
    """The labels that are not some tokens one after another.

    Raises:
        LimitError: the time of the innermost `deadline` is over.
    """
    missing = bytes(vocabulary.missing_bytes)
    nodes: IntArray | None = None
    for label in labels:
        if len(label.translate(None, missing)) == len(label):
            continue  # byte by byte, if need be
        check_deadline()
        if nodes is None:
            nodes = vocabulary.trie.nodes.copy()  # numba is slow with read-only arrays
        data = np.frombuffer(bytearray(label), np.uint8)
        if not is_spelled(nodes, data, np.zeros(len(label) + 1, np.bool_)):
            yield label


@kernel
def is_spelled(nodes: IntArray, data: Bytes, reached: Flags) -> bool:
    """Whether `data` is some tokens one after another.

    Args:
        nodes: of the vocabulary's trie, see `structgen.tokens.trie`.
        reached: bool[len(data) + 1], all False; whether tokens can end there is written to it.
    """
    reached[0] = True
    for start in range(len(data)):
        if not reached[start]:
            continue
        node, at = 0, start
        while at < len(data):
            child, end = node + 1, nodes[node, END]
            while child < end and nodes[child, BYTE] < data[at]:
                child = nodes[child, END]
            if child >= end or nodes[child, BYTE] != data[at]:
                break
            node, at = child, at + 1
            if nodes[node, TOKEN] >= 0:
                reached[at] = True
    return bool(reached[len(data)])


def _text(label: bytes) -> str:
    """A label as it was declared; in JSON it is quoted."""
    text = label.decode()
    try:
        found = json.loads(text)
    except ValueError:  # a plain text
        return text
    return found if isinstance(found, str) else text
