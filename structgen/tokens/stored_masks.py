"""Inner masks on disk: what a state of a wide frame allows, without its tokens one by one."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from structgen.automata.frames import IntArray
from structgen.cache import load_arrays, save_arrays
from structgen.stamp import key as stamped
from structgen.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from structgen.tokens.profiles import Key, Profile, Row

logger = logging.getLogger("structgen")

KIND = "mask"
LEAST_NODES = 2**14
"""Nodes of a trie from which on loading is faster than walking."""


def save(vocabulary: Vocabulary, profile: Profile, row: Row) -> None:
    """Keep a profile's exits, and its mask for as many units as anyone may want."""
    if len(vocabulary.trie.nodes) < LEAST_NODES:
        return
    mask, worst = row
    arrays = {"exits": profile.exits, "exit_units": profile.exit_units, "mask": mask}
    header = {"longest": profile.longest, "worst": worst}
    save_arrays(KIND, _entry(vocabulary, profile.key), arrays, header)


def load(vocabulary: Vocabulary, key: Key) -> tuple[IntArray, IntArray, int, Row] | None:
    """Exits, their units, the most units, and the mask; None where nothing sound is stored."""
    if len(vocabulary.trie.nodes) < LEAST_NODES:
        return None
    name = _entry(vocabulary, key)
    found = load_arrays(KIND, name, writable=True)
    if found is None:
        return None
    arrays, header = found
    try:
        exits, units, mask = (arrays[part] for part in ("exits", "exit_units", "mask"))
        longest, worst = int(header["longest"]), int(header["worst"])
        _check(vocabulary, exits, units, mask)
    except (KeyError, TypeError, ValueError) as error:
        logger.warning("ignoring the cached mask %s: %r", name, error)
        return None
    mask.setflags(write=False)
    return exits, units, longest, (mask, worst)


def _check(vocabulary: Vocabulary, exits: IntArray, units: IntArray, mask: IntArray) -> None:
    """Refuse what a kernel could read too far with."""
    if {exits.dtype, units.dtype, mask.dtype} != {np.dtype(np.int32)}:
        raise ValueError("not int32")
    if mask.shape != (vocabulary.n_words,) or exits.ndim != 1 or exits.shape != units.shape:
        raise ValueError("shapes that do not fit")
    nodes = len(vocabulary.trie.nodes)
    if len(exits) and (exits.min() < 0 or exits.max() >= nodes):
        raise ValueError("exits outside of the trie")


def _entry(vocabulary: Vocabulary, key: Key) -> str:
    digest, state = key
    return stamped("mask", vocabulary.fingerprint, digest, str(state))
