"""From masked logits to token ids.

The functions are pure and work on whole batches. A token that the mask forbids has the logit -inf
in and out; among the legal ones, order and ratios stay the model's own, apart from the
temperature. Letters of shapes: B rows, W columns of the logits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from structgen.errors import OptionError

NEVER = -math.inf
HEAD = 256
"""So many of the best tokens are looked at before all of them are sorted."""
SEEDS_APART = 1_000_003
"""Between attempts at one value, so that none draws like another row of a batch."""
FLOAT = torch.finfo(torch.float32)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is chosen among the legal ones; names and meaning are those of transformers.

    Example: `Sampling(do_sample=True, temperature=0.7, top_p=0.9, seed=1)`
    """

    do_sample: bool = False
    """False takes the most probable token, whatever the other options say."""
    temperature: float = 1.0
    """Divides the logits: below 1 sharpens, above 1 flattens."""
    top_k: int | None = None
    """Keep the k most probable legal tokens."""
    top_p: float | None = None
    """Keep the fewest most probable legal tokens that together have this probability."""
    min_p: float | None = None
    """Keep legal tokens with at least this fraction of the best one's probability."""
    seed: int | None = None
    """Same seed, same tokens; None follows `torch.manual_seed`, as transformers does."""
    repetition_penalty: float = 1.0
    """Above 1, tokens of the prompt and of the value so far become less probable: their logits are
    divided by it where they are positive and multiplied where they are negative. Also when greedy.
    JSON repeats quotes and commas by nature, so values near 1 are wise. After Keskar et al. 2019,
    CTRL, arXiv:1909.05858."""

    def __post_init__(self) -> None:
        if not isinstance(self.do_sample, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"do_sample={self.do_sample!r} must be True or False")
        _check("temperature", self.temperature, (int, float), 0.0, math.inf, "above 0")
        _check("top_k", self.top_k, (int,), 0, math.inf, "a whole number from 1 up, or None")
        _check("top_p", self.top_p, (int, float), 0.0, 1.0, "above 0 and at most 1, or None")
        _check("min_p", self.min_p, (int, float), 0.0, 1.0, "above 0 and at most 1, or None")
        _check("seed", self.seed, (int,), -1, 2**63 - 1, "a whole number from 0 to 2**63 - 1")
        penalty = self.repetition_penalty
        _check("repetition_penalty", penalty, (int, float), 0.0, 1e3, "above 0 and at most 1000")

    def attempt(self, index: int) -> Sampling:
        """How attempt number `index` at the same value chooses its tokens, 0 being the first.

        The first one does as asked; the others sample, since a greedy one would repeat the first.
        Attempt k is seeded with `seed + k * 1_000_003`, modulo 2**63.
        """
        if index == 0:
            return self
        seed = None if self.seed is None else (self.seed + index * SEEDS_APART) % 2**63
        return replace(self, do_sample=True, seed=seed)

    def for_rows(self, n_rows: int) -> list[Sampling]:
        """The same for each row of a batch, row i seeded with `seed + i`, modulo 2**63."""
        return [self.for_row(i) for i in range(n_rows)]

    def for_row(self, index: int) -> Sampling:
        """The same for one row of a batch."""
        if self.seed is None or index == 0:
            return self
        return replace(self, seed=(self.seed + index) % 2**63)

    def generator(self, device: torch.device) -> torch.Generator:
        """A random generator for one row, so that what it draws depends on no other row.

        Without a seed it is seeded from torch's global generator.
        """
        seed = self.seed
        if seed is None:
            seed = int(torch.randint(2**63 - 1, (1,)).item())
        return torch.Generator(device=device).manual_seed(seed)


def choose_each(
    logits: Tensor,
    samplings: Sequence[Sampling],
    generators: Sequence[torch.Generator],
    histories: Sequence[Sequence[int]],
) -> Tensor:
    """One legal token id per row, int64 [B]; masked logits [B, W] are left as they are.

    Rows that sample alike are handled together.

    Args:
        histories: token ids of each row's prompt and value so far.
    """
    alike: dict[Sampling, list[int]] = {}
    for i, sampling in enumerate(samplings):
        alike.setdefault(replace(sampling, seed=None), []).append(i)
    chosen = torch.empty(len(logits), dtype=torch.int64, device=logits.device)
    for sampling, rows in alike.items():
        part = logits if len(rows) == len(logits) else logits[rows]  # [R, W]
        if sampling.repetition_penalty != 1:
            part = penalise(part, [histories[i] for i in rows], sampling.repetition_penalty)
        token_ids = choose(part, sampling, [generators[i] for i in rows])
        if len(rows) == len(logits):
            return token_ids
        chosen[rows] = token_ids
    return chosen


def penalise(logits: Tensor, histories: Sequence[Sequence[int]], penalty: float) -> Tensor:
    """A copy of the logits [B, W] in which what each row has read is less probable."""
    logits = logits.clone()
    for row, history in zip(logits, histories, strict=True):
        seen = torch.tensor(sorted(set(history)), dtype=torch.int64, device=logits.device)
        before = row[seen]
        row[seen] = torch.where(before < 0, before * penalty, before / penalty)
    return logits


def choose(logits: Tensor, sampling: Sampling, generators: Sequence[torch.Generator]) -> Tensor:
    """One legal token id per row, int64 [B]; masked logits [B, W] are left as they are."""
    if not sampling.do_sample:
        return logits.argmax(dim=-1)
    return draw(warp(logits, sampling), generators)


def warp(logits: Tensor, sampling: Sampling) -> Tensor:
    """Logits [B, W] of the distribution to draw from; at least one token per row stays."""
    logits = logits.float()
    best = logits.max(dim=-1, keepdim=True).values  # [B, 1]
    # With the best logit at 0, and a divisor that float32 can hold, nothing becomes inf or nan.
    logits = (logits - best) / min(max(sampling.temperature, FLOAT.tiny), FLOAT.max)
    if sampling.top_k is not None:
        logits = keep_top_k(logits, sampling.top_k)
    if sampling.top_p is not None:
        logits = keep_top_p(logits, sampling.top_p)
    if sampling.min_p is not None:
        logits = keep_min_p(logits, sampling.min_p)
    return logits


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Forbid what is less probable than the k-th best; ties with it stay."""
    kth = logits.topk(min(k, logits.shape[-1]), dim=-1).values[:, -1:]  # [B, 1]
    return logits.masked_fill(logits < kth, NEVER)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """Forbid the tail: a token stays while those before it add up to less than p; so do ties."""
    probabilities = logits.softmax(dim=-1)  # [B, W]
    # The head usually holds p: for W = 49,152 finding it takes 0.14 ms, sorting all takes 2.4 ms.
    head = probabilities.topk(min(HEAD, logits.shape[-1]), dim=-1).values
    if bool((head.sum(dim=-1) < p).any()):
        head = probabilities.sort(dim=-1, descending=True).values
    before = head.cumsum(dim=-1) - head
    n_kept = (before < p).sum(dim=-1, keepdim=True).clamp(min=1)  # [B, 1]
    return logits.masked_fill(probabilities < head.gather(-1, n_kept - 1), NEVER)


def keep_min_p(logits: Tensor, p: float) -> Tensor:
    """Forbid tokens with less than p times the best one's probability."""
    best = logits.max(dim=-1, keepdim=True).values  # [B, 1]
    return logits.masked_fill(logits < best + math.log(p), NEVER)


def draw(logits: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
    """One token id per row, int64 [B], with the probabilities softmax(logits).

    Inverts the cumulative distribution, with one random number per row: for W = 49,152 that takes
    0.14 ms, `torch.multinomial` 1.5 ms.
    """
    cumulative = logits.softmax(dim=-1).double().cumsum(dim=-1)  # [B, W]
    total = cumulative[:, -1:].clone()  # [B, 1]
    point = torch.cat([_uniform(generator) for generator in generators])[:, None] * total
    drawn = torch.searchsorted(cumulative, point, right=True)  # [B, 1]
    last = torch.searchsorted(cumulative, total)  # a point rounded up to the total ends here
    # Logits that are no numbers have no distribution: some token is returned, and the caller finds
    # out by its probability.
    return torch.minimum(drawn, last)[:, 0].clamp(max=logits.shape[-1] - 1)


def _uniform(generator: torch.Generator) -> Tensor:
    """A random number from 0 to 1, 1 excluded: float64 [1] on the generator's device."""
    return torch.rand(1, generator=generator, dtype=torch.float64, device=generator.device)


def _check(
    name: str,
    value: object,
    kinds: tuple[type, ...],
    above: float,
    at_most: float,
    allowed: str,
) -> None:
    """Refuse a value outside (above, at_most]; None is fine except for what has a neutral value."""
    if value is None and name not in ("temperature", "repetition_penalty"):
        return
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise OptionError(f"{name}={value!r} must be {allowed}")
    number = float(value)  # pyright: ignore[reportArgumentType] - int or float by the line above
    if not (above < number <= at_most) or math.isinf(number):
        raise OptionError(f"{name}={value!r} must be {allowed}")
