"""From a picture or a sound file to the model's inputs and a name for each of its positions.

A position is named by its patch or its time only where that was found out (`patches`, `files`) or follows
from a count that fits; elsewhere positions are numbered and the user is told so.

A picture among words is part of a prompt, token by token: the checkpoint's own processor puts the picture's
tokens in place of a marker in the prompt. A prompt without the marker becomes a chat message where the
checkpoint has a template for that, else the picture is put in front of it.
"""

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from transformers import AutoProcessor

from attnscope import incoming
from attnscope.errors import InputError, ModelUnavailableError, is_out_of_memory, one_line
from attnscope.model.anatomy.placed import device_of
from attnscope.model.anatomy.sites import Site, every_site
from attnscope.model.inputs.rendered import rendered
from attnscope.model.inputs.target import tokens_by_text
from attnscope.model.inputs.text import Encoded, tokens_of
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
from attnscope.results import Picture, Sound
from attnscope.tokens import Patches, Token, Tokens

_SETTINGS = "processor_config.json"
_EACH = 64  # most bytes of one image token's spelling in the prompt
_CANNOT_RUN = (ValueError, TypeError, RuntimeError, AttributeError, LookupError)  # more than pixels needed
_SOUNDS = ("input_features", "input_values")


def picture_in_text(
    model: Model, opened: Image.Image, given: dict[str, Any], text: str, grid: Grid | None
) -> tuple[dict[str, Any], Tokens, list[str]]:
    """Inputs, tokens and notices of a prompt with the picture in it, which is read as `grid`.

    `given` are the picture's own inputs. Raises `InputError` for a prompt with no place for one picture.
    """
    processor, lacking = _processor(model)
    own = getattr(processor, "boi_token", None) or getattr(processor, "image_token", None)
    marker = str(own or model.tokenizer.convert_ids_to_tokens(model.module.config.image_token_id))
    prompt, notices = _prompt(model, processor, marker, text)
    inputs = None if marker in prompt else _by_itself(processor, opened, prompt)
    if inputs is None and marker not in prompt:
        config, spell = model.module.config, model.tokenizer.convert_ids_to_tokens
        ends = [getattr(config, name, None) for name in ("vision_start_token_id", "vision_end_token_id")]
        before, after = (spell(end) if isinstance(end, int) else "" for end in ends)
        prompt = f"{before}{marker}{after}{prompt}"
        notices = [f"the picture stands before the text; {marker} in the text puts it elsewhere"]
    if inputs is None:
        if prompt.count(marker) != 1:
            raise InputError(f"{marker} stands {prompt.count(marker)} times in the text: once is needed")
        if processor is None and "image_grid_thw" not in given:
            raise ModelUnavailableError(f"{model.name} has no processor for a picture in a text: {lacking}")
        inputs = _processed(model, processor, opened, given, prompt)
    ids = inputs["input_ids"][0].tolist()
    limit = model.limit()
    if limit is not None and len(ids) > limit:
        raise InputError(f"picture and text have {len(ids)} tokens, {model.name} reads at most {limit}")
    tokens = _named(model, ids, prompt, grid)
    if not tokens.stretches:
        notices.append("which patch each of the picture's tokens in the text stands for cannot be told")
    return inputs, tokens, notices


def _processor(model: Model) -> tuple[Any, str]:
    if hasattr(model.processor, "image_processor"):
        return model.processor, ""
    _check_length(model)
    try:
        made = AutoProcessor.from_pretrained(model.folder)
    except (OSError, ValueError, AttributeError, TypeError, ImportError, KeyError, RecursionError) as error:
        return None, one_line(error).strip() or type(error).__name__
    return (made, "") if hasattr(made, "image_processor") else (None, "there is no processor_config.json")


def _check_length(model: Model) -> None:
    """Raises `DoesNotFitError` where the config gives a picture so many tokens that text has no room."""
    try:
        settings = incoming.settings(model.folder / _SETTINGS)
    except (OSError, ValueError):
        return
    length = settings.get("image_seq_length") if isinstance(settings, dict) else None
    if isinstance(length, int):
        incoming.check_room(
            _EACH * length, f"{model.name}: a picture of {length:,} tokens, as {_SETTINGS} says,"
        )


def _prompt(model: Model, processor: Any, marker: str, text: str) -> tuple[str, list[str]]:
    content = [{"type": "image"}, *([{"type": "text", "text": text}] if text else [])]
    for maker in (processor, model.tokenizer):
        if marker not in text and getattr(maker, "chat_template", None):
            chat = [{"role": "user", "content": content}]
            prompt = rendered(maker, chat, model.name, add_generation_prompt=True)
            return prompt, [f"read as a message of a chat; {marker} in the text takes it as it is"]
    return text, []


def _by_itself(processor: Any, opened: Image.Image, text: str) -> dict[str, Any] | None:
    if processor is None:
        return None
    try:
        inputs = dict(processor(images=opened, text=[text], return_tensors="pt"))
    except Exception as error:  # one call of the library, whose tokenizers raise plain exceptions
        if is_out_of_memory(error):
            raise
        return None
    return inputs if "pixel_values" in inputs and inputs["input_ids"].shape[1] > 0 else None


def _processed(
    model: Model, processor: Any, opened: Image.Image, given: dict[str, Any], prompt: str
) -> dict[str, Any]:
    if processor is None:
        return _by_hand(model, given, prompt)
    try:
        return dict(processor(images=opened, text=[prompt], return_tensors="pt"))
    except Exception as error:  # one call of the library, whose tokenizers raise plain exceptions
        if is_out_of_memory(error):
            raise
        raise InputError(f"{model.name}: its processor takes no such text: {one_line(error)}") from error


def _by_hand(model: Model, given: dict[str, Any], prompt: str) -> dict[str, Any]:
    """Inputs without a processor, for a picture whose grid tells how many tokens it is."""
    vision = model.module.config.vision_config
    count = int(given["image_grid_thw"].prod()) // vision.spatial_merge_size**2
    image = model.module.config.image_token_id
    ids: list[int] = []
    for token in model.tokenizer(prompt)["input_ids"]:
        ids += [token] * (count if token == image else 1)
    read = torch.tensor([ids])
    marks = {"mm_token_type_ids": (read == image).long(), "attention_mask": torch.ones_like(read)}
    return {**given, **marks, "input_ids": read}


def _named(model: Model, ids: list[int], prompt: str, grid: Grid | None) -> Tokens:
    """Tokens of the prompt; the picture's are named by patch where their count fits the grid."""
    tokenizer, image = model.tokenizer, model.module.config.image_token_id
    places = [i for i, token in enumerate(ids) if token == image]
    plain = tokens_of(tokenizer, tokenizer(prompt, return_tensors="pt"), (prompt,)).items
    items: list[Token] = []
    for token in plain:
        items += [token] * (len(places) if token.id == image else 1)
    if [token.id for token in items] != ids:
        items = list(tokens_by_text(tokenizer, ids, prompt).items)
    shape = rows_and_columns(places, grid)
    for i, place in enumerate(places):
        name = f"image{i}" if shape is None else f"r{i // shape[1]}c{i % shape[1]}"
        items[place] = Token(image, name, name, None, None)
    follow = bool(places) and places == list(range(places[0], places[-1] + 1))
    stretch = () if shape is None else (Patches(places[0], *shape, () if follow else tuple(places)),)
    return Tokens((prompt,), tuple(items), stretch)


def rows_and_columns(places: list[int], grid: Grid | None) -> tuple[int, int] | None:
    """Rows and columns of the picture's tokens, one for each square of patches; None if they do not fit.

    Tokens must be consecutive, or consecutive within each row, with something between the rows.
    """
    count = len(places)
    if grid is None or not count:
        return None
    side = math.isqrt(grid.rows * grid.columns // count) or 1
    rows, columns = grid.rows // side, grid.columns // side
    whole = grid.rows % side == 0 and grid.columns % side == 0
    breaks = [i for i in range(1, count) if places[i] != places[i - 1] + 1]
    in_rows = not breaks or breaks == list(range(columns, count, columns))
    return (rows, columns) if whole and rows * columns == count and in_rows else None


@dataclass(frozen=True, eq=False, kw_only=True)
class Perceived(Encoded):
    """Model inputs of a picture or a sound, with or without a text.

    `positions` name what the part that reads the picture or the sound reads; `tokens` equal them where the
    model reads nothing else, and else are those of its text, in which a picture may stand as well. `medium`
    is None where the picture cannot be shown as the model saw it.
    """

    positions: Tokens
    medium: Picture | Sound | None

    @property
    def read(self) -> Tokens | None:
        """The tokens, where one of them at least is in the vocabulary, else None."""
        return self.tokens if any(token.id >= 0 for token in self.tokens.items) else None


def sees(model: nn.Module, tower: Sequence[Site]) -> bool:
    """True where one of these attention modules is the first of the picture's or the sound's encoder."""
    readers = (reader_of(model, every_site(tower), name) for name in ("pixel_values", *_SOUNDS))
    first = [reader.first.path for reader in readers if reader is not None]
    return any(site.path in first for site in tower)


def window_names(model: Model, perceived: Perceived, site: Site, size: int) -> list[Tokens] | None:
    """Named tokens of every window in which the layer of `site` reads the picture; None if unknown."""
    reader, picture = reader_of(model.module, model.sites), perceived.medium
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
    """True where models of this config read a picture as part of their text."""
    return getattr(config, "image_token_id", None) is not None


def read_media(
    model: Model,
    *,
    image: str | Path | None = None,
    audio: str | Path | None = None,
    texts: tuple[str, ...] = (),
) -> Perceived:
    """The model's inputs for a picture or a sound, beside `texts` where it reads both.

    Raises `InputError` where the model reads no such thing or the file holds none, `ModelUnavailableError`
    where the checkpoint does not say how the file is to be prepared.
    """
    if image is not None and audio is None:
        return _seen(model, Path(image), texts)
    if audio is not None and image is None:
        return _heard(model, Path(audio), texts)
    raise InputError("give a picture or a sound, one of the two")


def _seen(model: Model, path: Path, texts: tuple[str, ...]) -> Perceived:
    takes = inspect.signature(model.module.forward).parameters
    reader = reader_of(model.module, model.sites)
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
    reader = None if name is None else reader_of(model.module, model.sites, name)
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
    """Inputs of an empty text, for a two-tower model of which only the picture's tower is looked at."""
    inputs = model.tokenizer("", return_tensors="pt")
    if not inputs["input_ids"].shape[1]:
        inputs = model.tokenizer(str(model.tokenizer.unk_token), return_tensors="pt")
    pieces = model.tokenizer.convert_ids_to_tokens(inputs["input_ids"][0].tolist())
    return Encoded(inputs, Tokens((), tuple(position_token(piece, special=True) for piece in pieces)), ())


def _positions(reader: Reader, given: dict[str, Any], grid: Grid | None) -> tuple[Tokens, bool]:
    """Named tokens of the picture's positions, and whether the patches among them are known.

    Pixels that come in patches already are in the order in which the picture was cut.
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
