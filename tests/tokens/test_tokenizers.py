from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.errors import InvalidTextError, VocabularyError
from structgen.tokens.tokenizers import (
    is_control_mark,
    make_encoder,
    open_tokenizer,
    read_tokens,
)

tokenizers = pytest.importorskip("tokenizers")

SPACE = "\u2581"
BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
ALPHABET = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())


def added(token_id: int, content: str, *, special: bool = False, **flags: bool) -> dict[str, Any]:
    off = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token_id, "content": content, "special": special, **off, **flags}


def parts(vocab: dict[str, int] | list, **changes: Any) -> dict[str, Any]:
    """A `tokenizer.json` with a byte-level model, unless `changes` say otherwise."""
    model = {"type": "BPE", "vocab": vocab, "merges": changes.pop("merges", [])}
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": BYTE_LEVEL,
        "decoder": BYTE_LEVEL,
        "model": model | changes.pop("model", {}),
    } | changes


def live(description: dict[str, Any]) -> Any:
    return tokenizers.Tokenizer.from_str(json.dumps(description))


def on_disk(description: dict[str, Any], folder) -> str:
    (folder / "tokenizer.json").write_text(json.dumps(description), encoding="utf-8")
    return str(folder / "tokenizer.json")


def tokens_of(tokenizer: object) -> list[bytes | None]:
    return list(read_tokens(open_tokenizer(tokenizer)).tokens)


def encoder_of(tokenizer: object):
    data = open_tokenizer(tokenizer)
    encode = make_encoder(data, read_tokens(data).settings)
    assert encode is not None
    return encode


# The decoders of SentencePiece tokenizers as they are found in the wild.
REPLACE = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
FALLBACK, FUSE = {"type": "ByteFallback"}, {"type": "Fuse"}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
LLAMA_DECODER = {"type": "Sequence", "decoders": [REPLACE, FALLBACK, FUSE, STRIP]}
TO_MARK = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
METASPACE = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": False}

LEGACY_LLAMA = {
    "normalizer": {
        "type": "Sequence",
        "normalizers": [{"type": "Prepend", "prepend": SPACE}, TO_MARK],
    },
    "pre_tokenizer": None,
    "decoder": LLAMA_DECODER,
}
NEW_LLAMA = {"normalizer": None, "pre_tokenizer": METASPACE, "decoder": LLAMA_DECODER}
GEMMA = {
    "normalizer": TO_MARK,
    "pre_tokenizer": {
        "type": "Split",
        "pattern": {"String": " "},
        "behavior": "MergedWithPrevious",
        "invert": False,
    },
    "decoder": {"type": "Sequence", "decoders": [REPLACE, FALLBACK, FUSE]},
}
METASPACE_DECODER = {
    "pre_tokenizer": METASPACE | {"prepend_scheme": "first"},
    "decoder": {"type": "Sequence", "decoders": [FALLBACK, METASPACE]},
}
SENTENCEPIECE_FORMS = [LEGACY_LLAMA, NEW_LLAMA, GEMMA, METASPACE_DECODER]


def sentencepiece_parts(form: dict[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += [SPACE, "a", "b", "é", f"{SPACE}a", f"{SPACE}{SPACE}", "ab", "<unused0>"]
    merges = [f"{SPACE} a", f"{SPACE} {SPACE}", "a b"]
    special = [added(i, pieces[i], special=True) for i in range(3)]
    model = {"byte_fallback": True, "unk_token": "<unk>", "fuse_unk": True}
    vocab = {piece: token_id for token_id, piece in enumerate(pieces)}
    found = parts(vocab, merges=merges, model=model, added_tokens=[*special, *more])
    return found | form


def byte_level_parts(*more: dict[str, Any], **changes: Any) -> dict[str, Any]:
    vocab = {piece: token_id for token_id, piece in enumerate([*ALPHABET, "Ġa", "ab"])}
    return parts(vocab, merges=["Ġ a", "a b"], added_tokens=list(more), **changes)


class TestByteLevel:
    def test_the_alphabet_is_a_permutation_of_all_bytes(self):
        found = tokens_of(live(byte_level_parts()))
        assert sorted(found[:256]) == [bytes([byte]) for byte in range(256)]
        assert found[256:] == [b" a", b"ab"]

    def test_pieces_that_are_part_of_a_character(self):
        assert tokens_of(live(parts({"Ã": 0, "©": 1, "Ã©": 2}))) == [b"\xc3", b"\xa9", "é".encode()]

    @pytest.mark.parametrize(
        "changes",
        [
            {"pre_tokenizer": None},
            {"decoder": None},
            {
                "pre_tokenizer": {
                    "type": "Sequence",
                    "pretokenizers": [{"type": "Sequence", "pretokenizers": [BYTE_LEVEL]}],
                }
            },
            {
                "pre_tokenizer": None,
                "decoder": None,
                "normalizer": {"type": "Sequence", "normalizers": [{"type": "ByteLevel"}]},
            },
        ],
    )
    def test_it_is_recognised_wherever_it_is_said(self, changes):
        assert tokens_of(live(byte_level_parts(**changes)))[256:] == [b" a", b"ab"]

    def test_holes_have_no_bytes(self, tmp_path):
        path = on_disk(parts({"a": 0, "b": 5}, added_tokens=[added(8, "plain")]), tmp_path)
        assert tokens_of(path) == [b"a", None, None, None, None, b"b", None, None, b"plain"]

    def test_two_ids_with_the_same_bytes_are_both_kept(self, tmp_path):
        path = on_disk(
            parts({"a": 0, "b": 1}, added_tokens=[added(2, "a b"), added(3, "b")]), tmp_path
        )
        assert tokens_of(path) == [b"a", b"b", b"a b", b"b"]

    def test_pieces_outside_the_alphabet_and_empty_ones_have_no_bytes(self, tmp_path):
        path = on_disk(parts({"a": 0, "": 1, "a b": 2, "\x85": 3, "日": 4, "\n": 5}), tmp_path)
        assert tokens_of(path) == [b"a", None, None, None, None, None]


class TestAddedTokens:
    def test_special_ones_and_control_marks_have_no_bytes(self):
        marks = ["<\uff5cUser\uff5c>", "<|tool|>", "<think>", "[INST]"]
        items = [added(258 + i, mark) for i, mark in enumerate(marks)]
        items.append(added(262, "word", special=True))
        assert tokens_of(live(byte_level_parts(*items)))[258:] == [None] * 5

    def test_plain_ones_keep_their_text_even_where_it_looks_byte_level(self):
        texts = ["\n\n\n", "   ", "naïve", "Ġword", "日本"]
        items = [added(258 + i, text) for i, text in enumerate(texts)]
        found = tokens_of(live(byte_level_parts(*items)))
        assert found[258:] == [text.encode() for text in texts]

    def test_an_id_that_the_wrapper_uses_as_special_has_no_bytes(self):
        class Wrapper:
            backend_tokenizer = live(byte_level_parts(added(258, "END")))
            eos_token_id = 258
            all_special_ids = (258, 999)

        data = open_tokenizer(Wrapper())
        assert data.eos_token_ids == (258,)
        assert read_tokens(data).tokens[258] is None

    @pytest.mark.parametrize(
        "text",
        [
            "<s>",
            "</s>",
            "<|im_end|>",
            "<\uff5cend▁of▁sentence\uff5c>",
            "<\uff5c/table>\uff5c",
            "<think>",
            "▁<PRE>",
            "[INST]",
            "[/INST]",
            "[multimodal]",
            "<start of turn>",
            "[REFERENCE_DOC_9]",
        ],
    )
    def test_what_is_taken_for_a_mark(self, text):
        assert is_control_mark(text)

    @pytest.mark.parametrize(
        "text",
        ["\n", "  ", "word", "a <b>", "<", "<>", "[]", "x > y", "<a>b</a>", "<\n>", "->", "{}"],
    )
    def test_what_is_plain(self, text):
        assert not is_control_mark(text)


class TestSentencePieceJson:
    @pytest.mark.parametrize("form", SENTENCEPIECE_FORMS)
    def test_spaces_bytes_and_pieces_without_text(self, form):
        found = tokens_of(live(sentencepiece_parts(form)))
        assert found[:3] == [None] * 3
        assert found[3:259] == [bytes([byte]) for byte in range(256)]
        assert found[259:] == [b" ", b"a", b"b", "é".encode(), b" a", b"  ", b"ab", None]

    def test_a_listed_run_of_spaces_is_spaces(self):
        found = tokens_of(live(sentencepiece_parts(GEMMA, added(264, SPACE * 2))))
        assert found[264] == b"  "

    def test_a_unigram_with_byte_fallback(self):
        vocab = [["<unk>", 0.0], [f"{SPACE}a", -1.0], ["<0x0A>", -2.0]]
        model = {"type": "Unigram", "unk_id": 0, "byte_fallback": True, "merges": None}
        description = parts(vocab, model=model) | NEW_LLAMA
        description["model"].pop("merges")
        assert tokens_of(live(description)) == [None, b" a", b"\n"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "found"),
        [
            ({"model": {"type": "WordPiece"}, "decoder": {"type": "WordPiece"}}, "WordPiece"),
            ({"model": {"type": "WordLevel"}}, "WordLevel"),
            ({"model": {"type": "Unigram", "unk_id": 0}, "decoder": METASPACE}, "Unigram"),
            ({"model": {"end_of_word_suffix": "</w>"}}, "</w>"),
            ({"decoder": {"type": "Sequence", "decoders": [BYTE_LEVEL, STRIP]}}, "Strip"),
            ({"pre_tokenizer": None, "decoder": None}, "decoder none"),
            (
                {"pre_tokenizer": None, "decoder": FALLBACK, "model": {"byte_fallback": True}},
                "ByteFallback",
            ),
            (
                {
                    "pre_tokenizer": None,
                    "model": {"byte_fallback": True},
                    "decoder": {
                        "type": "Sequence",
                        "decoders": [FALLBACK, REPLACE | {"content": "x"}],
                    },
                },
                "Replace",
            ),
        ],
    )
    def test_another_kind_says_what_was_found_and_what_is_supported(self, changes, found, tmp_path):
        with pytest.raises(VocabularyError) as caught:
            tokens_of(on_disk(parts({"a": 0}, **changes), tmp_path))
        assert found in str(caught.value)
        assert "byte-level BPE" in str(caught.value)
        assert "SentencePiece with byte fallback" in str(caught.value)

    @pytest.mark.parametrize(
        "content", [b"", b"not a model", b"{", b'{"model": 3}', b"\x0a\xff\xff\xff\x7f"]
    )
    def test_files_that_are_no_tokenizer(self, content, tmp_path):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(VocabularyError):
            tokens_of(tmp_path / "file")

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(VocabularyError, match=r"cannot read a tokenizer from .*absent"):
            open_tokenizer(str(tmp_path / "absent"))

    def test_an_object_without_data_is_named(self):
        with pytest.raises(VocabularyError, match=r"builtins\.dict does not give access"):
            open_tokenizer({"a": 0})


class TestOpening:
    def test_padding_and_truncation_do_not_change_the_digest(self):
        tokenizer = live(byte_level_parts())
        before = open_tokenizer(tokenizer).digest
        tokenizer.enable_padding(pad_token='"added_tokens":', length=9)
        tokenizer.enable_truncation(5)
        assert open_tokenizer(tokenizer).digest == before
        tokenizer.add_tokens(["more"])
        assert open_tokenizer(tokenizer).digest != before

    def test_end_tokens_are_found_beside_a_file(self, tmp_path):
        items = [added(258, "<end>", special=True), added(259, "<turn>", special=True)]
        path = on_disk(byte_level_parts(*items), tmp_path)
        assert open_tokenizer(path).eos_token_ids == ()
        (tmp_path / "tokenizer_config.json").write_text('{"eos_token": {"content": "<end>"}}')
        assert open_tokenizer(path).eos_token_ids == (258,)
        (tmp_path / "generation_config.json").write_text('{"eos_token_id": [259, 258]}')
        assert open_tokenizer(str(tmp_path)).eos_token_ids == (258, 259)

    def test_deepseek_names_its_end_token(self, deepseek_path):
        assert open_tokenizer(deepseek_path).eos_token_ids == (1,)

    @pytest.mark.parametrize(
        ("normalizer", "name"),
        [
            (None, None),
            ({"type": "NFC"}, "NFC"),
            ({"type": "Sequence", "normalizers": []}, None),
            (
                {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]},
                "NFKC, Lowercase",
            ),
        ],
    )
    def test_normalizers_are_described(self, normalizer, name):
        tokenizer = live(byte_level_parts(normalizer=normalizer))
        assert read_tokens(open_tokenizer(tokenizer)).normalizer == name

    def test_swapping_spaces_is_no_normalizer(self):
        for form in SENTENCEPIECE_FORMS:
            assert read_tokens(open_tokenizer(live(sentencepiece_parts(form)))).normalizer is None


class TestEncoders:
    @pytest.mark.parametrize("form", SENTENCEPIECE_FORMS)
    def test_nothing_is_put_in_front(self, form):
        tokenizer = live(sentencepiece_parts(form))
        encode = encoder_of(tokenizer)
        tokens = tokens_of(tokenizer)
        assert [tokens[i] for i in encode("ab a  b")] == [b"ab", b" a", b"  ", b"b"]
        assert encode("") == []

    @pytest.mark.parametrize("form", SENTENCEPIECE_FORMS)
    def test_the_space_mark_itself_is_written_in_bytes(self, form):
        assert encoder_of(live(sentencepiece_parts(form)))(f"a{SPACE}") == [
            260,
            *(3 + b for b in SPACE.encode()),
        ]

    def test_byte_level_adds_no_space_either(self):
        tokenizer = live(byte_level_parts(pre_tokenizer=BYTE_LEVEL | {"add_prefix_space": True}))
        assert tokenizer.encode("a").ids == [256]
        assert encoder_of(tokenizer)("a") == [ALPHABET.index("a")]

    def test_marks_in_a_text_are_text_and_plain_added_tokens_are_used(self):
        items = [added(258, "<think>"), added(259, "</s>", special=True), added(260, "\n\n\n")]
        tokenizer = live(byte_level_parts(*items))
        tokens = tokens_of(tokenizer)
        ids = encoder_of(tokenizer)("<think>\n\n\n</s>\n")
        assert b"".join(tokens[i] for i in ids) == b"<think>\n\n\n</s>\n"
        assert 260 in ids

    def test_text_is_not_normalised(self):
        tokenizer = live(byte_level_parts(normalizer={"type": "NFC"}))
        tokens = tokens_of(tokenizer)
        decomposed = "e\u0301"
        assert b"".join(tokens[i] for i in encoder_of(tokenizer)(decomposed)) == decomposed.encode()

    def test_ids_of_added_tokens_survive_holes(self, tmp_path):
        vocab = {piece: 2 * token_id for token_id, piece in enumerate(ALPHABET)}
        path = on_disk(parts(vocab, added_tokens=[added(601, "  ")]), tmp_path)
        assert encoder_of(path)("a  ") == [2 * ALPHABET.index("a"), 601]

    def test_the_tokenizer_itself_is_not_changed(self):
        tokenizer = live(byte_level_parts(added(258, "<think>")))
        before = tokenizer.to_str()
        encoder_of(tokenizer)("<think> a")
        assert tokenizer.to_str() == before
        assert tokenizer.encode("<think>").ids == [258]

    def test_a_lone_surrogate_is_not_text(self):
        with pytest.raises(InvalidTextError, match="surrogate"):
            encoder_of(live(byte_level_parts()))("\ud800")


class TestDeepSeek:
    def test_agrees_with_the_decoder_wherever_that_is_exact(self, deepseek):
        tokens = tokens_of(deepseek)
        decoded = deepseek.decode_batch(
            [[i] for i in range(len(tokens))], skip_special_tokens=False
        )
        exact = [i for i, token in enumerate(tokens) if token and "\ufffd" not in decoded[i]]
        assert len(exact) > 126_000
        assert [tokens[i] for i in exact] == [decoded[i].encode() for i in exact]

    def test_marks_are_left_out_though_not_all_are_special(self, deepseek):
        tokens = tokens_of(deepseek)
        marks = [
            deepseek.token_to_id(text) for text in ("<\uff5cUser\uff5c>", "<\uff5c/table>\uff5c")
        ]
        flags = deepseek.get_added_tokens_decoder()
        assert [flags[i].special for i in marks] == [False, False]
        assert [tokens[i] for i in marks] == [None, None]
        assert sum(token is None for token in tokens) == 1280

    def test_a_file_and_the_live_tokenizer_are_read_alike(self, deepseek, deepseek_path):
        assert tokens_of(deepseek) == tokens_of(str(deepseek_path))


class TestSmolLM2:
    def test_it_is_read_from_transformers(self, smollm2):
        data = open_tokenizer(smollm2)
        assert data.eos_token_ids == (2,)
        tokens = read_tokens(data).tokens
        assert [i for i, token in enumerate(tokens) if token is None] == list(range(17))
        texts = ["Ġthe", "Ċ", '{"']
        ids = [smollm2.convert_tokens_to_ids(text) for text in texts]
        assert [tokens[i] for i in ids] == [b" the", b"\n", b'{"']


@pytest.fixture(scope="session")
def library() -> Any:
    return pytest.importorskip("sentencepiece")


class TestSentencePieceModel:
    def test_agrees_with_the_library(self, library, mistral_path, mistral_v3_path):
        for path in (mistral_path, mistral_v3_path):
            model = library.SentencePieceProcessor(model_file=str(path))
            tokens = tokens_of(path)
            assert len(tokens) == model.get_piece_size()
            for i, token in enumerate(tokens):
                piece = model.id_to_piece(i)
                if model.is_control(i) or model.is_unknown(i) or piece.startswith("[REFERENCE"):
                    assert token is None
                elif model.is_byte(i):
                    assert token == bytes([int(piece[3:5], 16)])
                else:
                    assert token == piece.replace(SPACE, " ").encode()
            assert open_tokenizer(path).eos_token_ids == (model.eos_id(),)

    def test_a_live_processor_is_read_like_its_file(self, library, mistral_path):
        model = library.SentencePieceProcessor(model_file=str(mistral_path))
        assert open_tokenizer(model).digest == open_tokenizer(mistral_path).digest

    def test_encoding_continues_and_the_library_starts(self, library, mistral_path):
        model = library.SentencePieceProcessor(model_file=str(mistral_path))
        encode = encoder_of(mistral_path)
        assert [model.id_to_piece(i) for i in model.encode("hello")] == [f"{SPACE}hell", "o"]
        assert [model.id_to_piece(i) for i in encode("hello")] == ["hello"]
        for text in ("a", "  two spaces", "\n", '{"name": "Zoë", "n": 12}', "日本語"):
            assert model.encode(text) == encode(" " + text)

    def test_marks_in_a_text_are_text(self, library, mistral_v3_path):
        tokens = tokens_of(mistral_v3_path)
        model = library.SentencePieceProcessor(model_file=str(mistral_v3_path))
        text = "[INST] </s> [REFERENCE_DOC_9]"
        assert any(tokens[i] is None for i in model.encode(text))
        assert b"".join(tokens[i] for i in encoder_of(mistral_v3_path)(text)) == text.encode()

    def test_without_the_library_there_is_no_encoder(self, mistral_path, monkeypatch):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        data = open_tokenizer(mistral_path)
        assert make_encoder(data, read_tokens(data).settings) is None

    def test_unused_pieces_normalisation_and_a_model_without_bytes(self, mistral_path, tmp_path):
        protos = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
        model = protos.ModelProto()
        model.ParseFromString(mistral_path.read_bytes())
        model.pieces[300].type = model.pieces[300].UNUSED
        model.pieces[301].type, model.pieces[301].piece = model.pieces[301].USER_DEFINED, "a▁b"
        model.normalizer_spec.name = "nmt_nfkc"
        model.normalizer_spec.precompiled_charsmap = b"some"
        model.normalizer_spec.remove_extra_whitespaces = True
        (tmp_path / "model").write_bytes(model.SerializeToString())
        table = read_tokens(open_tokenizer(tmp_path / "model"))
        assert table.tokens[299:302] == [tokens_of(mistral_path)[299], None, b"a b"]
        assert table.normalizer == "nmt_nfkc, remove_extra_whitespaces"
        del model.pieces[3:259]
        (tmp_path / "model").write_bytes(model.SerializeToString())
        with pytest.raises(VocabularyError, match="SentencePiece BPE model without byte fallback"):
            tokens_of(tmp_path / "model")


# Most texts are short and of a few alphabets; some have marks, the space mark and any character.
texts = st.lists(
    st.text(max_size=8)
    | st.text('ab \n\t"{}:,0é日😀e\u0301\u2581', max_size=12)
    | st.sampled_from(["</s>", "<|im_end|>", "<\uff5cUser\uff5c>", "[INST]", "<0x0A>", "   "]),
    max_size=4,
).map("".join)


@pytest.fixture(scope="session")
def encoders(library, smollm2, deepseek, mistral_path, mistral_v3_path):
    handwritten = [live(sentencepiece_parts(form)) for form in SENTENCEPIECE_FORMS]
    sources = [smollm2, deepseek, mistral_path, mistral_v3_path, *handwritten]
    return [(tokens_of(source), encoder_of(source)) for source in sources]


@settings(deadline=None, max_examples=150)
@given(texts)
def test_encoded_ids_spell_the_text(encoders, text):
    for tokens, encode in encoders:
        spelled = b"".join(tokens[i] for i in encode(text))
        # Only SmolLM2 lacks bytes; what it has no token for, its tokenizer drops.
        assert spelled == bytes(byte for byte in text.encode() if bytes([byte]) in tokens)


@settings(deadline=None, max_examples=150)
@given(st.text(max_size=20))
def test_byte_level_encoders_agree_with_their_tokenizers(encoders, smollm2, deepseek, text):
    originals = (smollm2.backend_tokenizer, deepseek)
    for original, (_, encode) in zip(originals, encoders, strict=False):
        assert encode(text) == original.encode(text, add_special_tokens=False).ids


@settings(deadline=None, max_examples=150)
@given(st.text(min_size=1, max_size=20).filter(lambda text: SPACE not in text))
def test_sentencepiece_encoders_agree_but_for_the_dummy_prefix(
    encoders, library, mistral_path, text
):
    original = library.SentencePieceProcessor(model_file=str(mistral_path))
    assert encoders[2][1](" " + text) == original.encode(text)
