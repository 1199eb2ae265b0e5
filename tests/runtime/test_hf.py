from __future__ import annotations

import json
import random

import pytest
import torch
import transformers

from structgen.errors import InvalidTextError, ModelError, OptionError, UsageError
from structgen.runtime import upcast
from structgen.runtime.events import Step
from structgen.runtime.hf import HFModel, load
from structgen.runtime.loop import decode
from structgen.runtime.sampling import Sampling
from tests.runtime.fakes import CHAT, ChoiceSession, FreeSession, tiny_model, tiny_tokenizer


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def tiny() -> HFModel:
    return load((tiny_model(), tiny_tokenizer()))


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "tiny"
    tiny_model().save_pretrained(path)
    tiny_tokenizer(CHAT).save_pretrained(path)
    return path


def logits_after(model, token_ids) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([token_ids])).logits[0, -1]


def test_a_folder_is_loaded_with_its_own_tokenizer(folder):
    lm = load(folder)
    assert lm.name == str(folder)
    assert lm.vocabulary.width == 300
    assert lm.context_length == 512
    assert lm.device == torch.device("cpu")
    assert lm.encode_prompt("hi") == lm.tokenizer("<user>hi|<assistant>")["input_ids"]


def modes(model: torch.nn.Module) -> list[bool]:
    return [module.training for module in model.modules()]


@pytest.mark.parametrize("fails", [False, True])
def test_a_model_that_is_trained_is_read_without_dropout_and_goes_on_as_it_was(fails, monkeypatch):
    model = tiny_model()
    model.config.attention_dropout = 0.5
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.5
    lm = load((model, tiny_tokenizer()))
    prompt = [1, 2, 3, 4, 5, 6]
    model.eval()
    expected, further = logits_after(model, prompt), logits_after(model, [*prompt, 7])
    model.train()
    model.model.norm.eval()  # kept so by the user
    before = modes(model)
    assert not torch.equal(logits_after(model, prompt), expected), "dropout is at work"
    assert modes(model) == before
    if fails:
        monkeypatch.setattr(model.model.norm, "forward", lambda _: torch.zeros(1)[2])
        with pytest.raises(IndexError):
            lm.prefill([prompt])
    else:
        cache, logits = lm.prefill([prompt])
        torch.testing.assert_close(logits[0], expected)
        tree = lm.open_tree(cache)
        assert tree is not None
        torch.testing.assert_close(tree.read([7], [-1])[0, 0], further)
    assert modes(model) == before


def test_end_tokens_of_the_model_and_of_the_tokenizer_count(tiny):
    assert tiny.vocabulary.eos_token_ids == (255, 256)


@pytest.mark.parametrize("dtype", ["bfloat16", torch.bfloat16])
def test_a_type_is_a_name_or_torchs_own(folder, dtype):
    assert load(folder, dtype=dtype, device="cpu").model.dtype == torch.bfloat16
    assert load(folder, dtype="auto").model.dtype == torch.float32
    assert load((tiny_model(), tiny_tokenizer()), dtype=dtype).model.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float33"}, "dtype='float33' is unknown"),
        ({"dtype": "int8"}, "dtype='int8' is unknown"),
        ({"device": "toaster"}, "device='toaster' is unknown"),
    ],
)
def test_an_unknown_option_is_refused_before_anything_is_loaded(options, message):
    with pytest.raises(OptionError, match=message):
        load("./no-such-folder", **options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_a_device_that_is_not_there_is_named():
    with pytest.raises(ModelError, match="'cuda'"):
        load("./no-such-folder", device="cuda")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    for source in ("./no-such-folder", tmp_path / "none", str(tmp_path / "none")):
        with pytest.raises(ModelError, match="there is no model folder"):
            load(source)


def test_a_damaged_folder_is_named(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ModelError, match=r"could not load the model .*tiny"):
        load(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"could not load the model .*tiny"):
        load(folder)


def test_a_folder_without_a_tokenizer_is_named(folder):
    for file in folder.glob("token*"):
        file.unlink()
    with pytest.raises(ModelError, match=r"could not load the tokenizer .*tiny"):
        load(folder)
    assert load(folder, tokenizer=tiny_tokenizer()).encode_prompt("a") != []


def test_code_that_comes_with_a_model_is_never_run(folder):
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "evil",
        "auto_map": {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="could not load the model"):
        load(folder)


def test_a_loaded_model_needs_a_tokenizer():
    with pytest.raises(UsageError, match="its tokenizer too"):
        load(tiny_model())


def test_an_encoder_decoder_is_refused():
    config = transformers.T5Config(vocab_size=300, d_model=8, d_ff=8, num_layers=1, num_heads=1)
    with pytest.raises(ModelError, match="encoder-decoder"):
        load((transformers.T5ForConditionalGeneration(config), tiny_tokenizer()))


def test_prompts_without_a_template_are_plain_text(tiny):
    plain = tiny.tokenizer("a\n\nb")["input_ids"]
    assert tiny.encode_prompt("a\n\nb") == plain
    messages = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
    assert tiny.encode_prompt(messages) == plain
    assert tiny.encode_prompt("") == [255]


def test_prompts_with_a_template_are_chats():
    lm = load((tiny_model(), tiny_tokenizer(CHAT)))
    messages = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
    assert lm.tokenizer.decode(lm.encode_prompt(messages)) == "<system>a|<user>b|<assistant>"
    with pytest.raises(UsageError, match="refuses the messages: no such role"):
        lm.encode_prompt([{"role": "evil", "content": "b"}])


def test_a_lone_surrogate_in_a_prompt_is_refused(tiny):
    for prompt in ("a\ud800", [{"role": "user", "content": "\udfff"}]):
        with pytest.raises(InvalidTextError, match="not valid Unicode"):
            tiny.encode_prompt(prompt)


def check_ragged_rows(lm: HFModel, n_rows: int, tolerance: float) -> None:
    """Grow a batch by ragged chunks, drop rows, and compare each row with a fresh single run."""
    randint = random.Random(1).randint
    chunk = lambda low, high: [randint(0, 250) for _ in range(randint(low, high))]  # noqa: E731
    rows = [chunk(1, 12) for _ in range(n_rows)]
    cache, logits = lm.prefill(rows)
    for turn in range(4):
        for row, got in zip(rows, logits, strict=True):
            assert torch.allclose(got, logits_after(lm.model, row), atol=tolerance)
        if turn == 1:
            kept = [n_rows - 1, 0]
            rows, cache = [rows[i] for i in kept], lm.select(cache, kept)
        chunks = [chunk(1, 6) for _ in rows]
        logits = lm.extend(cache, chunks)
        rows = [row + new for row, new in zip(rows, chunks, strict=True)]


def test_ragged_rows_equal_single_ones(tiny):
    check_ragged_rows(tiny, n_rows=4, tolerance=1e-4)


def test_ragged_rows_equal_single_ones_on_the_default_model(smollm2):
    check_ragged_rows(smollm2, n_rows=3, tolerance=1e-3)


def test_logits_can_be_changed_without_changing_what_follows(tiny):
    cache, logits = tiny.prefill([[1, 2, 3]])
    logits.fill_(0)
    assert torch.allclose(
        tiny.extend(cache, [[4]])[0], logits_after(tiny.model, [1, 2, 3, 4]), atol=1e-4
    )


def test_a_batch_on_the_default_model_gives_what_its_rows_give_alone(smollm2):
    labels = ['{"team": "billing"}', '{"team": "sales"}', '{"team": "technical", "urgent": true}']
    letters = [
        smollm2.vocabulary.encode(f" {word}")[0] for word in ("a", "cat", "dog", "the", "is")
    ]
    prompts = [
        smollm2.encode_prompt(t) for t in ("My card was charged twice!", "Hi", "A cat and a")
    ]

    def sessions():
        vocabulary = smollm2.vocabulary
        return [
            FewSession(vocabulary, labels),
            FewSession(vocabulary, labels[1:]),
            FreeSession(vocabulary, letters, max_tokens=6),
        ]

    def tokens(prompts, sessions, sampling):
        events = list(decode(smollm2, prompts, sessions, sampling))
        steps = [e for e in events if isinstance(e, Step)]
        return [[s.token_id for s in steps if s.row == row] for row in range(len(prompts))]

    for do_sample in (False, True):
        together = tokens(prompts, sessions(), Sampling(do_sample=do_sample, seed=5))
        for i, session in enumerate(sessions()):
            alone = tokens([prompts[i]], [session], Sampling(do_sample=do_sample, seed=5 + i))
            assert alone == [together[i]]


class FewSession(ChoiceSession):
    """A `ChoiceSession` that looks only at the tokens that occur, for a vocabulary of 49k."""

    def fill_mask(self, row):
        row[:] = 0
        texts = self._continuations()
        pieces = {text[:n] for text in texts for n in range(1, len(text) + 1)}
        for piece in pieces:
            ids = self.vocabulary.encode(piece.decode())
            if len(ids) == 1:
                row[ids[0] // 32] |= 1 << (ids[0] % 32) if ids[0] % 32 < 31 else -(2**31)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_wide_products_in_16_bits_are_computed_in_float32(monkeypatch, dtype):
    monkeypatch.setattr(upcast, "_has_native", lambda dtype: False)
    used = []
    monkeypatch.setattr(upcast, "_linear", spy(upcast._linear, used))
    lm = load((tiny_model(), tiny_tokenizer()), dtype=dtype)
    short, long = list(range(upcast.MIN_VECTORS - 1)), list(range(40))
    lm.prefill([short])
    assert used == []
    _, logits = lm.prefill([long])
    assert len(used) == 2 * 7  # the products of each layer; the head sees only the last token
    exact = logits_after(tiny_model(), long)
    assert torch.allclose(logits[0].float(), exact, atol=0.05 * exact.abs().max())


def spy(function, calls):
    def wrapped(*args):
        calls.append(args)
        return function(*args)

    return wrapped


def test_products_are_left_alone_where_the_processor_has_the_type(monkeypatch):
    cpu = torch.device("cpu")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    with upcast.wide_products(cpu, torch.bfloat16, 100) as active:
        assert active is None
    with upcast.wide_products(cpu, torch.float16, 100) as active:
        assert active is not None
    with upcast.wide_products(cpu, torch.float32, 100) as active:
        assert active is None
