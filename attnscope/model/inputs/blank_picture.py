"""What stands in for the picture where only the text that is read beside it is looked at."""

from typing import Any

import torch
from torch import Tensor


def blank_pixels(config: Any) -> Tensor | None:
    """A grey picture for a model of two halves, of which only the one that reads text is looked at."""
    vision = getattr(config, "vision_config", None)
    size, channels = getattr(vision, "image_size", None), getattr(vision, "num_channels", 3)
    if getattr(config, "image_token_id", None) is not None or size is None:
        return None  # a model that reads pictures as part of its text does without
    height, width = size if isinstance(size, list | tuple) else (size, size)
    return torch.zeros(1, channels, height, width)
