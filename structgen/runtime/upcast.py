"""Wide matrix products of 16-bit models on processors that have no instructions for them.

There, torch multiplies a 16-bit matrix with one vector quickly (it is bound by memory), but its
time grows in step with the number of vectors. Turning the weights to float32 first costs a pass
over memory and then runs at full speed. SmolLM2-135M in bfloat16, 2 cores with AVX2 only,
milliseconds for a forward pass over k tokens after a context of 60:

    k            1    2    4    8   16   40   100   300
    as it is    31   45   68  117  213  499  1184  3555
    upcast       -    -    -    -  147  241   341   741
    float32     51   86   86   77   91  135   222   588
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

MIN_VECTORS = 12
"""From this many vectors on the detour is faster."""

_HALVES = (torch.bfloat16, torch.float16)


def wide_products(
    device: torch.device, dtype: torch.dtype, n_vectors: int
) -> AbstractContextManager[object]:
    """A context for a forward pass over `n_vectors` tokens, all rows taken together."""
    slow = device.type == "cpu" and dtype in _HALVES and n_vectors >= MIN_VECTORS
    return _UpcastLinear() if slow and not _has_native(dtype) else nullcontext()


def _has_native(dtype: torch.dtype) -> bool:
    """Whether this processor multiplies in `dtype` itself; yes if torch is too old to tell."""
    probe: Callable[[], Mapping[str, Any]] | None = getattr(torch.cpu, "get_capabilities", None)
    if probe is None:
        return True
    capabilities = probe()
    suffix = "bf16" if dtype is torch.bfloat16 else "fp16"
    names = (f"avx512_{suffix}", f"amx_{suffix}", suffix)  # the last one is Arm's
    return any(bool(capabilities.get(name)) for name in names)


class _UpcastLinear(TorchFunctionMode):
    """While active, linear layers over many 16-bit vectors compute in float32."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func is linear and not kwargs and _is_wide(args[0]):
            return _linear(*args)
        return func(*args, **(kwargs or {}))


def _is_wide(inputs: Tensor) -> bool:
    return inputs.dtype in _HALVES and inputs.numel() >= MIN_VECTORS * inputs.shape[-1]


def _linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`F.linear` of a 16-bit layer, computed in float32 and rounded once at the end."""
    wide_bias = None if bias is None else bias.float()
    return linear(inputs.float(), weight.float(), wide_bias).to(inputs.dtype)
