"""A model in evaluation mode, or without gradients of its weights, for a run; afterwards as it was."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards every module has its own training flag back."""
    training = [module for module in model.modules() if module.training]
    try:
        with torch.no_grad():
            if training:
                model.eval()
            yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def without_weights(model: nn.Module) -> Iterator[None]:
    """While open, no gradients are kept for the model's own weights."""
    learned = [each for each in model.parameters() if each.requires_grad]
    try:
        for each in learned:
            each.requires_grad_(False)
        yield
    finally:
        for each in learned:
            each.requires_grad_(True)
