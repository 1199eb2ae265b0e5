"""One sequence being decoded."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import ClassVar, Self, SupportsIndex, cast

from structgen.automata.frames import IntArray
from structgen.errors import BudgetError, IllegalTokenError, OptionError
from structgen.tokens.forced import forced_run
from structgen.tokens.healing import healing_state
from structgen.tokens.mask_rows import MaskRow, fill
from structgen.tokens.states import UNKNOWN, State
from structgen.tokens.tables import TableSource
from structgen.tokens.vocabulary import Vocabulary

ENDLESS = 2**62
"""Tokens that are left without a budget."""


class Session:
    """A position in a compiled schema; cheap to make, fork and roll back.

    Made by `CompiledSchema.session`. Sessions of one compiled schema may run in different
    threads; a single session belongs to one thread at a time.

    Example:
        s = compiled.session(max_tokens=64)
        while not s.complete and not s.exhausted:
            s.fill_mask(row)
            s.advance(pick(row))
    """

    __slots__ = (
        "_before",
        "_ended",
        "_left",
        "_max_tokens",
        "_source",
        "_state",
        "_taken",
        "_trail",
        "_vocabulary",
    )
    _narrows: ClassVar[bool] = False
    """Whether a step may drop some of a state's readings, so that more is needed than before."""

    def __init__(
        self,
        source: TableSource,
        vocabulary: Vocabulary,
        max_tokens: int | None,
        prompt_ids: Sequence[int] = (),
    ) -> None:
        self._source = source
        self._vocabulary = vocabulary
        self._max_tokens = max_tokens
        self._trail: list[State] = []
        self._taken: list[int] = []
        self._state = source.current().start
        self._before = b""
        self._ended = False
        # Tokens that may still be needed after the next one; -1 once the value has ended, so that
        # one comparison with `State.worst` tells whether a state's own mask and successors hold.
        self._left = ENDLESS if max_tokens is None else max_tokens - 1
        ids = _token_ids(prompt_ids)
        if ids:
            self._begin_behind(ids)

    def _begin_behind(self, prompt_ids: list[int]) -> None:
        state = healing_state(self._source.current(), prompt_ids)
        if state.held and self._left < state.table.tokens_to_finish(state) - 1:
            state = state.table.start  # the budget has no room for more than the value
        self._state = state
        last = prompt_ids[-1 - len(state.held)]
        if 0 <= last < self._vocabulary.width:
            self._before = self._vocabulary.bytes_of(last) or b""

    @property
    def held_back(self) -> tuple[int, ...]:
        """The last tokens of the prompt, which are to be taken out of it.

        The session begins with them: they are written again, or a longer token in their place that
        begins with the same bytes. So the value's text is what follows their bytes.
        """
        return (self._trail[0] if self._trail else self._state).held

    @property
    def accepting(self) -> bool:
        """The value may end here."""
        return self._state.accepting

    @property
    def complete(self) -> bool:
        """The value is written and nothing but its end can follow."""
        return self._state.complete

    @property
    def finished(self) -> bool:
        """The end token was taken."""
        return self._ended

    @property
    def exhausted(self) -> bool:
        """The token budget is used up; the value is then finished, whatever was chosen."""
        return self._max_tokens is not None and len(self._trail) >= self._max_tokens

    @property
    def n_tokens(self) -> int:
        """Tokens taken, the end token not counted."""
        return len(self._trail)

    @property
    def token_ids(self) -> list[int]:
        """The tokens taken, the end token left out."""
        return list(self._taken)

    @property
    def tokens_to_finish(self) -> int:
        """Tokens that suffice to finish the value from here."""
        return self._state.table.tokens_to_finish(self._state)

    def mask(self) -> IntArray:
        """int32[n_words], read-only: bit `t & 31` of word `t >> 5` is 1 where token t is legal."""
        return self.mask_row().dense()

    def mask_row(self) -> MaskRow:
        """The mask as it is kept: the same object wherever the same state allows the same."""
        state = self._state
        if self._left >= state.worst and state.row is not None:
            return state.row
        if self._ended:
            return self._source.nothing
        row = state.row
        if row is None:
            row = state.table.row(state)
        if self._left >= state.worst:
            return row
        return state.limited.get(self._left) or state.table.limited_row(state, self._left)

    def fill_mask(self, row: IntArray) -> None:
        """Write the mask to `row`, int32[n_words] (32 tokens a word), on the caller's memory."""
        state = self._state
        found = state.row if self._left >= state.worst else None
        if found is None:
            found = self.mask_row()
        try:
            if fill(row, found.base, found.extra, found.n_words):
                return
        except TypeError:  # not a contiguous row of int32
            pass
        mask = found.dense()
        if row.shape != mask.shape or row.dtype != mask.dtype:
            raise _wrong_rows(row, mask.shape)
        row[:] = mask

    def allows(self, token_id: int) -> bool:
        """Whether `advance(token_id)` would succeed."""
        if type(token_id) is not int:
            token_id = _token_id(token_id)
        if self._left >= self._state.worst and token_id in self._state.next:
            return True
        return 0 <= token_id < self._vocabulary.width and self.mask_row().allows(token_id)

    def advance(self, token_id: int) -> None:
        """Take a token.

        Raises:
            IllegalTokenError: the token is not allowed; the session is unchanged.
        """
        if type(token_id) is not int:
            token_id = _token_id(token_id)
        state = self._state
        after = state.next.get(token_id) if self._left >= state.worst else None
        if after is None:
            after = self._find(token_id)
            if after is None:
                return
        self._trail.append(state)
        self._taken.append(token_id)
        self._state = after
        self._left -= 1

    def _find(self, token_id: int) -> State | None:
        """The state after a token, by the long way; None for the end token."""
        if self._ended or (self._max_tokens is not None and not self.allows(token_id)):
            raise self._illegal(token_id)
        after = self._state.next.get(token_id)
        if after is not None:
            return after
        if token_id in self._vocabulary.eos_token_ids:
            if not self._state.accepting:
                raise self._illegal(token_id)
            self._ended = True
            self._left = -1
            return None
        table, state = self._source.current(), self._state
        if state.table is not table:
            state = table.adopt(state)
        if 0 <= token_id < self._vocabulary.width:
            after = table.advance(state, token_id)
        if after is None:
            raise self._illegal(token_id)
        return after

    def _illegal(self, token_id: int) -> IllegalTokenError:
        if self._ended:
            return IllegalTokenError(token_id, "the value has ended")
        if not 0 <= token_id < self._vocabulary.width:
            return IllegalTokenError(
                token_id, f"the vocabulary has {self._vocabulary.width} ids, from 0 on"
            )
        data = self._vocabulary.bytes_of(token_id)
        if token_id in self._vocabulary.eos_token_ids:
            return IllegalTokenError(token_id, "the value is not finished")
        if not data:
            return IllegalTokenError(token_id, "it is a special or unused token")
        if self._max_tokens is not None and self.exhausted:
            return IllegalTokenError(token_id, "the token budget is used up")
        return IllegalTokenError(token_id, f"{data!r} does not fit the schema or the token budget")

    def fork(self) -> Self:
        """An independent session at the same position."""
        twin = type(self).__new__(type(self))
        for owner in type(self).__mro__:
            for name in getattr(owner, "__slots__", ()):
                value = getattr(self, name)
                setattr(twin, name, value.copy() if isinstance(value, list) else value)
        return twin

    def rollback(self, n_tokens: int) -> None:
        """Take back the last tokens; an end token counts as one of them."""
        available = len(self._trail) + self._ended
        n_tokens = _index(n_tokens, "rollback takes")
        if not 0 <= n_tokens <= available:
            raise OptionError(f"rollback({n_tokens}): {available} tokens were taken")
        if n_tokens and self._ended:
            self._ended = False
            n_tokens -= 1
        if n_tokens:
            self._state = self._trail[-n_tokens]
            del self._trail[-n_tokens:], self._taken[-n_tokens:]
        if not self._ended:
            limit = self._max_tokens
            self._left = ENDLESS if limit is None else limit - len(self._trail) - 1

    def forced(self) -> list[int]:
        """Token ids that are certain to come next, often none; taking them is up to the caller."""
        if self._ended or self.exhausted:
            return []
        state = self._state
        before = self._vocabulary.bytes_of(self._taken[-1]) if self._taken else self._before
        run = state.forced.get(before or b"") or forced_run(state.table, state, before or b"")
        if self._max_tokens is None or not run.token_ids:
            return list(run.token_ids)
        if run.worst == UNKNOWN:
            run.worst = _most_needed(state, run.token_ids)
        if self._left >= run.worst and not self._narrows:
            return list(run.token_ids)
        # A tight budget may leave room only for a shorter spelling than the tokenizer's own.
        twin = self.fork()
        affordable: list[int] = []
        for token_id in run.token_ids:
            if not twin.allows(token_id):
                break
            twin.advance(token_id)
            affordable.append(token_id)
        return affordable


def fill_masks(sessions: Sequence[Session], out: IntArray) -> None:
    """Write each session's mask to its row of `out`, int32[B, n_words]."""
    if len(out) != len(sessions):
        raise OptionError(f"got {len(sessions)} sessions and {len(out)} rows; match them")
    for row, session in zip(out, sessions, strict=True):
        session.fill_mask(row)


def _most_needed(state: State, token_ids: Sequence[int]) -> int:
    """With so many tokens left behind the first of a run, each of its tokens is affordable."""
    most = 0
    for position, token_id in enumerate(token_ids):
        table = state.table
        table.row(state)
        most = max(most, position + state.worst)
        after = state.next.get(token_id) or table.advance(state, token_id)
        assert after is not None, "forced tokens are legal"
        state = after
    return most


def _index(value: object, what: str) -> int:
    """A whole number, Python's or numpy's."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise OptionError(f"{what} a whole number, got {value!r}")
    return operator.index(cast(SupportsIndex, value))


def _token_id(value: object) -> int:
    return _index(value, "a token id is")


def _token_ids(value: object) -> list[int]:
    """A prompt's token ids, also of an array or tensor of one dimension."""
    items = value.tolist() if hasattr(value, "tolist") else value  # pyright: ignore[reportAttributeAccessIssue]
    if not isinstance(items, list | tuple):
        raise OptionError(f"prompt_ids must be a list of token ids, got {value!r}")
    return [_token_id(item) for item in cast("list[object]", items)]


def _wrong_rows(row: IntArray, shape: tuple[int, ...]) -> OptionError:
    return OptionError(
        f"a mask's row is int32 of shape {shape}, got {row.dtype} of shape {row.shape}"
    )


def check_budget(max_tokens: int | None, needed: int, schema: str) -> None:
    """Raise BudgetError where the shortest value does not fit."""
    if max_tokens is None:
        return
    max_tokens = _index(max_tokens, "max_tokens is")
    if max_tokens < needed:
        raise BudgetError(max_tokens, needed, schema=schema)
