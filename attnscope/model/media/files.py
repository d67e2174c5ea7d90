"""Open a picture or a sound file, prepare it with the model's own processor, name its positions.

Processors are the checkpoint's own, as transformers gives them. Pictures are drawn from the very numbers that
the model is given, brought back to colours, so that nothing can be out of place.
"""

import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr
import transformers
from jaxtyping import Float
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor, nn
from transformers import AutoFeatureExtractor, AutoImageProcessor

from attnscope import incoming
from attnscope.errors import InputError, ModelUnavailableError, is_out_of_memory, one_line
from attnscope.model.media.patches import Reader, position_token
from attnscope.process.ending import temporary_folder
from attnscope.process.standard_error import hushed
from attnscope.tokens import Frames, Tokens

_WINDOW = 0.03  # seconds at the end that fill no whole window
_LOWEST, _HIGHEST = 1000, 768000  # lowest and highest plausible sampling rate
_SIZE, _RATE = 224, 16_000  # noise picture: pixels to a side; noise sound: samples of one second


def open_picture(path: Path) -> tuple[Image.Image, str, list[str]]:
    """The picture upright and in RGB, the SHA-256 of its file, and notices for the user.

    Raises `InputError` in one line for a file that is no picture.
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
    """The checkpoint's image processor, and notices for the user.

    One that only runs on torchvision is replaced by a plain one of the same settings.
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
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _no_processor(folder, name, "pictures", error) from error


def _no_processor(folder: Path, name: str, media: str, error: Exception) -> ModelUnavailableError:
    there = any((folder / file).is_file() for file in ("preprocessor_config.json", "processor_config.json"))
    why = one_line(error) if there else "there is no preprocessor_config.json"
    return ModelUnavailableError(f"{name}: cannot tell how it wants its {media}: {why}")


def as_seen(inputs: Mapping[str, Any], processor: Any) -> Float[np.ndarray, "height width 3"] | None:
    """The picture as the model gets it, colours from 0 to 1; None unless `inputs` hold one picture.

    It is made from the processor's numbers.
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
    """The one picture of a batch as `channel x height x width`, whatever order its pixels came in."""
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
    """The picture put together from patches in blocks of `merge_size` x `merge_size` (Qwen2-VL)."""
    _, rows, columns = grid
    side, merge = processor.patch_size, processor.merge_size
    cut = pixels.reshape(
        rows // merge, columns // merge, merge, merge, -1, processor.temporal_patch_size, side, side
    )
    return cut[..., 0, :, :].permute(4, 0, 2, 5, 1, 3, 6).reshape(-1, rows * side, columns * side)


def open_sound(path: Path, rate: int) -> tuple[Float[np.ndarray, " sample"], str, list[str]]:
    """Samples at `rate` a second, channels mixed to one; the file's SHA-256; notices for the user.

    Raises `InputError` in one line for a file that is no sound, is empty or holds infinite or NaN samples.
    """
    content = incoming.content(path, "sound")
    try:
        # libmpg123 writes what it dislikes of an MP3 straight to standard error
        with hushed(), soundfile.SoundFile(io.BytesIO(content)) as file:
            size = 8 * file.frames * file.channels
            incoming.check_room(2 * size, f"sound '{path}' unpacked")
            samples, own_rate = file.read(dtype="float64", always_2d=True), file.samplerate
    except (soundfile.LibsndfileError, TypeError, ValueError) as error:
        why = getattr(error, "error_string", one_line(error)).rstrip(".")
        raise InputError(f"cannot read sound '{path}': {why}") from error
    if not len(samples):
        raise InputError(f"sound '{path}' is empty")
    if not np.isfinite(samples).all():
        raise InputError(f"sound '{path}' has samples that are no numbers")
    if not _LOWEST <= own_rate <= _HIGHEST:
        raise InputError(f"sound '{path}' says it has {own_rate} samples a second: that cannot be")
    notices = []
    if samples.shape[1] > 1:
        notices.append(f"'{path.name}' has {samples.shape[1]} channels: their mean is read")
    mono = samples.mean(axis=1)
    if own_rate != rate:
        notices.append(f"'{path.name}' has {own_rate} samples a second: resampled to {rate}")
        mono = soxr.resample(mono, own_rate, rate)
    return mono, hashlib.sha256(content).hexdigest(), notices


def feature_extractor(folder: Path, name: str) -> Any:
    """The checkpoint's feature extractor; `ModelUnavailableError` in one line where there is none."""
    try:
        return AutoFeatureExtractor.from_pretrained(folder)
    except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
        raise _no_processor(folder, name, "sounds", error) from error


def frame_tokens(
    reader: Reader, inputs: dict[str, Tensor], extractor: Any, seconds: float
) -> tuple[Tokens, bool]:
    """Tokens of a sound's positions, each named by its start time, and whether that is known.

    A position lasts as long as the strides of the convolutions on the way say; `seconds` of sound must then
    have as many positions as there are. Raises `InputError` for a sound that is too short.
    """
    strides: list[int] = []
    with ExitStack() as stack:
        for part in reader.module.modules():
            if isinstance(part, nn.Conv1d):
                hook = part.register_forward_pre_hook(lambda m, _: strides.append(m.stride[0]))
                stack.enter_context(hook)
        try:
            count = len(reader.entering(inputs))
        except RuntimeError as error:
            raise InputError(f"the sound is too short for this model: {seconds:.3g} s") from error
    item = 1 / extractor.sampling_rate if "input_values" in inputs else _hop(extractor)
    lasts = item * int(np.prod(strides))
    if abs(count * lasts - seconds) > 2 * lasts + _WINDOW:
        return Tokens((), tuple(position_token(f"#{i}") for i in range(count))), False
    decimals = next((d for d in (1, 2, 3) if abs(lasts - round(lasts, d)) < 1e-9), 4)
    items = tuple(position_token(f"{i * lasts:.{decimals}f}s") for i in range(count))
    return Tokens((), items, (Frames(0, count, lasts),)), True


def _hop(extractor: Any) -> float:
    """Seconds between two columns of the features: by the extractor's hop length, else Kaldi's 10 ms."""
    hop = getattr(extractor, "hop_length", None)
    return hop / extractor.sampling_rate if hop else 0.01 * getattr(extractor, "stride", 1)


@contextmanager
def noise(medium: str) -> Iterator[Path]:
    """Context manager: a temporary file of noise, a picture for `image`, else a sound."""
    random = np.random.default_rng(0)
    with temporary_folder() as folder:
        if medium == "image":
            from PIL import Image

            path = Path(folder) / "noise.png"
            Image.fromarray(random.integers(0, 256, (_SIZE, _SIZE, 3), np.uint8)).save(path)
        else:
            import soundfile

            path = Path(folder) / "noise.wav"
            soundfile.write(path, random.uniform(-0.5, 0.5, _RATE), _RATE)
        yield path
