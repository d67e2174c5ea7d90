"""A picture or a sound file in, the model's inputs and a name for each of its positions out.

A position is named by the patch or the time that it stands for only where that was found out (`patches`,
`files`) or follows from a count that fits; where it cannot be told, positions are numbered and the user is
told so.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from attnscope.errors import InputError, is_out_of_memory, one_line
from attnscope.model.anatomy.placed import device_of
from attnscope.model.anatomy.sites import Site
from attnscope.model.inputs.text import Encoded
from attnscope.model.loaded import Model
from attnscope.model.media import files
from attnscope.model.media.patches import (
    Grid,
    Reader,
    grid_of,
    patch_tokens,
    patches_in_blocks,
    patches_in_rows,
    position_token,
    reader_of,
    window_tokens,
)
from attnscope.model.media.prompt import picture_in_text
from attnscope.results import Picture, Sound
from attnscope.tokens import Tokens

_CANNOT_RUN = (ValueError, TypeError, RuntimeError, AttributeError, LookupError)  # on pixels alone
_SOUNDS = ("input_features", "input_values")


@dataclass(frozen=True, eq=False, kw_only=True)
class Perceived(Encoded):
    """Inputs that are not only text.

    `positions` are those of the part that reads the picture or the sound; `tokens` are the same where the
    model reads nothing else, and else those of its text, in which a picture may stand as well. `medium` is
    None where the picture cannot be shown as the model saw it.
    """

    positions: Tokens
    medium: Picture | Sound | None

    @property
    def read(self) -> Tokens | None:
        """The tokens if any of them is one of a vocabulary."""
        return self.tokens if any(token.id >= 0 for token in self.tokens.items) else None


def sees(model: nn.Module, tower: Iterable[Site]) -> bool:
    """Whether the attention modules are those that read the picture or the sound itself."""
    readers = (reader_of(model, name) for name in ("pixel_values", *_SOUNDS))
    first = [reader.first.path for reader in readers if reader is not None]
    return any(site.path in first for site in tower)


def window_names(model: Model, perceived: Perceived, site: Site, size: int) -> list[Tokens] | None:
    """The positions of every window in which the layer of `site` reads the picture, if it can be told."""
    reader, picture = reader_of(model.module), perceived.medium
    if (
        not perceived.positions.stretches
        or reader is None
        or not isinstance(picture, Picture)
        or perceived.inputs["pixel_values"].ndim != 4
    ):
        return None
    grid = grid_of(reader.setting("patch_size"), *picture.size)
    if grid is None:
        return None
    return window_tokens(reader, site, perceived.inputs["pixel_values"], grid, size)


def splices(config: Any) -> bool:
    """Whether a model of this config reads a picture as part of its text."""
    return getattr(config, "image_token_id", None) is not None


def read_media(
    model: Model,
    *,
    image: str | Path | None = None,
    audio: str | Path | None = None,
    texts: tuple[str, ...] = (),
) -> Perceived:
    """The picture or the sound as `model` reads it, beside `texts` where it reads both.

    Raises `InputError` where the model reads no such thing or the file holds none, `ModelUnavailableError`
    where the checkpoint does not say how it wants it.
    """
    if image is not None and audio is None:
        return _seen(model, Path(image), texts)
    if audio is not None and image is None:
        return _heard(model, Path(audio), texts)
    raise InputError("give a picture or a sound, one of the two")


def _seen(model: Model, path: Path, texts: tuple[str, ...]) -> Perceived:
    takes = inspect.signature(model.module.forward).parameters
    reader = reader_of(model.module)
    if reader is None or "pixel_values" not in takes:
        raise InputError(f"{model.name} reads no pictures: leave --image out or choose a model that does")
    if texts and "input_ids" not in takes:
        raise InputError(f"{model.name} reads pictures and no text: leave the text out")
    opened, digest, notices = files.open_picture(path)
    own = getattr(model.processor, "image_processor", model.processor)
    processor, remarks = (own, []) if own is not None else files.image_processor(model.folder, model.name)
    with _preparing(f"{model.name} takes no picture like '{path.name}'"):
        given = dict(processor(images=opened, return_tensors="pt", input_data_format="channels_last"))
    pixels = files.as_seen(given, processor)
    grid = None if pixels is None else grid_of(reader.setting("patch_size"), *pixels.shape[:2])
    positions, are_named = _positions(reader, _moved(model, given), grid)
    if not are_named:
        remarks.append(f"which patch each of {model.name}'s positions stands for cannot be told")
    covered = (grid.rows * grid.high, grid.columns * grid.wide) if grid and are_named else (0, 0)
    picture = None if pixels is None else Picture(path.name, digest, pixels, covered)
    inputs, tokens = given, positions
    if splices(model.module.config):
        text = " ".join(texts)
        inputs, tokens, more = picture_in_text(model, opened, given, text, grid if are_named else None)
        remarks += more
    elif "input_ids" in takes:
        encoded = model.encode(texts, pictured=True) if texts else _no_text(model)
        inputs, tokens = {**encoded.inputs, **given}, encoded.tokens
        remarks += encoded.notices
    inputs = {name: value for name, value in inputs.items() if name in takes and name != "labels"}
    return Perceived(
        inputs=_moved(model, inputs),
        tokens=tokens,
        notices=(*notices, *remarks),
        positions=positions,
        medium=picture,
    )


def _heard(model: Model, path: Path, texts: tuple[str, ...]) -> Perceived:
    takes = inspect.signature(model.module.forward).parameters
    name = next((each for each in _SOUNDS if each in takes), None)
    reader = None if name is None else reader_of(model.module, name)
    if reader is None or name is None:
        raise InputError(f"{model.name} reads no sounds: leave --audio out or choose a model that does")
    if texts:
        raise InputError(f"{model.name} reads sounds and no text: leave the text out")
    own = getattr(model.processor, "feature_extractor", model.processor)
    extractor = own if own is not None else files.feature_extractor(model.folder, model.name)
    rate = extractor.sampling_rate
    samples, digest, notices = files.open_sound(path, rate)
    most = getattr(extractor, "n_samples", None)  # of an extractor that pads and cuts to one length
    if most is not None and len(samples) > most:
        notices.append(f"{model.name} reads {most / rate:g} s: the rest of the sound is left out")
        samples = samples[:most]
    with _preparing(f"{model.name} takes no sound like '{path.name}'"):
        made = dict(extractor(samples, sampling_rate=rate, return_tensors="pt"))
    given = _moved(model, made)
    inputs = {each: value for each, value in given.items() if each in takes}
    seconds = (most or len(samples)) / rate
    positions, are_named = files.frame_tokens(reader, {name: inputs[name]}, extractor, seconds)
    if not are_named:
        notices.append(f"which time each of {model.name}'s positions stands for cannot be told")
    sound = Sound(path.name, digest, samples, rate)
    return Perceived(
        inputs=inputs, tokens=positions, notices=tuple(notices), positions=positions, medium=sound
    )


@contextmanager
def _preparing(refusal: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise InputError(f"{refusal}: {one_line(error)}") from error


def _no_text(model: Model) -> Encoded:
    """What the text half of a model with two halves reads when only the other half is looked at."""
    inputs = model.tokenizer("", return_tensors="pt")
    if not inputs["input_ids"].shape[1]:
        inputs = model.tokenizer(str(model.tokenizer.unk_token), return_tensors="pt")
    pieces = model.tokenizer.convert_ids_to_tokens(inputs["input_ids"][0].tolist())
    return Encoded(inputs, Tokens((), tuple(position_token(piece, special=True) for piece in pieces)), ())


def _positions(reader: Reader, given: dict[str, Any], grid: Grid | None) -> tuple[Tokens, bool]:
    """Names of the positions, and whether they tell which patch is meant.

    Where the pixels come in patches already, the picture was put together from them in the same order.
    """
    pixels = given["pixel_values"]
    if pixels.ndim == 4 and pixels.shape[0] == 1:
        try:
            return patch_tokens(reader, pixels, grid)
        except _CANNOT_RUN:
            return Tokens((), ()), False
    if grid is not None and "image_grid_thw" in given:
        return patches_in_blocks(grid, int(reader.setting("spatial_merge_size") or 1)), True
    if grid is not None and "spatial_shapes" in given:
        return patches_in_rows(grid, pixels.shape[1]), True
    return Tokens((), ()), False


def _moved(model: Model, inputs: Mapping[str, Any]) -> dict[str, Any]:
    module = model.module
    return {
        name: value.to(device_of(module), module.dtype if value.is_floating_point() else None)
        for name, value in inputs.items()
        if isinstance(value, Tensor)
    }
