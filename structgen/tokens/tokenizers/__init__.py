"""Tokenizers, read as the exact bytes of every token id. Nothing else knows their formats.

    open_tokenizer(anything)     -> TokenizerData   the tokenizer's own data, not yet interpreted
    read_tokens(data)            -> TokenTable      bytes by id, and what an encoder has to know
    make_encoder(data, settings) -> str -> ids      how the tokenizer would continue a text

Bytes come from the tokenizer's data. Decoding ids one at a time would lose them: a decoder
replaces what is not UTF-8 and may drop a leading space. Two families are read:

- *byte-level*: BPE whose vocabulary is written in GPT-2's printable byte alphabet;
- *sentencepiece*: U+2581 stands for a space and `<0xXX>` for a byte, in a `tokenizer.json` or in a
  SentencePiece model.

An id has no bytes (None) if it is a hole, an unknown, control or unused piece, a token flagged
special, or added text that looks like a control mark: all of it in one pair of angle or square
brackets, such as `<|im_end|>`, `<think>` or `[INST]`, or starting with `<` and a bar, U+007C or
DeepSeek's fullwidth U+FF5C. Other added text, such as runs of newlines or plain words, keeps its
UTF-8 bytes. Leaving a mark out loses no text, since smaller tokens can still spell it.
"""

from __future__ import annotations

from structgen.tokens.tokenizers.data import Encoder, Family, TokenizerData, TokenTable, as_ids
from structgen.tokens.tokenizers.opening import open_tokenizer
from structgen.tokens.tokenizers.reading import make_encoder, read_tokens
from structgen.tokens.tokenizers.spelling import is_control_mark

__all__ = [
    "Encoder",
    "Family",
    "TokenTable",
    "TokenizerData",
    "as_ids",
    "is_control_mark",
    "make_encoder",
    "open_tokenizer",
    "read_tokens",
]
