"""One row that `StructgenGenerate` writes: forced tokens, choices, and its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from structgen.errors import GenerationError
from structgen.tokens.session import Session


@dataclass(slots=True)
class Writing:
    """A value being written in one row."""

    index: int
    session: Session
    end_token: int
    """What is written behind the value where its end is certain."""
    max_new_tokens: int
    tokens: list[int] = field(default_factory=list[int])
    """All that was written, the end token included."""
    pending: list[int] = field(default_factory=list[int])
    """What of it the model has not read yet."""
    forced: list[int] = field(default_factory=list[int])
    """The places in `tokens` of those that the model was not asked for."""
    done: bool = False

    def take_forced(self) -> None:
        """Take what is certain, the end of the value included."""
        if self.done:
            return
        session = self.session
        for token in session.forced():
            session.advance(token)
            self._append(token, forced=True)
        if session.complete:
            if len(self.tokens) < self.max_new_tokens:
                self._append(self.end_token, forced=True)
            self.done = True
        self.done = self.done or session.exhausted

    def take(self, token: int) -> None:
        """Take what was chosen."""
        if not self.session.allows(token):
            raise GenerationError(
                f"row {self.index}: token {token} was chosen, which the schema does not allow "
                "here; a logits processor behind a temperature or top_k changed what was legal"
            )
        self.session.advance(token)
        self._append(token, forced=False)
        self.done = self.session.finished

    def _append(self, token: int, *, forced: bool) -> None:
        if forced:
            self.forced.append(len(self.tokens))
        self.tokens.append(token)
        self.pending.append(token)

    def read(self) -> list[int]:
        """What the model has to read next, which counts as read."""
        pending, self.pending = self.pending, []
        return pending
