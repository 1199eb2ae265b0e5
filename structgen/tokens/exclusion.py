"""Steps and masks where parts of a value must differ: `structgen.tokens.scopes` over the kernels.

The plain mask of a state's threads is computed as ever. Then three kinds of tokens are taken away:
those that run into a dead end of the part being written, those that end it where it would be a
repetition, and those that end it and go on with another part which has to be looked at byte by
byte. So the work grows with the parts written, not with the vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from structgen.automata.frames import FLAGS, LABEL, ROW, IntArray
from structgen.automata.kernels import (
    A_TOKENS,
    FULL,
    UNREACHABLE,
    Bytes,
)
from structgen.tokens import scope_kernels
from structgen.tokens.automaton import Automaton
from structgen.tokens.label_scopes import LabelScopes
from structgen.tokens.mask_rows import NONE, MaskRow, mask_row
from structgen.tokens.points import BLANKS, NoSpace, Point, Scratch, Steps
from structgen.tokens.scope_kernels import OTHER, PART
from structgen.tokens.scopes import Scope
from structgen.tokens.vocabulary import Vocabulary

_BEFORE_PART = re.compile(rb"^[ \n\t\r]|,")
"""Behind a comma and blanks another part begins."""
_COMMA = re.compile(rb",")
_CLOSED = re.compile(rb'"[\s\]}]*(?::.*)?,', re.DOTALL)
"""The same after the end of a string, which may be a key with its value, or end structures too."""
_OPENS = re.compile(rb"[\[{].*,", re.DOTALL)
"""A scope that begins and goes on with a second part."""
_CLOSES = re.compile(rb"[\]},]")
"""The end of what may equal an earlier part although it is written differently."""
QUOTE = ord('"')
MOST_SCALAR = 64
"""Tokens that suffice for a number, and for the end of a string that is long enough."""


class Exclusion(Steps):
    """Takes from plain masks what would repeat a part."""

    def __init__(self, automaton: Automaton, scratch: Scratch) -> None:
        super().__init__(automaton, scratch)
        self._longest_label = automaton.program.longest_label
        self._labels = LabelScopes(automaton, scratch)

    def restricted(self, at: Point, plain: MaskRow, most: int) -> tuple[MaskRow, int]:
        """A mask without what repeats a part, or needs more than `most` tokens (-1: any number).

        Args:
            plain: what the threads alone allow; returned as it is where nothing has to be taken.

        Returns also a bound on the tokens needed after any of the tokens that were looked at.
        """
        found = self._of_labels(at, plain) if most < 0 else None
        if found is not None:
            return found
        listed = None if len(plain.base) else plain.extra
        mask = np.empty(plain.n_words, np.int32)
        plain.fill(mask)
        along = self._restrict(at, mask, listed, most)
        if listed is None:
            return MaskRow(mask, NONE, plain.n_words), along
        left = among(mask, listed)
        return plain if len(left) == len(listed) else MaskRow(NONE, left, plain.n_words), along

    def _of_labels(self, at: Point, plain: MaskRow) -> tuple[MaskRow, int] | None:
        """The same the quick way, where labels of one set must differ."""
        found = self._labels.sorted(at, plain)
        if found is None:
            return None
        more = found.behind + self._longest_label + MOST_SCALAR  # as `_more_tokens` has it
        kept, worst = found.kept, found.worst + more
        if len(found.unsure):
            unsure = found.unsure.copy()
            needed = [self._needed_after(at, token, -1, more) for token in unsure.tolist()]
            kept = np.concatenate([kept, unsure[[each >= 0 for each in needed]]])
            worst = max(worst, *needed)
        row = plain if len(kept) == found.n_tokens else mask_row(NONE, kept, plain.n_words)
        return row, worst

    def _restrict(self, at: Point, mask: IntArray, listed: IntArray | None, most: int) -> int:
        """Clear in `mask` what does not fit; `listed`: the same as token ids, if they are few."""
        lookup = self._automaton.lookup
        for scope in at.scopes:
            suffixes = [suffix for suffix in scope.suffixes() if suffix]
            if suffixes:
                ends = np.cumsum([len(suffix) for suffix in suffixes], dtype=np.int32)
                scope_kernels.forbid_prefixes(
                    lookup.trie, lookup.same_bytes, _bytes(b"".join(suffixes)), ends, mask
                )
            self._forbid_ends(scope, mask)
        more = self._more_tokens(at) if most < 0 else UNREACHABLE
        worst = self._check(at, mask, listed, most, more)
        if more < UNREACHABLE:
            return max(worst, more)
        return max(worst, self._check_along(at, mask, most))

    def _more_tokens(self, at: Point) -> int:
        """A quick bound on the tokens to the end along the parts written before.

        A scalar that is like none of these is a label, or a few characters longer than what is
        needed anyway. For structures there is no such bound: UNREACHABLE.
        """
        if any(map(_has_structures, at.scopes)):
            return UNREACHABLE
        arena, behind, needed = self._scratch.arena, 0, 0
        for _, a, _, stack in self._scratch.threads[at.low : at.high].tolist():
            behind = max(behind, int(arena[stack, A_TOKENS]))
            needed = max(needed, a)
        labels = self._longest_label
        return behind + labels + MOST_SCALAR + needed * (labels == 0)

    def _forbid_ends(self, scope: Scope, mask: IntArray) -> None:
        lookup = self._automaton.lookup
        for text, goes_on in scope.dead.open_ends.items() if scope.dead else ():
            if text.startswith(scope.text):
                allowed = np.zeros(256, np.uint8)
                allowed[list(goes_on)] = 1
                rest = _bytes(text[len(scope.text) :])
                scope_kernels.forbid_ends(lookup.trie, lookup.same_bytes, rest, allowed, mask)

    def _check(
        self, at: Point, mask: IntArray, listed: IntArray | None, most: int, more: int
    ) -> int:
        """Look at the tokens that may hold the end of a part and the beginning of another."""
        worst = 0
        pattern = _or_separators(self._suspects(at), self._separators)
        matches = _matching(self._automaton.vocabulary, pattern)
        if listed is None:
            listed = np.arange(len(matches), dtype=np.int32)
        suspects = listed[matches[listed]]
        for token_id in among(mask, suspects).tolist():
            worst = max(worst, self._check_token(at, mask, token_id, most, more))
        return worst

    def _suspects(self, at: Point) -> re.Pattern[bytes]:
        """What the tokens have in common that must be looked at byte by byte."""
        if not at.scopes:
            return _OPENS
        if any(b"{" in scope.text and scope.dead is not None for scope in at.scopes):
            return _CLOSES
        if not at.scopes[-1].text:
            return _or_beginning(_BEFORE_PART, self._gaps)
        threads = self._scratch.threads[at.low : at.high].tolist()
        return _CLOSED if all(self._is_string(*thread) for thread in threads) else _COMMA

    def _is_string(self, state: int, a: int, *_: int) -> bool:
        """Whether a thread is inside of a string."""
        program = self._automaton.program
        if self._automaton.is_wide(state):
            return True
        if not program.states[state, FLAGS] & LABEL or not program.states[state, ROW]:
            return False
        return bool(program.blob[program.starts[a]] == QUOTE)  # labels that agree so far

    def _check_along(self, at: Point, mask: IntArray, most: int) -> int:
        """Look at the tokens that run along a part written before."""
        worst = 0
        out = np.empty(self._automaton.vocabulary.max_token_bytes, np.int32)
        seen: set[int] = set()
        for scope in at.scopes:
            for rest in scope.repeats():
                count = scope_kernels.tokens_along(self._automaton.lookup.trie, _bytes(rest), out)
                for token_id in out[:count].tolist():
                    if token_id not in seen and mask[token_id >> 5] >> (token_id & 31) & 1:
                        seen.add(token_id)
                        worst = max(worst, self._check_token(at, mask, token_id, most))
        return worst

    def _check_token(
        self, at: Point, mask: IntArray, token_id: int, most: int, more: int = UNREACHABLE
    ) -> int:
        """Forbid a token that does not fit; else a bound on the tokens needed after it."""
        needed = self._needed_after(at, token_id, most, more)
        if needed < 0:
            self._forbid(mask, token_id)
        return max(needed, 0)

    def _needed_after(self, at: Point, token_id: int, most: int, more: int) -> int:
        """A bound on the tokens needed after a token; -1 if it does not fit.

        `more`, where it is known, bounds what a part that must differ adds to the plain distance.
        """
        after = self.run(at, self._automaton.vocabulary.bytes_of(token_id) or b"")
        if after is not None and more < UNREACHABLE:
            return self._plainly_needed(after) + more
        needed = UNREACHABLE if after is None else self.needed(after)
        return needed if needed < UNREACHABLE and (most < 0 or needed <= most) else -1

    def _forbid(self, mask: IntArray, token_id: int) -> None:
        same = self._automaton.lookup.same_bytes
        while token_id >= 0:
            mask[token_id >> 5] &= ~np.uint32(1 << (token_id & 31)).view(np.int32)
            token_id = int(same[token_id])

    def needed(self, at: Point, best: int = UNREACHABLE) -> int:
        """Tokens that suffice to finish from a place; at least `best` where it is not less.

        Where a part may still become one written before, either its next byte leaves all of
        those, after which the plain distance holds, or it is one of theirs, and the question is
        the same one byte further, or the part ends.
        """
        along = [depth for depth, scope in enumerate(at.scopes, 1) if scope.is_along()]
        if not along:
            ahead = self._before_part(at)
            return self._plainly_needed(at) if ahead is None else 1 + self.needed(ahead, best)
        depth, scope = along[-1], at.scopes[along[-1] - 1]
        _, readers = self._readable(at, depth)
        allowed = (readers & PART).astype(np.uint8)
        others = np.flatnonzero(readers == OTHER).tolist()
        repeats = {byte for d in along for byte in at.scopes[d - 1].next_bytes()}
        allowed[list(repeats)] = 0
        best = min(best, self._cheapest_step(at, allowed))
        if not scope.text:
            repeats |= set(others) - BLANKS
        elif scope.text not in scope.written.texts:
            if len(along) == 1:
                best = min(best, self._needed_outside(at, depth))
            else:
                repeats |= set(others)
        for byte in sorted(repeats) if best > 2 else ():
            after = self._step(at, byte)
            if after is not None:
                best = min(best, 1 + self.needed(after, best - 1))
        return best

    def _needed_outside(self, at: Point, depth: int) -> int:
        automaton, scratch = self._automaton, self._scratch
        return int(
            scope_kernels.needed_outside(
                automaton.arrays, automaton.plan, scratch.arena, scratch.threads, at.low, at.high,
                depth,
            )
        )  # fmt: skip

    def _cheapest_step(self, at: Point, allowed: Bytes) -> int:
        automaton, scratch = self._automaton, self._scratch
        found = scope_kernels.cheapest_step(
            automaton.arrays, automaton.plan, scratch.arena, at.used, scratch.threads, at.low,
            at.high, allowed, automaton.lookup.trie, automaton.lookup.first,
        )  # fmt: skip
        if found == FULL:
            raise NoSpace
        return int(found)


def _bytes(data: bytes) -> Bytes:
    return np.frombuffer(bytearray(data), np.uint8)


@lru_cache(maxsize=32)
def _or_separators(pattern: re.Pattern[bytes], separators: frozenset[int]) -> re.Pattern[bytes]:
    """The pattern, or the first byte of what stands between the labels of a bare list."""
    if not separators:
        return pattern
    return re.compile(pattern.pattern + b"|[" + _escaped(separators) + b"]", pattern.flags)


@lru_cache(maxsize=32)
def _or_beginning(pattern: re.Pattern[bytes], gaps: frozenset[int]) -> re.Pattern[bytes]:
    """The pattern, or a byte at the beginning that may stand before a part."""
    return re.compile(pattern.pattern + b"|^[" + _escaped(gaps) + b"]", pattern.flags)


def _escaped(chars: Iterable[int]) -> bytes:
    return re.escape(bytes(sorted(chars)))


def _has_structures(scope: Scope) -> bool:
    """Whether a part is, or could become one written before that is, an array or object."""
    if scope.text:
        return scope.text[:1] in (b"{", b"[")
    return scope.dead is not None and scope.written.has_structures


def among(mask: IntArray, token_ids: IntArray) -> IntArray:
    """Those of some token ids that a packed mask has."""
    return token_ids[mask[token_ids >> 5] >> (token_ids & 31) & 1 != 0]


@lru_cache(maxsize=32)
def _matching(vocabulary: Vocabulary, pattern: re.Pattern[bytes]) -> npt.NDArray[np.bool_]:
    """bool[width]: the tokens in whose bytes a pattern is found."""
    text, search = vocabulary.blob.tobytes(), pattern.search
    bounds = pairwise(vocabulary.starts.tolist())
    found = [start < end and bool(search(text[start:end])) for start, end in bounds]
    return np.array(found, np.bool_)
