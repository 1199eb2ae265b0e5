"""Draws from the model's own distribution over what is valid.

Masking renormalises at each token, so a beginning that the model likes draws all its weight to the
few valid values behind it, however unlikely they are. Here a value x is drawn with probability
P(x) / (the sum of P over all valid values), P being the probability of all its tokens.

The method is constrained adaptive rejection sampling (CARS: Parys et al. 2025, arXiv:2510.01902).
An attempt is a draw from the model that is given up where it leaves what is valid; what it saw to
be invalid is taken out of the later attempts. For that each prefix has a bound: its continuations
are valid with at most that probability; 1 before it is read, and then the sum of
probability * bound over the legal tokens, which are the approximate expected futures of
grammar-aligned decoding (ASAp: Park et al. 2024, arXiv:2405.21047). Tokens are drawn in proportion
to probability * bound; where an attempt reads a prefix, it goes on with the probability of the
prefix's new bound. So an attempt that comes to its end comes to x with a probability in proportion
to P(x), whatever was seen before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from structgen.errors import ModelError, OptionError
from structgen.results import AlignedInfo
from structgen.runtime.events import Finished, Step
from structgen.runtime.lm import LanguageModel
from structgen.runtime.prefixes import NEVER, Prefixes, Reading, log_sum
from structgen.runtime.sampling import Sampling
from structgen.runtime.sessions import ForkingSession


@dataclass(frozen=True, slots=True)
class Aligned:
    """How hard `sampling="aligned"` tries; pass one in its place to change that.

    Example: `Generator(Triage, lm, sampling=Aligned(max_attempts=1000, count_end=False))`
    """

    max_attempts: int = 200
    """For each value; a draw that none of them finished is approximate, see `n_proposals`."""
    count_end: bool = True
    """The model's probability of ending behind a value is a part of the value's probability. If
    not, a value that nothing can follow is as probable as its tokens."""
    n_proposals: int = 8
    """An approximate draw is one of so many values, chosen by what its probability is to the one
    it was written with (sampling-importance-resampling, Rubin 1987); with 1 it is a draw of ASAp.
    It becomes exact as this number grows."""

    def __post_init__(self) -> None:
        for name in ("max_attempts", "n_proposals"):
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise OptionError(f"Aligned.{name}={value!r} must be a whole number above 0")
        if not isinstance(self.count_end, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"Aligned.count_end={self.count_end!r} must be True or False")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A finished value."""

    steps: list[Step]
    end: Finished
    info: AlignedInfo


class AlignedSampler:
    """Draws values for one prompt.

    What the model said in one draw costs the next ones no forward pass. Nothing else passes from
    draw to draw, so a seed gives the same value whatever was drawn before.

    Args:
        session: fresh, and left as it is; where it is complete or exhausted it allows only ends.
        temperature: the model's distribution is the one at this temperature.
    """

    def __init__(
        self,
        lm: LanguageModel,
        prompt: Sequence[int],
        session: ForkingSession,
        *,
        temperature: float = 1.0,
        options: Aligned | None = None,
    ) -> None:
        self._lm = lm
        self._session = session
        self._temperature = temperature
        self._options = options or Aligned()
        self.prefixes = Prefixes(lm, prompt, temperature)

    def draw(self, sampling: Sampling) -> Drawn:
        """A value; of `sampling` only the seed counts.

        Raises:
            ModelError: the model gives no probability to any value.
        """
        started, prefixes = time.perf_counter(), self.prefixes
        passes, forward_s = prefixes.forward_passes, prefixes.forward_s
        # numpy draws one number in a tenth of the time that torch takes.
        random = np.random.default_rng(sampling.generator(torch.device("cpu")).initial_seed())
        search = _Search(self._session, prefixes, self._temperature, self._options, random)
        try:
            walk, exact = search.run()
        except _NoValueError as error:
            raise ModelError(f"{self._lm.name} gives no probability to any valid value") from error
        forward_s = prefixes.forward_s - forward_s
        end = Finished(
            row=0,
            finish_reason="complete" if walk.session.complete else "stop",
            forward_passes=prefixes.forward_passes - passes,
            forward_s=forward_s,
            mask_s=time.perf_counter() - started - forward_s,
            first_mask_s=0.0,
        )
        info = AlignedInfo(exact, search.attempts, search.root.log_bound)
        return Drawn(walk.steps(self._lm.vocabulary.eos_token_ids), end, info)


class _NoValueError(Exception):
    """All that is legal has no probability."""


@dataclass(slots=True)
class _Node:
    """A prefix that a draw has come to."""

    log_prob: float = 0.0
    """Of its last token behind the ones before, at the temperature."""
    own_log_prob: float = 0.0
    """The same without a temperature."""
    log_bound: float = 0.0
    """Log of the most that the probability of being valid, from here on, can be."""
    is_read: bool = False
    log_mass: float = 0.0
    """Of all legal tokens, without a temperature."""
    log_rest: float = NEVER
    """Of the legal tokens that are no children, at the temperature; their bounds are 1."""
    children: dict[int, _Node] = field(default_factory=dict[int, "_Node"])

    def visit(self, token_id: int, reading: Reading, temperature: float) -> _Node:
        """The child behind a legal token, a new one if need be."""
        child = self.children.get(token_id)
        if child is None:
            log_probs, place = reading.at(temperature), reading.place(token_id)
            child = _Node(float(log_probs[place]), float(reading.log_probs[place]))
            self.children[token_id] = child
            self.log_rest = log_sum(self.without_children(log_probs, reading))
        return child

    def without_children(
        self, log_probs: NDArray[np.float64], reading: Reading
    ) -> NDArray[np.float64]:
        """The log-probabilities [L], changed: -inf for the children."""
        if self.children:
            log_probs[np.searchsorted(reading.token_ids, list(self.children))] = NEVER
        return log_probs

    def tighten(self) -> None:
        """Bring the bound down to what is known of the children."""
        parts = [child.log_prob + child.log_bound for child in self.children.values()]
        self.log_bound = min(self.log_bound, _log_sum([self.log_rest, *parts]))

    @property
    def leaves_a_choice(self) -> bool:
        """Whether more than one token may still lead to a valid value."""
        alive = sum(child.log_bound > NEVER for child in self.children.values())
        return self.log_rest > NEVER or alive > 1


@dataclass(slots=True)
class _Walk:
    """An attempt: a way from the root."""

    session: ForkingSession
    nodes: list[_Node]
    """The root, and the node behind each token."""
    log_weight: float
    """Log of P(value) / (the probability of walking here), where nothing is given up."""
    token_ids: tuple[int, ...] = ()

    def take(self, token_id: int, node: _Node) -> None:
        self.session.advance(token_id)
        self.token_ids = (*self.token_ids, token_id)
        self.nodes.append(node)

    def steps(self, eos: Sequence[int]) -> list[Step]:
        """What was taken, with the model's scores."""
        return [
            Step(
                row=0,
                token_id=token_id,
                forced=False,
                log_prob=node.own_log_prob - before.log_mass,
                valid_mass=math.exp(before.log_mass),
                end=token_id in eos,
            )
            for token_id, before, node in zip(
                self.token_ids, self.nodes, self.nodes[1:], strict=False
            )
        ]


class _Search:
    """One draw."""

    def __init__(
        self,
        session: ForkingSession,
        prefixes: Prefixes,
        temperature: float,
        options: Aligned,
        random: np.random.Generator,
    ) -> None:
        self._session = session
        self._prefixes = prefixes
        self._temperature = temperature
        self._options = options
        self._random = random
        self.root = _Node()
        self.attempts = 0

    def run(self) -> tuple[_Walk, bool]:
        """A walk to the end of a value, and whether it is an exact draw."""
        while self.attempts < self._options.max_attempts:
            self.attempts += 1
            walk = self._walk(rejecting=True)
            if walk is not None:
                return walk, True
        return self._approximate(), False

    def _approximate(self) -> _Walk:
        """A draw by importance among walks that keep to what is legal."""
        walks: list[_Walk] = []
        while len(walks) < self._options.n_proposals:
            walk = self._walk(rejecting=False)
            if walk is not None:
                walks.append(walk)
        return walks[self._pick([walk.log_weight for walk in walks])]

    def _walk(self, *, rejecting: bool) -> _Walk | None:
        """An attempt; None if it was given up, as it always is where nothing legal can follow."""
        if self.root.log_bound == NEVER:
            raise _NoValueError
        walk = _Walk(self._session.fork(), [self.root], self.root.log_bound)
        certain = True  # every attempt comes to this node, so giving up here would change nothing
        while not self._ended(walk.session):
            node = walk.nodes[-1]
            if not node.is_read:
                log_bound = self._read(walk)
                walk.log_weight += log_bound
                if log_bound == NEVER:
                    return None
                if rejecting and not certain and math.log(1 - self._random.random()) > log_bound:
                    return None
            certain = certain and not node.leaves_a_choice
            self._step(walk)
        return walk

    def _ended(self, session: ForkingSession) -> bool:
        if self._options.count_end:
            return session.finished
        return session.finished or session.complete or session.exhausted

    def _read(self, walk: _Walk) -> float:
        """Read a node and what is forced behind it, in one pass; its bound, which was 1."""
        node, session = walk.nodes[-1], walk.session.fork()
        ahead = session.forced()
        for token_id in ahead:
            session.advance(token_id)
        needed = ahead[:-1] if ahead and self._ended(session) else ahead
        readings = self._prefixes.read(walk.token_ids, needed, walk.session)
        opened = [node]
        for index, reading in enumerate(readings):
            self._open(opened[-1], reading)
            if index < len(ahead):
                child = opened[-1].visit(ahead[index], reading, self._temperature)
                opened.append(child)
        for known in reversed([*walk.nodes, *opened[1:]]):
            if known.is_read:
                known.tighten()
        return node.log_bound

    def _open(self, node: _Node, reading: Reading) -> None:
        """Take in what the model says behind a node."""
        node.is_read = True
        node.log_mass = reading.log_mass
        node.log_rest = log_sum(reading.at(self._temperature))

    def _step(self, walk: _Walk) -> None:
        """Draw a token, in proportion to probability * bound."""
        node = walk.nodes[-1]
        known = list(node.children.items())
        parts = [child.log_prob + child.log_bound for _, child in known]
        place = self._pick([*parts, node.log_rest])
        if place < len(known):
            walk.take(*known[place])
            return
        reading = self._prefixes.read(walk.token_ids, [], walk.session)[0]
        log_probs = node.without_children(reading.at(self._temperature), reading)
        token_id = int(reading.token_ids[self._pick_one(log_probs)])
        walk.take(token_id, node.visit(token_id, reading, self._temperature))

    def _pick(self, log_weights: Sequence[float]) -> int:
        """An index, drawn in proportion to a few weights that are not all 0."""
        total = _log_sum(log_weights)
        point = self._random.random()
        last = 0
        for place, log_weight in enumerate(log_weights):
            if log_weight > NEVER:
                last = place
                point -= math.exp(log_weight - total)
                if point < 0:
                    break
        return last  # where rounding leaves the point behind all of them, too

    def _pick_one(self, log_weights: NDArray[np.float64]) -> int:
        """The same for the weights [L] of many tokens."""
        cumulative = np.exp(log_weights - log_weights.max()).cumsum()
        point = self._random.random() * cumulative[-1]
        place = int(np.searchsorted(cumulative, point, side="right"))
        last = int(np.searchsorted(cumulative, cumulative[-1]))
        return min(place, last)  # a point rounded up to the total ends at the last weight above 0


def _log_sum(log_values: Sequence[float]) -> float:
    """`log_sum` of a few numbers, for which an array takes longer."""
    most = max(log_values)
    if most == NEVER:
        return NEVER
    return most + math.log(sum(math.exp(value - most) for value in log_values))
