"""Going down a hierarchy: at each level the model chooses among the children only."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from structgen.classification.finishing import Rules
from structgen.classification.prompting import Choices, Question
from structgen.classification.results import Classification, Level, RankedLabel, entropy
from structgen.classification.scoring import Scorer, normalised
from structgen.errors import OptionError
from structgen.taxonomy import Taxonomy

STAY = "{name} (in general)"
"""Offered where a level that has children is a label itself."""


@dataclass(frozen=True, slots=True)
class _Way:
    """A way down, as far as it went."""

    node: str
    """The path; empty before the first level."""
    probability: float
    mass: float
    """Product of the valid masses on the way."""
    log_prob: float
    levels: tuple[Level, ...]
    ended: bool


class Drill:
    """Classifies texts level by level, keeping the best ways."""

    def __init__(
        self, taxonomy: Taxonomy, scorer: Scorer, question: Question, rules: Rules, beam: int
    ) -> None:
        has_levels = any(map(taxonomy.children, taxonomy.roots))
        if taxonomy.written == "code" or not has_levels:
            raise OptionError("strategy='drill' needs labels that are paths of a hierarchy")
        if question.examples:
            raise OptionError("strategy='drill' asks other questions than examples answer")
        self._taxonomy, self._scorer, self._question = taxonomy, scorer, question
        self._rules, self._beam = rules, beam

    def __call__(self, text: str) -> Classification:
        """The label at the end of the best way; probabilities are products over the levels."""
        ways, n_passes = [_Way("", 1.0, 1.0, 0.0, (), ended=False)], 0
        while not all(way.ended for way in ways):
            found: list[_Way] = [way for way in ways if way.ended]
            for way in ways:
                if not way.ended:
                    below, passes = self._below(text, way)
                    found.extend(below)
                    n_passes += passes
            ways = sorted(found, key=lambda way: -way.probability)[: self._beam]
        return self._classification(ways, n_passes)

    def _below(self, text: str, way: _Way) -> tuple[list[_Way], int]:
        """The ways one level further down."""
        taxonomy = self._taxonomy
        children = taxonomy.children(way.node) if way.node else taxonomy.roots
        options = {taxonomy.path(child)[-1]: child for child in children}
        if way.node and way.node in taxonomy:
            options[STAY.format(name=taxonomy.path(way.node)[-1])] = way.node
        if len(options) == 1:  # no choice
            (child,) = options.values()
            level = Level(taxonomy.path(child), way.probability)
            return [self._next(way, child, 1.0, 1.0, 0.0, level)], 0
        choices = Choices(tuple(options), tuple(options))
        prompt = self._question_at(way.node).ask(text, choices)
        (scored,) = self._scorer.full([self._scorer.ask(prompt, choices)])
        shares = normalised(scored.log_probs)
        mass = min(float(np.exp(scored.log_probs).sum()), 1.0)
        found: list[_Way] = []
        for child, share, log_prob in zip(
            options.values(), shares.tolist(), scored.log_probs.tolist(), strict=True
        ):
            level = Level(taxonomy.path(child), way.probability * share)
            found.append(self._next(way, child, share, mass, log_prob, level))
        return found, scored.forward_passes

    def _next(
        self, way: _Way, child: str, share: float, mass: float, log_prob: float, level: Level
    ) -> _Way:
        stays = child == way.node
        return _Way(
            node=child,
            probability=way.probability * share,
            mass=way.mass * mass,
            log_prob=way.log_prob + log_prob,
            levels=way.levels if stays else (*way.levels, level),
            ended=stays or not self._taxonomy.children(child),
        )

    def _question_at(self, node: str) -> Question:
        if not node:
            return self._question
        where = " > ".join(self._taxonomy.path(node))
        told = f"{self._question.instructions} It is known to belong to: {where}."
        return Question(told, (), self._question.frame)

    def _classification(self, ways: list[_Way], n_passes: int) -> Classification:
        ranking = tuple(RankedLabel(way.node, way.probability, way.log_prob) for way in ways)
        first, kept = ways[0], math.fsum(way.probability for way in ways)
        reason = None
        if first.probability < self._rules.min_probability:
            reason = "min_probability"
        elif first.mass < self._rules.min_valid_mass:
            reason = "min_valid_mass"
        return Classification(
            label=None if reason else first.node,
            probability=first.probability,
            ranking=ranking[: self._rules.top_k],
            valid_mass=first.mass,
            entropy=entropy([way.probability / kept for way in ways]) if kept else 0.0,
            forward_passes=n_passes,
            bounds=(first.probability, min(first.probability + max(1.0 - kept, 0.0), 1.0)),
            exact=False,
            open_mass=max(1.0 - kept, 0.0),
            proven=False,
            levels=first.levels,
            reason=reason,
        )
