"""A picture file in, the model's inputs and the picture as the model sees it out.

The processor is the checkpoint's own, as transformers gives it. What is drawn later is made from the very
numbers that the model is given, brought back to colours, so that nothing can be out of place.
"""

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from jaxtyping import Float
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor
from transformers import AutoImageProcessor

from attnscope import incoming
from attnscope.errors import InputError, ModelUnavailableError, is_out_of_memory, one_line


def open_picture(path: Path) -> tuple[Image.Image, str, list[str]]:
    """The picture upright and in RGB, the SHA-256 of its file, and what the user should be told.

    Raises `InputError` in one line for what is no picture.
    """
    content = incoming.content(path, "picture")
    try:
        with Image.open(io.BytesIO(content)) as opened:
            frames = getattr(opened, "n_frames", 1)
            upright = ImageOps.exif_transpose(opened)
            upright.load()
    except Exception as error:  # whatever the library makes of a file that is not what it says it is
        if is_out_of_memory(error):
            raise
        why = "no format that is known" if isinstance(error, UnidentifiedImageError) else one_line(error)
        raise InputError(f"cannot read picture '{path}': {why}") from error
    notices = [f"'{path.name}' has {frames} pictures in it: the first is read"] if frames > 1 else []
    if upright.has_transparency_data:
        white = Image.new("RGBA", upright.size, "white")
        upright = Image.alpha_composite(white, upright.convert("RGBA"))
        notices.append(f"what is transparent in '{path.name}' is read as white")
    if upright.mode.startswith("I"):  # 16 bits of grey, which a plain conversion would clip
        upright = Image.fromarray((np.asarray(upright).clip(0, 65535) // 256).astype(np.uint8))
    return upright.convert("RGB"), hashlib.sha256(content).hexdigest(), notices


def image_processor(folder: Path, name: str) -> tuple[Any, list[str]]:
    """The checkpoint's image processor, and what the user should be told.

    One that only runs on torchvision is stood in for by a plain one of the same settings.
    """
    try:
        return AutoImageProcessor.from_pretrained(folder), []
    except ImportError as error:
        settings = incoming.settings(folder / "preprocessor_config.json")
        own = settings.pop("image_processor_type", "its image processor")
        if not {"size", "image_mean", "image_std"} <= settings.keys():
            raise ModelUnavailableError(f"{name}: {own} needs torchvision, which is not installed") from error
        remark = f"{own} needs torchvision: read by a plain processor of the same size, mean and deviation"
        return transformers.ViTImageProcessorPil(**settings), [remark]
    except (OSError, ValueError, KeyError, TypeError) as error:
        if not any(
            (folder / file).is_file() for file in ("preprocessor_config.json", "processor_config.json")
        ):
            why = "there is no preprocessor_config.json"
        else:
            why = one_line(error)
        raise ModelUnavailableError(f"{name}: cannot tell how it wants its pictures: {why}") from error


def as_seen(inputs: Mapping[str, Any], processor: Any) -> Float[np.ndarray, "height width 3"] | None:
    """The picture that `inputs` hold, from the processor's numbers back to colours from 0 to 1.

    None where they hold something else than one whole picture.
    """
    values = np.asarray(_whole(inputs, processor), dtype=np.float64)
    if values.ndim != 3 or values.shape[0] not in (1, 3):
        return None
    if getattr(processor, "do_normalize", False):
        mean, deviation = (
            np.reshape(getattr(processor, name), (-1, 1, 1)) for name in ("image_mean", "image_std")
        )
        values = values * deviation + mean
    if not getattr(processor, "do_rescale", True):
        values = values / 255
    if getattr(processor, "do_flip_channel_order", False):
        values = values[::-1]
    values = np.broadcast_to(values, (3, *values.shape[1:]))
    return np.ascontiguousarray(values.clip(0, 1).transpose(1, 2, 0))


def _whole(inputs: Mapping[str, Any], processor: Any) -> Any:
    """The one picture of a batch as `channel height width`, whatever order its pixels came in."""
    pixels: Tensor = inputs["pixel_values"]
    if "image_grid_thw" in inputs:
        return _from_blocks(pixels, inputs["image_grid_thw"][0].tolist(), processor)
    if "spatial_shapes" in inputs:
        rows, columns = inputs["spatial_shapes"][0].tolist()
        side = processor.patch_size
        cut = pixels[0, : rows * columns].reshape(rows, columns, side, side, -1)
        return cut.permute(4, 0, 2, 1, 3).reshape(-1, rows * side, columns * side)
    return pixels[0] if pixels.ndim == 4 else pixels


def _from_blocks(pixels: Tensor, grid: list[int], processor: Any) -> Tensor:
    """Patches that stand in blocks of `merge_size` squared (Qwen2-VL), put together again."""
    _, rows, columns = grid
    side, merge = processor.patch_size, processor.merge_size
    cut = pixels.reshape(
        rows // merge, columns // merge, merge, merge, -1, processor.temporal_patch_size, side, side
    )
    return cut[..., 0, :, :].permute(4, 0, 2, 5, 1, 3, 6).reshape(-1, rows * side, columns * side)
