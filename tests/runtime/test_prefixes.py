"""Readings of prefixes, on a table of probabilities and on a transformers model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

from structgen.compiler import compile as compile_schema
from structgen.runtime.hf import HFModel
from structgen.runtime.prefixes import Prefixes, legal_tokens, log_sum
from structgen.schema.roots import Regex
from structgen.testing import RandomLM, byte_vocabulary
from tests.runtime.fakes import tiny_model, tiny_tokenizer

PROMPT = [7, 8, 9]


MODELS = {
    "fake": lambda: RandomLM(byte_vocabulary()),
    "hf": lambda: HFModel(tiny_model(), tiny_tokenizer()),
    "hf with a window": lambda: HFModel(windowed_model(), tiny_tokenizer()),
}


def windowed_model() -> transformers.MistralForCausalLM:
    """Its cache is no plain one: each layer forgets what is older than 64 tokens."""
    config = transformers.MistralConfig(
        vocab_size=300,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=64,
        bos_token_id=None,
        eos_token_id=255,
        initializer_range=0.5,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return transformers.MistralForCausalLM(config)


@pytest.fixture(scope="module", params=MODELS)
def lm(request):
    return MODELS[request.param]()


def test_the_last_logits_are_those_of_single_steps(lm):
    rows = [[1, 2, 3, 4], [5, 6, 7]]
    cache, _ = lm.prefill([PROMPT, [1, 2]])
    together = lm.extend_last(cache, rows, 2)
    assert together.shape == (2, 2, lm.vocabulary.width)
    for row, (prompt, ids) in enumerate(zip([PROMPT, [1, 2]], rows, strict=True)):
        for place in (-2, -1):
            _, alone = lm.prefill([[*prompt, *ids[: len(ids) + place + 1]]])
            torch.testing.assert_close(together[row, place], alone[0], atol=1e-4, rtol=1e-4)


def test_forks_grow_on_their_own(lm):
    cache, _ = lm.prefill([PROMPT])
    twin = lm.fork(cache)
    lm.extend(twin, [[1, 2, 3]])
    again = lm.fork(twin)
    lm.extend(twin, [[4]])
    for used, ids in ((cache, [5]), (again, [1, 2, 3, 6])):
        behind = lm.extend(used, [ids[-1:]])
        _, alone = lm.prefill([[*PROMPT, *ids]])
        torch.testing.assert_close(behind, alone, atol=1e-4, rtol=1e-4)


def test_readings_are_the_models_probabilities_wherever_they_were_read(lm):
    session = compile_schema(Regex("[ab]{1,6}"), lm.vocabulary).session(9)
    prefixes = Prefixes(lm, PROMPT, 0.5)
    orders = [((), [0]), ((), []), ((0,), [1, 1]), ((0, 1, 1), []), ((1,), []), ((0, 1), [0])]
    a, b = (lm.vocabulary.encode(char)[0] for char in "ab")
    for prefix, ahead in orders:
        ids = [(a, b)[bit] for bit in (*prefix, *ahead)]
        head = tuple(ids[: len(prefix)])
        row = session.fork()
        for token_id in head:
            row.advance(token_id)
        readings = prefixes.read(head, ids[len(prefix) :], row)
        assert len(readings) == len(ahead) + 1
        for place, reading in enumerate(readings):
            _, logits = lm.prefill([[*PROMPT, *ids[: len(prefix) + place]]])
            expected = logits[0].double().log_softmax(-1).numpy()[reading.token_ids]
            np.testing.assert_allclose(reading.log_probs, expected, atol=1e-4)
            cold = (logits[0].double() / 0.5).log_softmax(-1).numpy()[reading.token_ids]
            np.testing.assert_allclose(reading.at(0.5), cold, atol=3e-4)
            assert reading.log_mass == pytest.approx(log_sum(expected), abs=1e-4)
    # The prompt, its end with "a", "ab", "b", and "ab" before "a": the rest was known.
    assert prefixes.forward_passes == 5


def test_legal_tokens_are_those_of_the_mask():
    vocabulary = byte_vocabulary()
    session = compile_schema(Regex("[a-c]?"), vocabulary).session(3)
    assert legal_tokens(session, vocabulary.width).tolist() == [*b"abc", 256]


def test_the_logarithm_of_a_sum():
    assert log_sum(np.log([0.25, 0.5])) == pytest.approx(np.log(0.75))
    assert log_sum(np.array([-1e6, -1e6])) == pytest.approx(-1e6 + np.log(2))
    assert log_sum(np.array([-np.inf])) == log_sum(np.array([])) == -np.inf
