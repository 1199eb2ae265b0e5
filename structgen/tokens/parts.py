"""Sessions that leave a free text when its own token limit is reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from structgen.automata.kernels import UNREACHABLE
from structgen.automata.program import Program
from structgen.tokens.session import Session
from structgen.tokens.states import State
from structgen.tokens.tables import TableSource
from structgen.tokens.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class LimitedPart:
    """A frame of a program with a token limit of its own."""

    first: int
    """Its states are those from `first` to before `end`."""
    end: int
    max_tokens: int

    def holds(self, state: int) -> bool:
        return self.first <= state < self.end


def limited_parts(program: Program) -> tuple[LimitedPart, ...]:
    """The frames of a program that have a token limit."""
    each = zip(program.frames, program.bases, strict=True)
    return tuple(
        LimitedPart(base, base + frame.n_states, frame.max_tokens)
        for frame, base in each
        if frame.max_tokens is not None
    )


class PartSession(Session):
    """A session that counts the tokens of each limited part.

    When a limit is reached, the readings in which the part still goes on are given up. What is
    left are those in which it has just ended. Inside of a character there is none, so that the
    part goes on until the next one begins.
    """

    __slots__ = ("_entered", "_parts")
    _narrows = True

    def __init__(
        self,
        source: TableSource,
        vocabulary: Vocabulary,
        max_tokens: int | None,
        parts: tuple[LimitedPart, ...],
        prompt_ids: Sequence[int] = (),
    ) -> None:
        super().__init__(source, vocabulary, max_tokens, prompt_ids)
        self._parts = parts
        # How many tokens were taken when each part was first there, -1 before that.
        self._entered = [-1] * len(parts)
        self._leave_parts()

    def advance(self, token_id: int) -> None:
        super().advance(token_id)
        if not self.finished:
            self._leave_parts()

    def rollback(self, n_tokens: int) -> None:
        super().rollback(n_tokens)
        self._entered = [-1 if at > self.n_tokens else at for at in self._entered]

    def _leave_parts(self) -> None:
        for index, part in enumerate(self._parts):
            if not any(part.holds(thread[0]) for thread in self._state.threads):
                continue
            if self._entered[index] < 0:
                self._entered[index] = self.n_tokens
            if self.n_tokens - self._entered[index] >= part.max_tokens:
                self._leave(part)

    def _leave(self, part: LimitedPart) -> None:
        state = self._state
        outside = tuple(thread for thread in state.threads if not part.holds(thread[0]))
        if not outside:
            return
        after = state.table.narrowed(state, outside)
        if self._can_finish(after):
            self._state = after

    def _can_finish(self, state: State) -> bool:
        needed = state.table.tokens_to_finish(state)
        if self._max_tokens is None:
            return needed < UNREACHABLE
        return needed <= self._max_tokens - self.n_tokens
