from __future__ import annotations

import math
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.errors import GenerationError, IllegalTokenError, ModelError, UsageError
from structgen.runtime.events import Failed, Finished, Request, Step
from structgen.runtime.loop import decode, decode_requests
from structgen.runtime.sampling import Sampling
from structgen.testing import FakeLM, RandomLM, ScriptedLM, byte_vocabulary, small_vocabulary
from tests.runtime.fakes import ChoiceSession, FreeSession

BYTES = byte_vocabulary()
WORDS = small_vocabulary(["true", "false", "ab", "abc", "billing", '{"team": "'])
TEAMS = ['{"team": "billing"}', '{"team": "sales"}', '{"team": "support"}']


def written(vocabulary, events, row=0) -> str:
    steps = [e for e in events if isinstance(e, Step) and e.row == row and not e.end]
    return vocabulary.decode([step.token_id for step in steps]).decode()


def run(lm, prompts, sessions, sampling=None):
    """Events by row, times left out."""
    events = list(decode(lm, prompts, sessions, sampling))
    rows = [[e for e in events if e.row == row] for row in range(len(prompts))]
    return [
        [(e.token_id, e.forced, e.log_prob, e.valid_mass, e.end) for e in row[:-1]]
        + [(row[-1].finish_reason, row[-1].forward_passes)]
        for row in rows
    ]


def test_the_preferred_text_is_written_and_forced_tokens_skip_the_model():
    lm = ScriptedLM(WORDS, TEAMS[1])
    session = ChoiceSession(WORDS, TEAMS)
    events = list(decode(lm, [lm.encode_prompt("who?")], [session]))
    assert written(WORDS, events) == TEAMS[1]
    # Two choices, "s" against "b" and then "a" against "u": everything else is certain.
    assert [WORDS.bytes_of(e.token_id) for e in events[:-1] if not e.forced] == [b"s", b"a"]
    assert events[-1].finish_reason == "complete"
    assert events[-1].forward_passes == 2
    # What is forced first is read together with the prompt, and later in one chunk with a choice.
    prompt = lm.encode_prompt("who?")
    assert lm.chunks == [[[*prompt, WORDS.encode('{"team": "')[0]]], [WORDS.encode("s")]]


def test_forced_tokens_enter_the_cache_with_the_choice_before_them():
    lm = ScriptedLM(BYTES, "axxxb")
    decoded = list(decode(lm, [[1]], [ChoiceSession(BYTES, ["axxxb", "axxxc", "dd"])]))
    assert written(BYTES, decoded) == "axxxb"
    assert lm.chunks == [[[1]], [list(b"axxx")]]


def test_a_value_without_a_choice_never_asks_the_model():
    lm = RandomLM(BYTES)
    *steps, end = decode(lm, [[1]], [ChoiceSession(BYTES, ["null"])])
    assert bytes(step.token_id for step in steps) == b"null"
    assert all(step.forced and step.log_prob == 0 and step.valid_mass == 1 for step in steps)
    assert (end.finish_reason, end.forward_passes, end.forward_s) == ("complete", 0, 0.0)
    assert lm.chunks == []


def test_the_end_token_ends_a_value_that_could_go_on():
    lm = ScriptedLM(BYTES, "ab")
    events = list(decode(lm, [[1]], [ChoiceSession(BYTES, ["a", "ab", "abc"])]))
    assert written(BYTES, events) == "ab"
    assert events[-2].end
    assert events[-1].finish_reason == "stop"


def test_a_session_that_allows_nothing_is_an_error_of_its_own():
    session = FreeSession(BYTES, legal=range(97, 123), max_tokens=5)
    session.fill_mask = lambda row: row.fill(0)
    with pytest.raises(GenerationError, match="no token may come next"):
        list(decode(RandomLM(BYTES), [[1]], [session]))


def test_a_used_up_budget_stops_in_a_finished_state():
    lm = RandomLM(BYTES, seed=2)
    session = FreeSession(BYTES, legal=range(97, 123), max_tokens=5)
    lm.logits = lambda ids: torch.zeros(257).index_fill_(0, torch.tensor([256]), -50.0)
    events = list(decode(lm, [[1]], [session], Sampling(do_sample=True, seed=1)))
    assert len(events) == 6
    assert events[-1].finish_reason == "stop"
    assert events[-1].forward_passes == 5


def test_probabilities_agree_with_a_full_softmax():
    lm = RandomLM(WORDS, seed=4)
    session = ChoiceSession(WORDS, ["true", "false", "abc", "ab"], forcing=False)
    events = list(
        decode(lm, [[1, 2]], [session], Sampling(do_sample=True, temperature=9.0, seed=3))
    )
    replay = ChoiceSession(WORDS, ["true", "false", "abc", "ab"], forcing=False)
    tokens = [1, 2]
    assert len(events) > 2
    for step in events[:-1]:
        probabilities = lm.logits(tokens).double().softmax(-1)
        legal = [i for i in range(WORDS.width) if replay.allows(i)]
        mass = sum(probabilities[i] for i in legal)
        assert step.valid_mass == pytest.approx(float(mass), rel=1e-4)
        assert step.log_prob == pytest.approx(
            math.log(probabilities[step.token_id] / mass), abs=1e-4
        )
        replay.advance(step.token_id)
        tokens.append(step.token_id)


@given(
    seed=st.integers(0, 10_000),
    rows=st.lists(
        st.tuples(
            st.lists(st.integers(0, 255), min_size=1, max_size=6),
            st.lists(st.sampled_from(["a", "ab", "abc", "b", *TEAMS, "true", "false"]), min_size=1),
            st.booleans(),
        ),
        min_size=1,
        max_size=5,
    ),
    do_sample=st.booleans(),
)
@settings(deadline=None)
def test_a_batch_gives_what_its_rows_give_alone(seed, rows, do_sample):
    def session(row):
        return ChoiceSession(WORDS, row[1], forcing=row[2])

    sampling = Sampling(do_sample=do_sample, seed=seed)
    lm = RandomLM(WORDS, seed)
    together = run(lm, [row[0] for row in rows], [session(row) for row in rows], sampling)
    for i, row in enumerate(rows):
        alone = Sampling(do_sample=do_sample, seed=seed + i)
        assert run(lm, [row[0]], [session(row)], alone) == [together[i]]


SAMPLINGS = [
    Sampling(),
    Sampling(do_sample=True, seed=5),
    Sampling(do_sample=True, temperature=3.0, top_k=3, seed=6),
    Sampling(repetition_penalty=1.7),
    Sampling(do_sample=True, top_p=0.8, repetition_penalty=0.6, seed=7),
]


@given(
    seed=st.integers(0, 10_000),
    rows=st.lists(
        st.tuples(
            st.lists(st.integers(0, 255), min_size=1, max_size=6),
            st.lists(st.sampled_from(["a", "ab", "abc", "b", *TEAMS, "true", "false"]), min_size=1),
            st.sampled_from(SAMPLINGS),
        ),
        max_size=9,
    ),
    batch_size=st.integers(1, 4),
    joins=st.booleans(),
)
@settings(deadline=None)
def test_rows_that_come_and_go_get_what_they_get_alone(seed, rows, batch_size, joins):
    class LM(RandomLM):
        def can_join(self, cache):
            return joins

    def request(i):
        prompt, texts, sampling = rows[i]
        return Request(i, prompt, ChoiceSession(WORDS, texts), sampling)

    def key(event):
        if isinstance(event, Step):
            return event
        return event.finish_reason, event.forward_passes

    lm = LM(WORDS, seed)
    source = (request(i) for i in range(len(rows)))
    together = list(decode_requests(lm, source.__next__, batch_size=batch_size))
    assert all(len(chunk) <= batch_size for chunk in lm.chunks)
    for i in range(len(rows)):
        alone = decode_requests(LM(WORDS, seed), iter([request(i)]).__next__, batch_size=1)
        assert [key(e) for e in together if e.row == i] == [key(e) for e in alone]


def test_a_row_that_leaves_makes_room_for_the_next():
    lm = RandomLM(BYTES)
    lm.logits = lambda ids: torch.zeros(257).index_fill_(0, torch.tensor([97]), 9.0)
    lengths = [1, 5, 2, 2]
    sessions = [FreeSession(BYTES, [97], max_tokens=n) for n in lengths]
    requests = iter([Request(i, [i], session) for i, session in enumerate(sessions)])
    events = list(decode_requests(lm, requests.__next__, batch_size=2))
    assert [e.row for e in events if isinstance(e, Finished)] == [0, 2, 1, 3]
    # Row 1 goes on for four passes; the prompts of rows 2 and 3 are read on the side.
    assert [len(chunk) for chunk in lm.chunks] == [2, 1, 1, 2, 1, 1, 2]


def test_what_becomes_of_a_row_may_give_rise_to_another():
    waiting = [Request(0, [1], ChoiceSession(BYTES, ["ab"]))]
    seen = []
    for event in decode_requests(
        RandomLM(BYTES), lambda: waiting.pop() if waiting else None, batch_size=3
    ):
        if isinstance(event, Finished):
            seen.append(event.row)
            if event.row < 3:
                waiting.append(Request(event.row + 1, [1], ChoiceSession(BYTES, ["a", "b"])))
    assert seen == [0, 1, 2, 3]


def test_a_row_that_fails_leaves_the_others_alone():
    def logits(ids):
        if ids[0] == 66:
            return torch.full((257,), math.nan)
        return RandomLM.logits(lm, ids)

    lm = RandomLM(BYTES)
    lm.logits = logits
    requests = [
        Request(i, [prompt], ChoiceSession(BYTES, ["ab", "cd", "ef"]))
        for i, prompt in enumerate([65, 66, 67])
    ]
    events = list(decode_requests(lm, iter(requests).__next__, batch_size=3))
    [failure] = [e for e in events if isinstance(e, Failed)]
    assert failure.row == 1
    assert isinstance(failure.error, ModelError)
    assert {e.row for e in events if isinstance(e, Finished)} == {0, 2}


def test_a_request_without_a_prompt_is_refused():
    request = Request(4, [], ChoiceSession(BYTES, ["a", "b"]))
    with pytest.raises(UsageError, match="row 4 has no tokens"):
        list(decode_requests(RandomLM(BYTES), iter([request]).__next__, batch_size=1))


def test_finished_rows_leave_the_batch():
    lm = RandomLM(BYTES)
    sessions = [
        ChoiceSession(BYTES, ["x"]),
        FreeSession(BYTES, [97], max_tokens=6),
        FreeSession(BYTES, [97], max_tokens=2),
    ]
    lm.logits = lambda ids: torch.zeros(257).index_fill_(0, torch.tensor([97]), 9.0)
    ends = [e.row for e in decode(lm, [[1]] * 3, sessions) if isinstance(e, Finished)]
    assert ends == [0, 2, 1]
    # The prompt, which all share, is read once, and the first row never asks the model.
    assert [len(chunk) for chunk in lm.chunks] == [1, 2, 1, 1, 1, 1]


def test_no_rows_give_no_events():
    assert list(decode(RandomLM(BYTES), [], [])) == []


def test_prompts_and_sessions_must_match_before_anything_runs():
    with pytest.raises(UsageError, match="2 prompts and 1 sessions"):
        decode(RandomLM(BYTES), [[1], [2]], [ChoiceSession(BYTES, ["a"])])
    with pytest.raises(UsageError, match="prompt 1 has no tokens"):
        decode(RandomLM(BYTES), [[1], []], [ChoiceSession(BYTES, ["a"])] * 2)


@pytest.mark.parametrize("value", [math.nan, -math.inf, math.inf])
def test_logits_that_are_not_finite_are_the_models_fault(value):
    lm = RandomLM(BYTES)
    lm.logits = lambda ids: torch.full((257,), value)
    with pytest.raises(ModelError, match="finite logit"):
        list(decode(lm, [[1]], [ChoiceSession(BYTES, ["a", "b"])]))


def test_logits_of_another_width_are_the_models_fault():
    lm = RandomLM(BYTES)
    lm.logits = lambda ids: torch.zeros(256)
    with pytest.raises(ModelError, match=r"\(1, 256\).*\(1, 257\)"):
        list(decode(lm, [[1]], [ChoiceSession(BYTES, ["a", "b"])]))


def test_a_session_that_forbids_what_it_forced_is_not_papered_over():
    session = ChoiceSession(BYTES, ["ab", "ac"])
    session.forced = lambda: [120]
    with pytest.raises(IllegalTokenError, match="token 120"):
        list(decode(RandomLM(BYTES), [[1]], [session]))


def test_the_consumer_is_outside_of_inference_mode_and_of_the_timers():
    lm = RandomLM(BYTES)
    lm.logits = lambda ids: torch.zeros(257).index_fill_(0, torch.tensor([97]), 9.0)
    session = FreeSession(BYTES, [97], max_tokens=3)
    events = []
    for event in decode(lm, [[1]], [session]):
        assert not torch.is_inference_mode_enabled()
        time.sleep(0.05)
        events.append(event)
    assert events[-1].forward_s + events[-1].mask_s < 0.05
    assert 0 < events[-1].first_mask_s < 0.05


def test_the_meters_tell_the_model_from_the_rest():
    class SlowLM(RandomLM):
        def logits(self, token_ids):
            time.sleep(0.02)
            return super().logits(token_ids)

    *_, end = decode(SlowLM(BYTES), [[1]], [FreeSession(BYTES, range(97, 123), max_tokens=4)])
    assert end.forward_s >= 0.02 * end.forward_passes
    assert end.mask_s < 0.02
    assert end.first_mask_s < 0.02


def test_a_fake_model_needs_its_logits():
    with pytest.raises(TypeError, match="abstract method"):
        FakeLM(BYTES)


def test_fakes_encode_a_prompt_of_text_or_messages():
    lm = RandomLM(WORDS)
    assert lm.encode_prompt("abcx") == [WORDS.encode("abc")[0], ord("x")]
    assert lm.encode_prompt([{"role": "user", "content": "x"}]) == [ord("x")]
    assert lm.encode_prompt("") == [0]
    assert ScriptedLM(WORDS, "x").encode_prompt("x") == [ord("x"), 0]
