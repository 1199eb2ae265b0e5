from __future__ import annotations

import inspect
from typing import Annotated, Literal

import pytest
import torch
import transformers
from pydantic import Field
from transformers.generation import GenerateDecoderOnlyOutput

from structgen.compiler import compile as compile_schema
from structgen.errors import BudgetError, GenerationError, ModelError, OptionError
from structgen.integrations.hf import (
    StructgenGenerate,
    StructgenLogitsProcessor,
    StructgenOutput,
    parse,
)
from structgen.integrations.hf.choosing import Batch, Chooser
from structgen.integrations.hf.targets import ends
from structgen.integrations.hf.writing import Writing
from structgen.tokens.vocabulary import Vocabulary
from tests.integrations.tiny import (
    PROMPTS,
    Long,
    Person,
    Short,
    encode,
    model,
    tokenizer,
    vocabulary,
)

BUDGET = 60
VOCABULARY = vocabulary()
PERSON = compile_schema(Person, VOCABULARY)
PAD, END = tokenizer().pad_token_id, tokenizer().eos_token_id


def generate(write, prompts=PROMPTS, **options):
    """Values, and what `generate` returned."""
    inputs = encode(prompts)
    options = {"max_new_tokens": BUDGET, **options}
    output = model().generate(**inputs, custom_generate=write, **options)
    return parse(write, output, inputs.input_ids.shape[1]), output


MODES = {
    "greedy": {},
    "sampling": {"do_sample": True},
    "warm": {"do_sample": True, "temperature": 3.0, "top_k": 0},
    "nucleus": {"do_sample": True, "top_p": 0.3, "min_p": 0.05},
    "cold": {"do_sample": True, "top_k": 1, "typical_p": 0.9, "renormalize_logits": True},
    "several": {"do_sample": True, "num_return_sequences": 3},
    "penalties": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 9},
    "decay": {"exponential_decay_length_penalty": (5, 1.5)},
}


@pytest.mark.parametrize("mode", MODES)
def test_every_value_is_valid_in_every_mode(mode):
    values, ids = generate(StructgenGenerate(PERSON), **MODES[mode])
    assert len(values) == len(ids) == 3 * MODES[mode].get("num_return_sequences", 1)
    assert all(isinstance(value, Person) for value in values)
    for row in ids.tolist():
        assert row.count(END) == 1
        assert set(row[row.index(END) + 1 :]) <= {PAD}


def legal_choice(prompt, mask, written):
    """The best legal token after what was written, by a pass over the whole row; None if forced."""
    session = PERSON.session(BUDGET)
    for token in written:
        session.advance(token)
    if session.forced() or session.complete:
        return None
    ids = torch.tensor([[*prompt, *written]])
    mask = torch.tensor([[*mask, *[1] * len(written)]])
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        logits = model()(input_ids=ids, attention_mask=mask, position_ids=positions).logits[0, -1]
    return max((i for i in range(VOCABULARY.width) if session.allows(i)), key=lambda i: logits[i])


def test_each_choice_is_the_best_legal_token():
    """In a batch with padding and ragged forced runs, against passes without a cache."""
    inputs = encode(PROMPTS)
    start = inputs.input_ids.shape[1]
    _, ids = generate(StructgenGenerate(PERSON))
    n_choices = 0
    for row, mask in zip(ids.tolist(), inputs.attention_mask.tolist(), strict=True):
        written = row[start : row.index(END)]
        place = 0
        while place < len(written):
            best = legal_choice(row[:start], mask, written[:place])
            if best is None:
                session = PERSON.session(BUDGET)
                for token in written[:place]:
                    session.advance(token)
                run = session.forced()
                assert written[place : place + len(run)] == run
                place += len(run)
            else:
                assert written[place] == best
                place, n_choices = place + 1, n_choices + 1
    assert n_choices > 10


def test_a_batch_gives_what_its_rows_give_alone():
    schemas = [Short, Person, Long]
    for options in ({}, {"repetition_penalty": 1.5}):
        together, _ = generate(StructgenGenerate(schemas, VOCABULARY), **options)
        alone = [generate(StructgenGenerate(schema, VOCABULARY), prompt, **options)[0][0]
                 for schema, prompt in zip(schemas, PROMPTS, strict=True)]  # fmt: skip
        assert together == alone


def count_passes(monkeypatch):
    lengths = []
    forward = transformers.LlamaForCausalLM.forward

    def counted(self, input_ids=None, **kwargs):
        lengths.append(input_ids.shape[1])
        return forward(self, input_ids=input_ids, **kwargs)

    # generate() reads the signature of forward()
    counted.__signature__ = inspect.signature(forward)
    monkeypatch.setattr(transformers.LlamaForCausalLM, "forward", counted)
    return lengths


def test_forced_tokens_take_no_pass_of_their_own(monkeypatch):
    lengths = count_passes(monkeypatch)
    _, output = generate(StructgenGenerate(PERSON), "hello", return_dict_in_generate=True)
    n_prompt = encode("hello").input_ids.shape[1]
    n_written = output.sequences.shape[1] - n_prompt
    assert output.forward_passes == len(lengths)
    assert output.forward_passes + output.forced_tokens[0] == n_written
    assert output.forced_tokens[0] > 8
    assert sum(lengths) < n_prompt + n_written, "the end of the value was never read"
    assert max(lengths[1:]) > 1


def test_a_value_without_a_choice_takes_no_pass_at_all(monkeypatch):
    lengths = count_passes(monkeypatch)
    values, ids = generate(StructgenGenerate(Literal["so it is"], VOCABULARY))
    assert values == ["so it is"] * 3
    assert lengths == []
    assert set(ids[:, -1].tolist()) == {END}


def test_an_end_token_is_written_only_where_there_is_room():
    write = StructgenGenerate(Literal["so it is"], VOCABULARY)
    n_prompt, n_value = encode(PROMPTS).input_ids.shape[1], len(VOCABULARY.encode("so it is"))
    for room in (0, 1, 5):
        values, ids = generate(write, max_new_tokens=n_value + room)
        assert values == ["so it is"] * 3
        assert ids.shape[1] == n_prompt + n_value + min(room, 1)


@pytest.mark.parametrize("stop", ["<end>", "<bos>"])
def test_a_value_ends_where_generate_stops(stop):
    stops = tokenizer().convert_tokens_to_ids(["<end>", "<bos>"])
    stop = tokenizer().convert_tokens_to_ids(stop)
    both = Vocabulary.from_tokenizer(tokenizer(), eos_token_ids=stops, cache=False)
    inputs = encode(["x"] * 20)
    for schema in (list[bool], Annotated[int, Field(ge=0, lt=10**9)]):
        write = StructgenGenerate(schema, both)
        options = {"do_sample": True, "temperature": 50.0, "top_k": 0, "max_new_tokens": BUDGET}
        options["eos_token_id"] = stop
        ids = model().generate(**inputs, custom_generate=write, **options)
        written = ids[:, inputs.input_ids.shape[1] :]
        assert (written == stop).sum() == 20
        assert not (written == (set(stops) - {stop}).pop()).any()


def test_rows_of_unequal_length_are_processed_with_their_own_ids():
    """A processor that writes down what it sees of each row."""

    class Note(transformers.LogitsProcessor):
        def __call__(self, input_ids, scores):
            scores[:, 0] += input_ids.shape[1]
            scores[:, 1] += input_ids[:, -1]
            scores[:, 2] += torch.arange(len(scores))
            return scores

    rows = [Writing(i, PERSON.session(), END, BUDGET, tokens=[10 + i] * n)
            for i, n in enumerate([3, 0, 5, 3])]  # fmt: skip
    batch = Batch(torch.full((4, 2), 7), rows, PAD)
    chooser = Chooser(batch, [Note()], ends(VOCABULARY, None), do_sample=False)
    for asked in ([0, 1, 2, 3], [2, 3], [3, 1]):
        scores = chooser._process(chooser._processors, [rows[i] for i in asked],
                                  torch.zeros(len(asked), 3))  # fmt: skip
        noted = {0: [5, 10, 0], 1: [2, 7, 1], 2: [7, 12, 2], 3: [5, 13, 3]}
        assert scores.tolist() == [noted[i] for i in asked]


def test_a_row_without_a_choice_leaves_the_batch_before_the_first_pass():
    values, _ = generate(StructgenGenerate([Person, Literal["x"], Long], VOCABULARY))
    assert [type(value) for value in values] == [Person, str, Long]


def test_a_value_is_finished_within_its_budget():
    for budget in range(PERSON.min_tokens, PERSON.min_tokens + 6):
        values, ids = generate(
            StructgenGenerate(PERSON), max_new_tokens=budget, do_sample=True, temperature=5.0
        )
        assert len(values) == 3
        assert ids.shape[1] - encode(PROMPTS).input_ids.shape[1] <= budget
    n_prompt = encode(PROMPTS).input_ids.shape[1]
    length = n_prompt + PERSON.min_tokens
    assert generate(StructgenGenerate(PERSON), max_new_tokens=None, max_length=length)
    with pytest.raises(BudgetError):
        generate(StructgenGenerate(PERSON), max_new_tokens=None, max_length=length - 1)
    with pytest.raises(BudgetError):
        generate(StructgenGenerate(PERSON), max_new_tokens=5)


def test_what_returns_a_dict_has_scores_for_each_token():
    inputs = encode(PROMPTS)
    _, output = generate(
        StructgenGenerate(PERSON), return_dict_in_generate=True, output_scores=True
    )
    assert isinstance(output, StructgenOutput)
    assert isinstance(output, GenerateDecoderOnlyOutput)
    written = output.sequences[:, inputs.input_ids.shape[1] :]
    assert len(output.scores) == written.shape[1]
    log_probs = model().compute_transition_scores(
        output.sequences, output.scores, normalize_logits=True
    )
    assert (log_probs <= 0).all()
    for row, n_forced in enumerate(output.forced_tokens):
        n_certain = int((log_probs[row] == 0).sum())
        assert n_certain >= n_forced
        assert n_certain < written.shape[1]


def test_a_streamer_gets_the_prompt_and_each_token():
    class Streamer:
        def __init__(self):
            self.got, self.ended = [], False

        def put(self, value):
            self.got.append(value.flatten().tolist())

        def end(self):
            self.ended = True

    streamer = Streamer()
    _, ids = generate(StructgenGenerate(PERSON, streamer=streamer), "hello")
    n_prompt = encode("hello").input_ids.shape[1]
    assert streamer.got == [ids[0, :n_prompt].tolist(), *([t] for t in ids[0, n_prompt:].tolist())]
    assert streamer.ended
    with pytest.raises(OptionError, match="one row"):
        generate(StructgenGenerate(PERSON, streamer=streamer))


def test_text_is_streamed():
    streamer = transformers.TextIteratorStreamer(
        tokenizer(), skip_prompt=True, skip_special_tokens=True
    )
    values, _ = generate(StructgenGenerate(PERSON, streamer=streamer), "hello")
    assert values == [Person.model_validate_json("".join(streamer))]


def test_a_stopping_criterion_of_the_caller_closes_rows():
    class AfterFive(transformers.StoppingCriteria):
        def __call__(self, input_ids, scores, **kwargs):
            n_written = input_ids.shape[1] - encode(PROMPTS).input_ids.shape[1]
            return torch.full((len(input_ids),), n_written >= 5)

    criteria = transformers.StoppingCriteriaList([AfterFive()])
    with pytest.raises(GenerationError, match="not finished"):
        generate(StructgenGenerate(PERSON), stopping_criteria=criteria)
    assert len(generate(StructgenGenerate(PERSON), max_time=100.0)[0]) == 3


def test_processors_of_the_caller_see_the_rows_as_they_are():
    seen = []

    class Watch(transformers.LogitsProcessor):
        def __call__(self, input_ids, scores):
            seen.append((input_ids.clone(), scores.shape))
            return scores

    _, ids = generate(StructgenGenerate([Short, Person, Long], VOCABULARY),
                      logits_processor=[Watch()])  # fmt: skip
    for input_ids, shape in seen:
        assert shape[0] == 3
        same = (input_ids == ids[:, : input_ids.shape[1]]).all(dim=1)
        assert same.any()


def test_the_masks_come_before_top_p():
    """A processor makes illegal tokens nearly certain; top_p then still finds the legal ones."""

    class Liar(transformers.LogitsProcessor):
        def __call__(self, input_ids, scores):
            scores[:, 80:90] += 1000.0
            return scores

    options = {"do_sample": True, "top_p": 0.5, "logits_processor": [Liar()]}
    assert len(generate(StructgenGenerate(Short, VOCABULARY), **options)[0]) == 3


@pytest.mark.parametrize("options", [{"min_new_tokens": 50}, {"suppress_tokens": [0]}])
def test_the_end_of_a_value_is_written_where_it_is_certain(options):
    """The end token of an object is no choice, so nothing that forbids it is asked."""
    assert len(generate(StructgenGenerate(PERSON), **options)[0]) == 3


def test_options_that_forbid_all_that_is_legal_are_named():
    first = StructgenGenerate(Literal["a", "b"], VOCABULARY)
    with pytest.raises(GenerationError, match=r"row 0: every token .* suppress_tokens"):
        generate(first, suppress_tokens=list(range(VOCABULARY.width)))


def test_a_prefix_in_the_cache_is_not_read_again():
    inputs = encode("the engineer said hello to the nurse")
    n_known = 3
    with torch.no_grad():
        known = model()(input_ids=inputs.input_ids[:, :n_known], use_cache=True).past_key_values
    expected, _ = generate(StructgenGenerate(PERSON), "the engineer said hello to the nurse")
    write = StructgenGenerate(PERSON)
    ids = model().generate(
        **inputs, past_key_values=known, custom_generate=write, max_new_tokens=BUDGET
    )
    assert parse(write, ids, inputs.input_ids.shape[1]) == expected


def test_in_a_pipeline():
    run = transformers.pipeline("text-generation", model=model(), tokenizer=tokenizer())
    write = StructgenGenerate(PERSON)
    options = {"custom_generate": write, "max_new_tokens": BUDGET, "return_full_text": False}
    for batch_size in (1, 2):
        for outputs in run(PROMPTS, batch_size=batch_size, **options):
            Person.model_validate_json(outputs[0]["generated_text"])


REFUSED = {
    "beams": ({"num_beams": 2}, "not beam_search"),
    "sampled beams": ({"num_beams": 2, "do_sample": True}, "not beam_sample"),
    "drafts": ({"prompt_lookup_num_tokens": 3}, "not assisted_generation"),
    "chunks": ({"prefill_chunk_size": 2}, "prefill_chunk_size"),
    "logits": (
        {"return_dict_in_generate": True, "output_logits": True},
        "does not support output_logits",
    ),
    "attentions": (
        {"return_dict_in_generate": True, "output_hidden_states": True},
        "output_hidden_states",
    ),
    "no cache": ({"use_cache": False}, "a cache that grows"),
    "static cache": ({"cache_implementation": "static"}, "a cache that grows"),
    "guidance": ({"guidance_scale": 1.5}, "UnbatchedClassifierFreeGuidance"),
    "positions": ({"position_ids": torch.full((1, 1), 7)}, "counts positions itself"),
    "processor": ({"logits_processor": [StructgenLogitsProcessor(PERSON)]}, "pass one"),
    "end": ({"eos_token_id": 5}, "stops at 5"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_does_not_follow_is_refused(case):
    options, message = REFUSED[case]
    with pytest.raises(OptionError, match=message):
        generate(StructgenGenerate(PERSON), "x", **options)


def test_embeddings_are_refused():
    embeddings = torch.zeros(1, 3, 32)
    with pytest.raises(OptionError, match="inputs_embeds"):
        model().generate(
            inputs_embeds=embeddings, custom_generate=StructgenGenerate(PERSON), max_new_tokens=50
        )


def test_logits_that_are_too_narrow_are_named():
    wide = Vocabulary.from_tokenizer(tokenizer(), width=2000, cache=False)
    with pytest.raises(ModelError, match="but the vocabulary has 2000 ids"):
        generate(StructgenGenerate(Short, wide))


def test_one_schema_for_each_prompt():
    with pytest.raises(OptionError, match="2 schemas for 3 rows"):
        generate(StructgenGenerate([Short, Long], VOCABULARY))
    values, _ = generate(
        StructgenGenerate([Short, Person, Long], VOCABULARY), do_sample=True, num_return_sequences=2
    )
    assert [type(v) for v in values] == [Short, Short, Person, Person, Long, Long]
