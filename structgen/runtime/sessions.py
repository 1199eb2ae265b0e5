"""What decoding asks of a session, by how much of it is needed.

`structgen.tokens.session.Session` is all of these; tests have smaller ones.
"""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from structgen.tokens.mask_rows import MaskRow


class MaskSource(Protocol):
    """What masks are asked of."""

    def fill_mask(self, row: NDArray[np.int32]) -> None:
        """Overwrite `row`, int32 [N], with a bit per token: 1 where it is allowed next."""
        ...

    def mask_row(self) -> MaskRow:
        """The same as it is kept; asked for only where masks stay on a device."""
        ...


class LoopSession(MaskSource, Protocol):
    """One value being written: what the loop asks of the automaton."""

    @property
    def complete(self) -> bool:
        """The value is complete and nothing but the end can follow."""
        ...

    @property
    def exhausted(self) -> bool:
        """The token budget is used up; the value may then end here."""
        ...

    @property
    def finished(self) -> bool:
        """An end token was taken."""
        ...

    def forced(self) -> list[int]:
        """Token ids that are certain to come next, often none."""
        ...

    def advance(self, token_id: int) -> None:
        """Take a token; `IllegalTokenError` if it is not allowed."""
        ...


class ForkingSession(LoopSession, Protocol):
    """The same where several continuations of a value are followed."""

    def fork(self) -> Self:
        """An independent session at the same position."""
        ...
