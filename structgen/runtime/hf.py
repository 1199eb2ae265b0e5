"""Language models from transformers.

`load()` turns a model's id, folder or objects into an `HFModel`, which the decoding loop can use.
Letters of shapes: B rows, K tokens of a chunk, W columns of the logits.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import jinja2
import torch
import transformers
from safetensors import SafetensorError
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from structgen.errors import InvalidTextError, ModelError, OptionError, UsageError
from structgen.runtime import default_model
from structgen.runtime.evaluating import evaluating
from structgen.runtime.hf_tree import HFTree, reads_trees
from structgen.runtime.kv_cache import KVCache, left_pad
from structgen.runtime.lm import Prompt
from structgen.runtime.packing import packed_products
from structgen.runtime.upcast import wide_products
from structgen.tokens.vocabulary import Vocabulary

logger = logging.getLogger("structgen")

ModelSource = str | os.PathLike[str] | PreTrainedModel | tuple[PreTrainedModel, Any]

# What transformers was seen to raise for folders and ids that are absent, damaged, of an unknown
# architecture, that need code of their own or a package that is not installed.
_LOAD_FAILURES = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RuntimeError,
    ImportError,
    SafetensorError,
)


def load(
    model: ModelSource | None = None,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    tokenizer: str | os.PathLike[str] | PreTrainedTokenizerBase | None = None,
) -> HFModel:
    """Load a language model.

    Example: `load("Qwen/Qwen3-0.6B", device="cuda", dtype="bfloat16").name` -> `"Qwen/Qwen3-0.6B"`

    Args:
        model: a Hub id, a folder, a loaded model, a pair (model, tokenizer), or None for the
            default model, SmolLM2-135M-Instruct. Code that comes with a model is never run, and
            weights are read from safetensors files only.
        device: None or "auto" is CUDA where there is one and the CPU elsewhere; a model that is
            already loaded stays where it is.
        dtype: None or "auto" is the type that the weights are stored in.
        tokenizer: if it is not the model's own.
    """
    target = _check_device(device)
    wanted = _check_dtype(dtype)
    if isinstance(model, tuple):
        model, tokenizer = model[0], model[1] if tokenizer is None else tokenizer
    name = _name_of(model)
    if model is None:
        loaded, own = default_model.load_parts(wanted)
        found = own if tokenizer is None else _open_tokenizer(tokenizer)
    elif isinstance(model, str | os.PathLike):
        loaded = _open_model(model, wanted)
        found = _open_tokenizer(model if tokenizer is None else tokenizer)
    elif tokenizer is None:
        raise UsageError("a loaded model needs its tokenizer too: pass load((model, tokenizer))")
    else:
        loaded, found = model, _open_tokenizer(tokenizer)
        target = target if device is not None else loaded.device
        wanted = wanted or loaded.dtype
    return HFModel(_move(loaded, target, wanted), found, name=name)


class HFModel:
    """A causal language model of transformers as the decoding loop sees it.

    Rows of different length are padded on the left, chunk by chunk: the mask hides the padding
    and positions count only real tokens, so a batch gives what its rows give alone, up to
    rounding. That holds for full attention; in a model with a sliding window the padding takes
    room in the window, so batches whose rows differ in length lose some of the oldest context.

    A model in training mode is read in evaluation mode, without dropout, and is in training mode
    again behind each forward pass; meanwhile no other thread may use it.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str | None = None,
    ) -> None:
        if model.config.is_encoder_decoder:
            raise ModelError(f"{name or 'the model'} is an encoder-decoder; load a causal model")
        if not model.training:
            model.eval()  # all of its parts, of which some may have been left in training mode
        self.model = model
        self.tokenizer = tokenizer
        self.name = name or _name_of(model)
        width = _logits_width(model)
        eos = _model_eos(model, width)
        self.vocabulary = Vocabulary.from_tokenizer(tokenizer, width=width, eos_token_ids=eos)
        self._only_attends = _only_attends(model)
        self._keep_last = "logits_to_keep" in inspect.signature(model.forward).parameters

    def __repr__(self) -> str:
        return f"<HFModel {self.name} on {self.device}, {self.model.dtype}>"

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def context_length(self) -> int | None:
        length = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return length if isinstance(length, int) and length > 0 else None

    def encode_prompt(self, prompt: Prompt) -> list[int]:
        """Token ids of a text or of chat messages; see `LanguageModel.encode_prompt`."""
        is_text = isinstance(prompt, str)
        for text in [prompt] if is_text else [m.get("content") for m in prompt]:
            _check_text(text)
        if self.tokenizer.chat_template is not None:
            messages = [{"role": "user", "content": prompt}] if is_text else prompt
            token_ids = self._apply_chat_template(messages)
        else:
            text = prompt if is_text else "\n\n".join(str(m["content"]) for m in prompt)
            token_ids = self.tokenizer(text)["input_ids"]
        return list(cast("list[int]", token_ids)) or [self._first_token()]

    @torch.no_grad()
    def prefill(self, prompts: Sequence[Sequence[int]]) -> tuple[KVCache, Tensor]:
        cache = KVCache.empty(len(prompts), self.device)
        logits = self.extend(cache, prompts)
        cache.let_grow()
        return cache, logits

    def extend(self, cache: KVCache, chunks: Sequence[Sequence[int]]) -> Tensor:
        return self.extend_last(cache, chunks, 1)[:, 0]  # [B, W]

    @torch.no_grad()
    def extend_last(self, cache: KVCache, chunks: Sequence[Sequence[int]], n_last: int) -> Tensor:
        token_ids, real = left_pad(chunks, self.device)  # [B, K] each
        lengths = [len(chunk) for chunk in chunks]
        cache.append(real, lengths)
        positions = (cache.mask.cumsum(-1) - 1).clamp(min=0)[:, -token_ids.shape[1] :]  # [B, K]
        wide = wide_products(self.device, self.model.dtype, token_ids.numel())
        packed = packed_products(real, sum(lengths)) if self._only_attends else nullcontext()
        with evaluating(self.model), wide, packed:
            output = self.model(
                input_ids=token_ids,
                attention_mask=cache.mask if cache.padded else None,
                position_ids=positions,
                past_key_values=cache.kv,
                use_cache=True,
                **({"logits_to_keep": n_last} if self._keep_last else {}),
            )
        cache.kv = output.past_key_values
        cache.tidy()
        return output.logits[:, -n_last:]  # [B, n_last, W]

    def fork(self, cache: KVCache) -> KVCache:
        return cache.fork()

    @torch.no_grad()
    def select(self, cache: KVCache, rows: Sequence[int]) -> KVCache:
        return cache.select(rows)

    def can_join(self, cache: KVCache) -> bool:
        return cache.is_plain

    @torch.no_grad()
    def join(self, first: KVCache, second: KVCache) -> KVCache:
        return first.join(second)

    def open_tree(self, cache: KVCache) -> HFTree | None:
        """See `structgen.runtime.trees`; None for models whose attention takes no mask of ours."""
        fits = reads_trees(self.model) and cache.is_plain
        return HFTree(self.model, cache) if fits else None

    def _apply_chat_template(self, messages: Sequence[Mapping[str, Any]]) -> Any:
        """The ids of a chat up to where the answer begins.

        `enable_thinking` is the name that templates of reasoning models agree on: a value starts
        at once, so the prompt must not announce thoughts. Other templates ignore it.
        """
        try:
            encoded = self.tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=True,
                enable_thinking=False,
            )
        except jinja2.TemplateError as error:
            raise OptionError(
                f"the chat template of {self.name} refuses the messages: {error}"
            ) from error
        return cast("Mapping[str, Any]", encoded)["input_ids"]

    def _first_token(self) -> int:
        """What stands for an empty prompt: a model needs at least one token to go on from."""
        bos = self.tokenizer.bos_token_id
        return bos if isinstance(bos, int) else self.vocabulary.eos_token_ids[0]


def _only_attends(model: PreTrainedModel) -> bool:
    """Whether no layer looks at its neighbours but by attention, which a mask keeps from padding.

    Convolutions and recurrent layers read the vectors of padding too.
    """
    kinds = getattr(model.config.get_text_config(), "layer_types", None) or ()
    mixers = torch.nn.Conv1d | torch.nn.ZeroPad2d  # of state-space models, and of RWKV
    return all("attention" in kind and "linear" not in kind for kind in kinds) and not any(
        isinstance(module, mixers) for module in model.modules()
    )


def _check_device(device: str | torch.device | None) -> torch.device:
    """The device to use, refused if this machine does not have it."""
    if device is None or device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise OptionError(f"device={device!r} is unknown; use 'auto', 'cpu' or 'cuda'") from error
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ModelError(f"device={device!r} was asked for, but torch finds no CUDA device here")
    return chosen


def _check_dtype(dtype: str | torch.dtype | None) -> torch.dtype | None:
    """The type to use, or None for the one that the weights are stored in."""
    if dtype is None or dtype == "auto":
        return None
    found: object = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise OptionError(f"dtype={dtype!r} is unknown; use 'auto', 'bfloat16' or 'float32'")
    return found


def _name_of(model: ModelSource | None) -> str:
    if model is None:
        return default_model.NAME
    if isinstance(model, str | os.PathLike):
        return str(model)
    return str(getattr(model, "name_or_path", "") or type(model).__name__)


def _open_model(source: str | os.PathLike[str], dtype: torch.dtype | None) -> PreTrainedModel:
    _check_folder(source)
    try:
        return transformers.AutoModelForCausalLM.from_pretrained(
            source, dtype=dtype or "auto", trust_remote_code=False, use_safetensors=True
        )
    except _LOAD_FAILURES as error:
        raise ModelError(f"could not load the model {str(source)!r}: {error}") from error


def _open_tokenizer(
    source: str | os.PathLike[str] | PreTrainedTokenizerBase,
) -> PreTrainedTokenizerBase:
    if not isinstance(source, str | os.PathLike):
        return source
    _check_folder(source)
    try:
        return transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    except _LOAD_FAILURES as error:
        raise ModelError(f"could not load the tokenizer {str(source)!r}: {error}") from error


def _check_folder(source: str | os.PathLike[str]) -> None:
    """Refuse what is written as a path but is no folder, before it is looked up on the Hub."""
    path = Path(source)
    is_path = not isinstance(source, str) or path.is_absolute() or source.startswith((".", "~"))
    if is_path and not path.is_dir():
        raise ModelError(f"there is no model folder {str(source)!r}")


def _move(
    model: PreTrainedModel, device: torch.device, dtype: torch.dtype | None
) -> PreTrainedModel:
    """Bring the model to a device and type; nothing is touched that is already as asked."""
    if device != model.device:
        model = model.to(device)  # pyright: ignore[reportArgumentType]
    if dtype is not None and dtype != model.dtype:
        model = default_model.cast_model(model, dtype)
    return model


def _logits_width(model: PreTrainedModel) -> int:
    """Columns of the logits: rows of the output embedding, which may exceed the tokenizer's ids."""
    head = model.get_output_embeddings()
    weight = getattr(head, "weight", None)
    if isinstance(weight, Tensor) and weight.dim() == 2:
        return weight.shape[0]
    return int(model.config.get_text_config().vocab_size)


def _model_eos(model: PreTrainedModel, width: int) -> list[int]:
    """End tokens that the model names in its two configs; the tokenizer's own come on top."""
    configs = (model.generation_config, model.config.get_text_config())
    named = [getattr(config, "eos_token_id", None) for config in configs]
    flat = [i for ids in named for i in (ids if isinstance(ids, list) else [ids])]
    return sorted({i for i in flat if isinstance(i, int) and 0 <= i < width})


def _check_text(text: object) -> None:
    """Refuse text with a lone surrogate, which no tokenizer can read."""
    if isinstance(text, str):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidTextError(f"the prompt is not valid Unicode text: {error}") from error
