"""A sound file in, one channel at the rate that the model wants out, and how long one position lasts."""

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AutoFeatureExtractor

from attnscope import incoming
from attnscope.errors import InputError, ModelUnavailableError, one_line
from attnscope.model.media.patches import Reader, position_token
from attnscope.tokens import Frames, Tokens

_WINDOW = 0.03  # seconds at the end that no whole window fits into
_LOWEST, _HIGHEST = 1000, 768000  # samples a second between which a rate can be meant


def open_sound(path: Path, rate: int) -> tuple[Float[np.ndarray, " sample"], str, list[str]]:
    """The samples at `rate` a second, channels mixed to one, the SHA-256 of the file, and notices.

    Raises `InputError` in one line for what is no sound, is empty or holds numbers that are none.
    """
    content = incoming.content(path, "sound")
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
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
        if not any(
            (folder / file).is_file() for file in ("preprocessor_config.json", "processor_config.json")
        ):
            why = "there is no preprocessor_config.json"
        else:
            why = one_line(error)
        raise ModelUnavailableError(f"{name}: cannot tell how it wants its sounds: {why}") from error


def frame_tokens(
    reader: Reader, inputs: dict[str, Tensor], extractor: Any, seconds: float
) -> tuple[Tokens, bool]:
    """The positions that enter the first layer, each called by when it starts, and whether that is known.

    A position lasts as long as the strides of the convolutions on the way say; `seconds` of sound must
    then have as many positions as there are. Raises `InputError` for a sound that is too short.
    """
    strides: list[int] = []
    convolutions = [each for each in reader.module.modules() if isinstance(each, nn.Conv1d)]
    handles = [
        each.register_forward_pre_hook(lambda m, _: strides.append(m.stride[0])) for each in convolutions
    ]
    try:
        count = len(reader.entering(inputs))
    except RuntimeError as error:
        raise InputError(f"the sound is too short for this model: {seconds:.3g} s") from error
    finally:
        for handle in handles:
            handle.remove()
    item = 1 / extractor.sampling_rate if "input_values" in inputs else _hop(extractor)
    lasts = item * int(np.prod(strides))
    if abs(count * lasts - seconds) > 2 * lasts + _WINDOW:
        return Tokens((), tuple(position_token(f"#{i}") for i in range(count))), False
    decimals = next((d for d in (1, 2, 3) if abs(lasts - round(lasts, d)) < 1e-9), 4)
    items = tuple(position_token(f"{i * lasts:.{decimals}f}s") for i in range(count))
    return Tokens((), items, (Frames(0, count, lasts),)), True


def _hop(extractor: Any) -> float:
    """Seconds from one column of the features to the next: the extractor's own, or Kaldi's 10 ms."""
    hop = getattr(extractor, "hop_length", None)
    return hop / extractor.sampling_rate if hop else 0.01 * getattr(extractor, "stride", 1)
