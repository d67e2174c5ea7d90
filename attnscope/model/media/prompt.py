"""A picture among words: the prompt of a model that reads a picture as part of its text, token by token.

The checkpoint's own processor puts the picture's tokens in place of a marker in the prompt. A prompt
without the marker becomes a message of a chat where the checkpoint has a template for that, else the
picture is put in front of it.
"""

import math
from typing import Any

import torch
from PIL import Image
from transformers import AutoProcessor

from attnscope import incoming
from attnscope.errors import InputError, ModelUnavailableError, is_out_of_memory, one_line
from attnscope.model.inputs.rendered import rendered
from attnscope.model.inputs.target import tokens_by_text
from attnscope.model.inputs.text import tokens_of
from attnscope.model.loaded import Model
from attnscope.model.media.patches import Grid
from attnscope.tokens import Patches, Token, Tokens

_SETTINGS = "processor_config.json"
_EACH = 64  # bytes of a token's mark in the text that stands for a picture, at most


def picture_in_text(
    model: Model, opened: Image.Image, given: dict[str, Any], text: str, grid: Grid | None
) -> tuple[dict[str, Any], Tokens, list[str]]:
    """Inputs, tokens and notices for `text` with the picture in it, which the model reads as `grid`.

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
    """Raises `DoesNotFitError` where a picture is said to be so many tokens that their text has no room."""
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
    """The inputs where the processor cannot be made, if the picture itself says how many tokens it is."""
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
    """The tokens of the prompt; those of the picture by their patch where they are one each, in a row."""
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
    """Rows and columns of tokens that each stand for a square of the grid's patches, if they can.

    They follow one another, or every row does, with something between the rows.
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
