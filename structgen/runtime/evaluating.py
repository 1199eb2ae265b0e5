"""Forward passes in evaluation mode, of models that belong to somebody else."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch


@contextmanager
def evaluating(model: torch.nn.Module) -> Generator[None]:
    """Keep a model in evaluation mode inside the block, and leave it in the modes it was in.

    With dropout the same prompt would have other logits each time, and values and probabilities
    would mean nothing. `generate()` of transformers leaves this to the caller; `from_pretrained`
    returns models in evaluation mode, for which there is nothing to do. A model that is being
    trained has to go on with dropout when the block is left.
    """
    if not model.training:
        yield
        return
    resting = [module for module in model.modules() if not module.training]
    try:
        model.eval()
        yield
    finally:
        model.train()  # not by the flags alone: layers of adapters may have work to do here
        for module in resting:  # parts that are kept in evaluation mode on purpose
            module.training = False
