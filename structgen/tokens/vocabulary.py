"""A vocabulary: what every token id spells, exactly, and the trie of it.

Built once per tokenizer and width, immutable, shared between threads, kept on disk.
"""

from __future__ import annotations

import hashlib
import logging
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structgen.cache import load_arrays, save_arrays
from structgen.errors import IllegalTokenError, OptionError, VocabularyError
from structgen.tokens.tokenizers import (
    Encoder,
    TokenizerData,
    as_ids,
    make_encoder,
    open_tokenizer,
    read_tokens,
)
from structgen.tokens.trie import ByteTrie, build_trie

logger = logging.getLogger("structgen")

FORMAT_VERSION = 1
"""Raised when the same tokenizer would give different arrays, which outdates cached ones."""
_KIND = "vocabulary"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Vocabulary:
    """The bytes of every token id, for logits that are `width` columns wide.

    Example: `Vocabulary.from_bytes([b"a", b"ab", None], eos_token_ids=2).bytes_of(1)` -> `b"ab"`

    Equal vocabularies have equal `fingerprint`. All arrays are read-only.
    """

    width: int
    """W: number of columns of the logits; ids from 0 to W - 1."""
    eos_token_ids: tuple[int, ...]
    """Ascending; at least one. They end a value and are never part of one."""
    blob: NDArray[np.uint8]
    """uint8[S]: the bytes of all ids, one after the other."""
    starts: NDArray[np.int64]
    """int64[W + 1]: id i spells `blob[starts[i]:starts[i + 1]]`, nothing if it is unusable."""
    trie: ByteTrie
    fingerprint: str
    """SHA-256, in hex, of the bytes, the end tokens and the width."""
    max_token_bytes: int
    missing_bytes: tuple[int, ...]
    """Byte values that no token spells alone; text with them may be out of reach."""
    family: str
    """`byte-level`, `sentencepiece` or `bytes` (made by `from_bytes`)."""
    normalizer: str | None
    """What the tokenizer may do to a prompt's text, e.g. `NFC`; `encode` leaves it out."""
    encode: Callable[[str], list[int]] | None
    """How the tokenizer would continue with this text: ids whose bytes are exactly the text's
    UTF-8, no special tokens, no space in front. Raises `VocabularyError` where the tokenizer has
    no tokens for the text, `InvalidTextError` for a lone surrogate. None if unknown."""
    encoder_id: str = ""
    """Tells encoders apart, since vocabularies with the same bytes can have different ones."""

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: object,
        width: int | None = None,
        *,
        eos_token_ids: int | Iterable[int] | None = None,
        cache: bool = True,
    ) -> Vocabulary:
        """Read a tokenizer, or load what was read before from the disk cache.

        Args:
            tokenizer: a fast transformers tokenizer, a `tokenizers.Tokenizer`, or a path; see
                `structgen.tokens.tokenizers`.
            width: columns of the model's logits, often more than the tokenizer has ids; ids that
                the tokenizer does not know are never allowed. Default: the largest id + 1.
            eos_token_ids: end tokens besides the tokenizer's own, e.g. the generation config's.
            cache: whether to use the disk cache.
        """
        data = open_tokenizer(tokenizer)
        eos = as_ids([*data.eos_token_ids, *as_ids(eos_token_ids)])
        _check_eos(eos, width)
        key = _cache_key(data, eos, width)
        vocabulary = _load(data, key) if cache else None
        return vocabulary or _read(data, eos, width, key if cache else None)

    @classmethod
    def from_bytes(
        cls,
        tokens: Sequence[bytes | None],
        eos_token_ids: int | Iterable[int],
        width: int | None = None,
        encode: Encoder | None = None,
    ) -> Vocabulary:
        """A vocabulary whose id i spells `tokens[i]`; None and `b""` are unusable ids.

        End tokens need no entry in `tokens`, and lose their bytes if they have one.
        """
        _check_tokens(tokens)
        eos = as_ids(eos_token_ids)
        if width is None:
            width = max(len(tokens), *(token_id + 1 for token_id in eos), 1)
        encoder_id = "" if encode is None else f"function {id(encode)}"
        return _build(tokens, eos, width, _Origin("bytes", None, encode, encoder_id))

    def restricted(
        self, allowed: Iterable[int] | None = None, banned: Iterable[int] = ()
    ) -> Vocabulary:
        """The same vocabulary with fewer usable tokens; ids and width stay as they are.

        End tokens stay usable unless they are banned, so that a value can always end.

        Args:
            allowed: ids that may be used; None for all.
            banned: ids that may not, even if they are allowed.

        Raises:
            OptionError: an id outside of the vocabulary, or no end token is left.
        """
        kept = np.zeros(self.width, bool)
        kept[slice(None) if allowed is None else _ids("allowed_token_ids", allowed, self.width)] = 1
        without = _ids("banned_token_ids", banned, self.width)
        kept[without] = 0
        eos = tuple(token_id for token_id in self.eos_token_ids if token_id not in set(without))
        if not eos:
            raise OptionError(
                f"banned_token_ids has every end token, {list(self.eos_token_ids)}; a value could "
                "not end"
            )
        tokens = [self.bytes_of(i) if kept[i] else None for i in range(self.width)]
        origin = _Origin(self.family, self.normalizer, self.encode, self.encoder_id)
        return _build(tokens, eos, self.width, origin)

    @property
    def n_words(self) -> int:
        """int32 words of a packed mask, `ceil(width / 32)`."""
        return -(-self.width // 32)

    def bytes_of(self, token_id: int) -> bytes | None:
        """What an id spells; None if it is never part of a value."""
        if not 0 <= token_id < self.width:
            return None
        return _slice(self.blob, self.starts, token_id) or None

    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes of several ids; end tokens spell nothing, other unusable ids are refused."""
        return b"".join(map(self._spell, ids))

    def _spell(self, token_id: int) -> bytes:
        spelled = self.bytes_of(token_id)
        if spelled is None and token_id not in self.eos_token_ids:
            raise IllegalTokenError(token_id, f"it spells no text in {self!r}")
        return spelled or b""

    def memory_bytes(self) -> int:
        """Bytes held by the arrays."""
        return self.blob.nbytes + self.starts.nbytes + self.trie.memory_bytes()

    def __len__(self) -> int:
        return self.width

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        usable = np.count_nonzero(np.diff(self.starts))
        return (
            f"<Vocabulary {self.fingerprint[:8]}: {self.family}, width {self.width}, "
            f"{usable} usable tokens, eos {list(self.eos_token_ids)}>"
        )


@dataclass(frozen=True, slots=True)
class _Origin:
    """What a vocabulary keeps of the tokenizer besides the bytes."""

    family: str
    normalizer: str | None
    encoder: Encoder | None
    encoder_id: str


def id_set(name: str, token_ids: Iterable[int] | None) -> frozenset[int]:
    """Token ids as plain integers, None as none; `name` is what a refusal calls them.

    Raises:
        OptionError: it is no list of whole numbers.
    """
    try:
        return frozenset(map(operator.index, () if token_ids is None else token_ids))
    except TypeError as error:
        raise OptionError(f"{name} must be a list of token ids: {error}") from error


def _ids(name: str, token_ids: Iterable[int], width: int) -> list[int]:
    """Token ids in order, refused where one is outside of the vocabulary."""
    found = sorted(id_set(name, token_ids))
    outside = [token_id for token_id in found if not 0 <= token_id < width]
    if outside:
        raise OptionError(f"{name} has {outside[0]}; the vocabulary's ids are 0 to {width - 1}")
    return found


def _check_tokens(tokens: Sequence[object]) -> None:
    if not len(tokens):
        raise VocabularyError("there are no tokens; pass the bytes of each id, in order")
    for token_id, token in enumerate(tokens):
        if token is not None and not isinstance(token, bytes):
            raise VocabularyError(
                f"token {token_id} is {token!r}; a token is bytes, or None where it spells nothing"
            )


def _check_eos(eos: tuple[int, ...], width: int | None) -> None:
    if not eos:
        raise VocabularyError(
            "the tokenizer names no end-of-sequence token; pass eos_token_ids, for instance the "
            "eos_token_id of the model's generation config"
        )
    outside = [i for i in eos if i < 0 or (width is not None and i >= width)]
    if outside:
        raise VocabularyError(
            f"end token {outside[0]} is outside the vocabulary's width of {width}; pass the number "
            "of columns of the model's logits as width, and the end tokens of the same model"
        )


def _cache_key(data: TokenizerData, eos: tuple[int, ...], width: int | None) -> str:
    parts = (FORMAT_VERSION, data.kind, data.digest, data.special_ids, eos, width)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _read(
    data: TokenizerData, eos: tuple[int, ...], width: int | None, key: str | None
) -> Vocabulary:
    """Interpret the tokenizer, and keep the result under `key`."""
    table = read_tokens(data)
    encoder = make_encoder(data, table.settings)
    origin = _Origin(table.family, table.normalizer, encoder, data.digest)
    width = len(table.tokens) if width is None else width
    vocabulary = _build(table.tokens, eos, width, origin)
    if key is not None:
        _save(vocabulary, key, table.settings)
    return vocabulary


def _build(
    tokens: Sequence[bytes | None], eos: tuple[int, ...], width: int, origin: _Origin
) -> Vocabulary:
    """The arrays of a vocabulary from its tokens."""
    if len(tokens) > width:
        raise VocabularyError(
            f"the tokenizer's largest id is {len(tokens) - 1}, which does not fit a width of "
            f"{width}; is the tokenizer of another model?"
        )
    _check_eos(eos, width)
    spelled = list(tokens)
    for token_id in eos:
        if token_id < len(spelled):
            spelled[token_id] = None
    starts = np.zeros(width + 1, dtype=np.int64)
    lengths = np.fromiter((len(t) if t else 0 for t in spelled), np.int64, len(spelled))
    np.cumsum(lengths, out=starts[1 : len(spelled) + 1])
    starts[len(spelled) + 1 :] = starts[len(spelled)]
    starts.setflags(write=False)
    blob = np.frombuffer(b"".join(t for t in spelled if t), dtype=np.uint8)
    fingerprint = _fingerprint(blob, starts, eos)
    return _assemble(blob, starts, build_trie(spelled, width), eos, fingerprint, origin)


def _fingerprint(blob: NDArray[np.uint8], starts: NDArray[np.int64], eos: tuple[int, ...]) -> str:
    digest = hashlib.sha256(repr((FORMAT_VERSION, len(starts) - 1, eos)).encode())
    digest.update(starts.astype("<i8").tobytes())
    digest.update(blob.tobytes())
    return digest.hexdigest()


def _assemble(
    blob: NDArray[np.uint8],
    starts: NDArray[np.int64],
    trie: ByteTrie,
    eos: tuple[int, ...],
    fingerprint: str,
    origin: _Origin,
) -> Vocabulary:
    """A vocabulary from read-only arrays that fit together."""
    lengths = np.diff(starts)
    singles = blob[starts[:-1][lengths == 1]]
    missing = np.setdiff1d(np.arange(256), singles)
    encoder = origin.encoder
    return Vocabulary(
        width=len(starts) - 1,
        eos_token_ids=eos,
        blob=blob,
        starts=starts,
        trie=trie,
        fingerprint=fingerprint,
        max_token_bytes=int(lengths.max(initial=0)),
        missing_bytes=tuple(missing.tolist()),
        family=origin.family,
        normalizer=origin.normalizer,
        encode=None if encoder is None else _checked(encoder, blob, starts),
        encoder_id=origin.encoder_id,
    )


def _checked(encoder: Encoder, blob: NDArray[np.uint8], starts: NDArray[np.int64]) -> Encoder:
    """An encoder that refuses rather than returning ids that spell something else."""

    def encode(text: str) -> list[int]:
        ids = encoder(text)
        spelled = b"".join(_slice(blob, starts, token_id) for token_id in ids)
        if spelled != text.encode():
            raise VocabularyError(
                f"the tokenizer has no tokens for all of {text!r}: what it would write spells "
                f"{spelled!r}",
                missing_bytes=sorted(set(text.encode()) - set(spelled)),
            )
        return ids

    return encode


def _slice(blob: NDArray[np.uint8], starts: NDArray[np.int64], token_id: int) -> bytes:
    return blob[starts[token_id] : starts[token_id + 1]].tobytes()


def _save(vocabulary: Vocabulary, key: str, settings: dict[str, Any]) -> None:
    arrays: dict[str, NDArray[Any]] = {
        "blob": vocabulary.blob,
        "starts": vocabulary.starts,
        "nodes": vocabulary.trie.nodes,
        "same_bytes": vocabulary.trie.same_bytes,
    }
    header = {
        "eos": vocabulary.eos_token_ids,
        "fingerprint": vocabulary.fingerprint,
        "trie": _trie_digest(vocabulary.trie),
        "family": vocabulary.family,
        "normalizer": vocabulary.normalizer,
        "settings": settings,
    }
    save_arrays(_KIND, key, arrays, header)


def _load(data: TokenizerData, key: str) -> Vocabulary | None:
    """The vocabulary kept under `key`, unless the entry does not fit together."""
    found = load_arrays(_KIND, key)
    if found is None:
        return None
    arrays, header = found
    try:
        trie = ByteTrie(arrays["nodes"], arrays["same_bytes"])
        blob, starts, eos = arrays["blob"], arrays["starts"], tuple(header["eos"])
        if _fingerprint(blob, starts, eos) != header["fingerprint"]:
            raise ValueError("its tokens are not those it was made of")
        if _trie_digest(trie) != header["trie"]:
            raise ValueError("its trie is not the one it was saved with")
        encoder = make_encoder(data, header["settings"])
        origin = _Origin(header["family"], header["normalizer"], encoder, data.digest)
        return _assemble(blob, starts, trie, eos, header["fingerprint"], origin)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        logger.warning("ignoring the cached vocabulary %s: %r", key, error)
        return None


def _trie_digest(trie: ByteTrie) -> str:
    digest = hashlib.sha256(repr((trie.nodes.shape, trie.nodes.dtype.str)).encode())
    digest.update(trie.nodes.tobytes())
    digest.update(trie.same_bytes.astype("<i4").tobytes())
    return digest.hexdigest()
