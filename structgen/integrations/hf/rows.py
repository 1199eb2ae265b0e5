"""One row of a batch: a session that is kept in step with the tokens of the row."""

from __future__ import annotations

from typing import Any, Self

from structgen.automata.frames import IntArray
from structgen.compiler import CompiledSchema
from structgen.integrations.hf.targets import Ends
from structgen.tokens.session import Session


class Row:
    """The tokens of a row behind its prompt, and the session that read them.

    A row whose value has ended goes on to arrive, filled up with padding. A row is *lost* if it
    took a token that was not legal: beams do where there are too few legal ones (their score is
    -inf), drafts of assisted decoding do before they are refused, and so does the padding of rows
    that another stopping criterion closed. None of those can become a value.
    """

    __slots__ = ("_eos", "_most", "_n_read", "_session", "compiled", "taken")

    def __init__(
        self, compiled: CompiledSchema[Any], session: Session, *, most: int | None = None
    ) -> None:
        self.compiled = compiled
        self._most = most  # tokens behind which `generate` is known to stop
        self._eos = compiled.vocabulary.eos_token_ids
        self._session = session
        self._n_read = 0
        self.taken: list[int] = []
        """All tokens behind the prompt, those that the session did not read included."""

    @property
    def goes_on(self) -> bool:
        """Neither ended nor lost."""
        return self._n_read == len(self.taken) and not self._session.finished

    def may_go_on_with(self, token: int) -> bool:
        """Whether the token is legal and neither the value nor its budget ends with it."""
        if not self.goes_on or token in self._eos or len(self.taken) + 1 == self._most:
            return False
        return self._session.allows(token)

    def take(self, token: int) -> None:
        """Append a token, whatever it is."""
        if self.goes_on and self._session.allows(token):
            self._session.advance(token)
            self._n_read += 1
        self.taken.append(token)

    def cut(self, n_tokens: int) -> None:
        """Keep the first `n_tokens` only."""
        del self.taken[n_tokens:]
        if self._n_read > n_tokens:
            self._session.rollback(self._n_read - n_tokens)
            self._n_read = n_tokens

    def fork(self) -> Self:
        """An independent row with the same tokens."""
        twin = type(self)(self.compiled, self._session.fork(), most=self._most)
        twin._n_read = self._n_read
        twin.taken = self.taken.copy()
        return twin

    def fill(self, words: IntArray, ends: Ends) -> None:
        """Write what may come next to `words`, int32[N]; at least one bit is set."""
        if not self.goes_on:
            words[:] = ends.only
            return
        self._session.fill_mask(words)
        if ends.kept is not None:
            words &= ends.kept
