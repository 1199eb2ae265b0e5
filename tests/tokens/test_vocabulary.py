from __future__ import annotations

import json
import logging
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.errors import IllegalTokenError, VocabularyError
from structgen.tokens import vocabulary as module
from structgen.tokens.trie import TOKEN
from structgen.tokens.vocabulary import Vocabulary

TOKENS = [b"a", b"ab", None, b"", b"\xc3", b"a"]


def made(**changes) -> Vocabulary:
    return Vocabulary.from_bytes(**({"tokens": TOKENS, "eos_token_ids": [2]} | changes))


def write_tokenizer(folder, **changes) -> str:
    """A byte-level `tokenizer.json` of the letters a to d and two special end tokens, 6 and 7."""
    ends = [{"id": i, "content": f"<e{i}>", "special": True} for i in (6, 7)]
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3}, "merges": []}
    found = {
        "version": "1.0",
        "added_tokens": [end | flags for end in ends],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": step,
        "decoder": step,
        "model": model,
    }
    (folder / "tokenizer.json").write_text(json.dumps(found | changes), encoding="utf-8")
    return str(folder / "tokenizer.json")


class TestFromBytes:
    def test_every_attribute(self):
        found = made()
        assert (found.width, len(found), found.n_words) == (6, 6, 1)
        assert found.eos_token_ids == (2,)
        assert [found.bytes_of(i) for i in range(6)] == [b"a", b"ab", None, None, b"\xc3", b"a"]
        assert found.blob.tobytes() == b"aab\xc3a"
        assert found.starts.tolist() == [0, 1, 3, 3, 3, 4, 5]
        assert found.trie.nodes[:, TOKEN].tolist() == [-1, 0, 1, 4]
        assert found.trie.same_bytes.tolist() == [5, -1, -1, -1, -1, -1]
        assert found.max_token_bytes == 2
        assert found.missing_bytes == tuple(sorted(set(range(256)) - {97, 0xC3}))
        assert (found.family, found.normalizer, found.encode) == ("bytes", None, None)

    def test_an_end_token_loses_its_bytes(self):
        found = made(eos_token_ids=0)
        assert found.bytes_of(0) is None
        assert found.trie.nodes[1, TOKEN] == 5

    def test_an_end_token_may_lie_behind_the_tokens(self):
        assert made(eos_token_ids=[9]).width == 10

    @pytest.mark.parametrize(("width", "n_words"), [(31, 1), (32, 1), (33, 2), (64, 2)])
    def test_a_wider_vocabulary_is_padded_with_unusable_ids(self, width, n_words):
        found = made(width=width)
        assert (found.width, found.n_words, len(found.starts)) == (width, n_words, width + 1)
        assert all(found.bytes_of(i) is None for i in range(6, width))
        assert found.trie.nodes[:, TOKEN].max() == 4

    def test_ids_outside_the_width_spell_nothing(self):
        assert made().bytes_of(-1) is None
        assert made().bytes_of(6) is None

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"width": 5}, "largest id is 5, which does not fit a width of 5"),
            ({"eos_token_ids": []}, "pass eos_token_ids"),
            ({"eos_token_ids": [6], "width": 6}, "end token 6 is outside"),
            ({"eos_token_ids": [-1]}, "end token -1 is outside"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, changes, message):
        with pytest.raises(VocabularyError, match=message):
            made(**changes)

    @given(st.lists(st.none() | st.binary(max_size=5), min_size=1, max_size=40), st.integers(0, 45))
    def test_bytes_come_back(self, tokens, eos):
        found = made(tokens=tokens, eos_token_ids=[eos])
        for i in range(found.width):
            given = tokens[i] if i < len(tokens) and i != eos else None
            assert found.bytes_of(i) == (given or None)


class TestValue:
    def test_equal_means_the_same_bytes_width_and_end_tokens(self):
        assert made() == made()
        assert len({made(), made(tokens=[*TOKENS]), made(eos_token_ids=(2, 2))}) == 1
        others = [
            made(width=7),
            made(eos_token_ids=[3]),
            made(eos_token_ids=[2, 3]),
            made(tokens=[b"aa", b"b", None, b"", b"\xc3", b"a"]),
        ]
        assert len({found.fingerprint for found in (made(), *others)}) == 5
        assert made() != TOKENS

    def test_it_cannot_be_changed(self):
        found = made()
        with pytest.raises(AttributeError):
            found.width = 3
        for array in (found.blob, found.starts, found.trie.nodes, found.trie.same_bytes):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0

    def test_repr_says_what_it_is(self):
        found = made()
        assert repr(found) == (
            f"<Vocabulary {found.fingerprint[:8]}: bytes, width 6, 4 usable tokens, eos [2]>"
        )

    def test_memory_is_that_of_the_arrays(self):
        assert made().memory_bytes() == 5 + 7 * 8 + 4 * 16 + 6 * 4


class TestDecodeAndEncode:
    def test_decoding_joins_bytes_and_ends_spell_nothing(self):
        assert made().decode([0, 1, 4, 2]) == b"aab\xc3"
        assert made().decode(np.array([0])) == b"a"

    @pytest.mark.parametrize("token_id", [3, 6, -1])
    def test_an_unusable_id_is_refused(self, token_id):
        with pytest.raises(IllegalTokenError, match=f"token {token_id} "):
            made().decode([0, token_id])

    def test_encode_passes_ids_through_if_they_spell_the_text(self):
        encode = made(encode=lambda text: [1, 0]).encode
        assert encode("aba") == [1, 0]

    @pytest.mark.parametrize("ids", [[0], [2], [0, 3], []])
    def test_encode_refuses_ids_that_spell_something_else(self, ids):
        with pytest.raises(VocabularyError, match="has no tokens for all of 'aé'") as caught:
            made(encode=lambda text: ids).encode("aé")
        assert 0xA9 in caught.value.missing_bytes


class TestFromTokenizer:
    def test_width_defaults_to_the_largest_id(self, tmp_path):
        found = Vocabulary.from_tokenizer(write_tokenizer(tmp_path), eos_token_ids=6)
        assert found.width == 8
        assert [found.bytes_of(i) for i in range(8)] == [b"a", b"b", b"c", b"d", *[None] * 4]
        assert (found.family, found.normalizer) == ("byte-level", "NFC")
        assert found.encode("dab") == [3, 0, 1]

    def test_logits_may_be_wider(self, tmp_path):
        found = Vocabulary.from_tokenizer(write_tokenizer(tmp_path), 100, eos_token_ids=6)
        assert found.width == 100
        assert found.trie.same_bytes.shape == (100,)

    def test_a_width_below_the_largest_id_is_refused(self, tmp_path):
        with pytest.raises(VocabularyError, match="largest id is 7, which does not fit"):
            Vocabulary.from_tokenizer(write_tokenizer(tmp_path), 7, eos_token_ids=6)

    def test_without_an_end_token_it_is_refused(self, tmp_path):
        with pytest.raises(VocabularyError, match="pass eos_token_ids"):
            Vocabulary.from_tokenizer(write_tokenizer(tmp_path))

    def test_end_tokens_add_to_the_tokenizers_own(self, tmp_path):
        path = write_tokenizer(tmp_path)
        (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<e7>"}')
        assert Vocabulary.from_tokenizer(path).eos_token_ids == (7,)
        assert Vocabulary.from_tokenizer(path, eos_token_ids=[6]).eos_token_ids == (6, 7)
        assert Vocabulary.from_tokenizer(path, eos_token_ids=3).bytes_of(3) is None

    def test_an_end_token_outside_the_width_is_refused(self, tmp_path):
        for width in (None, 8):
            with pytest.raises(VocabularyError, match=r"end token 8 is outside .* width of 8"):
                Vocabulary.from_tokenizer(write_tokenizer(tmp_path), width, eos_token_ids=8)

    def test_text_without_tokens_is_refused_by_encode(self, tmp_path):
        encode = Vocabulary.from_tokenizer(write_tokenizer(tmp_path), eos_token_ids=6).encode
        with pytest.raises(VocabularyError) as caught:
            encode("axé")
        assert caught.value.missing_bytes == (ord("x"), 0xA9, 0xC3)


class TestCache:
    @pytest.fixture
    def reads(self, monkeypatch):
        """Counts how often a tokenizer is interpreted."""
        calls = []
        original = module.read_tokens
        monkeypatch.setattr(module, "read_tokens", lambda data: calls.append(1) or original(data))
        return calls

    def test_the_second_time_it_is_loaded(self, tmp_path, reads):
        path = write_tokenizer(tmp_path)
        first, second = (Vocabulary.from_tokenizer(path, eos_token_ids=6) for _ in range(2))
        assert len(reads) == 1
        assert first == second
        for name in (
            "width",
            "eos_token_ids",
            "max_token_bytes",
            "missing_bytes",
            "family",
            "normalizer",
        ):
            assert getattr(first, name) == getattr(second, name)
        for one, two in (
            (first.blob, second.blob),
            (first.starts, second.starts),
            (first.trie.nodes, second.trie.nodes),
            (first.trie.same_bytes, second.trie.same_bytes),
        ):
            assert np.array_equal(one, two)
            assert one.dtype == two.dtype
            assert not two.flags.writeable
        assert first.encode("dab") == second.encode("dab") == [3, 0, 1]

    def test_other_settings_are_other_entries(self, tmp_path, reads):
        path = write_tokenizer(tmp_path)
        for width, eos in ((None, 6), (9, 6), (None, 7), (None, (6, 7))):
            found = Vocabulary.from_tokenizer(path, width, eos_token_ids=eos)
            assert (found.width, found.eos_token_ids) == (width or 8, tuple(np.atleast_1d(eos)))
        Vocabulary.from_tokenizer(write_tokenizer(tmp_path, normalizer=None), eos_token_ids=6)
        assert len(reads) == 5

    def test_it_can_be_left_alone(self, tmp_path, reads, cache_folder):
        for _ in range(2):
            Vocabulary.from_tokenizer(write_tokenizer(tmp_path), eos_token_ids=6, cache=False)
        assert len(reads) == 2
        assert not cache_folder.exists()

    def test_a_damaged_entry_is_rebuilt(self, tmp_path, reads, cache_folder, caplog):
        path = write_tokenizer(tmp_path)
        first = Vocabulary.from_tokenizer(path, eos_token_ids=6)
        (entry,) = cache_folder.rglob("*.safetensors")
        entry.write_bytes(entry.read_bytes()[:-40])
        assert Vocabulary.from_tokenizer(path, eos_token_ids=6) == first
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert Vocabulary.from_tokenizer(path, eos_token_ids=6) == first
        assert len(reads) == 2

    def test_without_a_folder_it_only_takes_longer(self, tmp_path, monkeypatch, caplog):
        (tmp_path / "file").touch()
        monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path / "file"))
        assert Vocabulary.from_tokenizer(write_tokenizer(tmp_path), eos_token_ids=6).width == 8
        assert "could not write" in caplog.text


class TestRealTokenizers:
    def test_smollm2(self, smollm2):
        found = Vocabulary.from_tokenizer(smollm2, width=49_152)
        assert found.eos_token_ids == (2,)
        assert found.bytes_of(2) is None
        controls = (0x04, 0x06, 0x13, 0x14, 0x16, 0x1D)
        assert found.missing_bytes == (*controls, 0xC0, 0xC1, 0xF1, 0xF2, *range(0xF5, 0x100))
        with pytest.raises(VocabularyError) as caught:
            found.encode("a\x04")
        assert caught.value.missing_bytes == (4,)

    def test_deepseek(self, deepseek):
        found = Vocabulary.from_tokenizer(deepseek, width=129_280, eos_token_ids=1)
        assert (found.missing_bytes, found.max_token_bytes) == ((), 128)
        assert np.count_nonzero(np.diff(found.starts)) == 128_000

    def test_mistral(self, mistral_path):
        found = Vocabulary.from_tokenizer(mistral_path)
        assert (found.width, found.eos_token_ids, found.missing_bytes) == (32_000, (2,), ())
        # The space and 0x41 exist as a piece and as a byte token; both are usable.
        assert found.trie.same_bytes[3 + 0x41] > 0

    def test_a_cached_one_encodes_alike(self, deepseek):
        first, second = (Vocabulary.from_tokenizer(deepseek, eos_token_ids=1) for _ in range(2))
        text = '{"name": "<\uff5cUser\uff5c>\\n\\n   Zoë"}'
        assert first.encode(text) == second.encode(text)

    @pytest.mark.bench
    def test_set_up_time(self, deepseek):
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            Vocabulary.from_tokenizer(deepseek, width=129_280, eos_token_ids=1)
            seconds.append(time.perf_counter() - start)
        assert seconds[0] < 2.0
        assert seconds[1] < 0.2


@pytest.fixture(scope="session")
def vocabularies(smollm2, deepseek, mistral_path):
    pytest.importorskip("sentencepiece")
    sources = [(smollm2, None), (deepseek, 1), (mistral_path, None)]
    return [Vocabulary.from_tokenizer(s, eos_token_ids=eos, cache=False) for s, eos in sources]


@settings(deadline=None, max_examples=150)
@given(st.text(max_size=30))
def test_encode_then_decode_is_the_text_or_an_error_about_missing_bytes(vocabularies, text):
    for found in vocabularies:
        assert found.encode is not None
        if absent := set(text.encode()) & set(found.missing_bytes):
            with pytest.raises(VocabularyError) as caught:
                found.encode(text)
            assert set(caught.value.missing_bytes) == absent
        else:
            assert found.decode(found.encode(text)) == text.encode()
