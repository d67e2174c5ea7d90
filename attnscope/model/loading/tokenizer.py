"""A checkpoint's own tokenizer: its files looked at, read by the library, and put behind one door."""

import inspect
from pathlib import Path
from typing import Any

from torch import nn
from transformers import AutoTokenizer

from attnscope.errors import ModelUnavailableError
from attnscope.model.inputs.numbered import Unreadable
from attnscope.model.inputs.tokenizer import REMEDY, Tokenizer
from attnscope.model.loading.classes import needs_code
from attnscope.model.loading.tokenizer_file import FILE, check_tokenizer_file
from attnscope.model.source.foreign import calling


def tokenizer_for(
    model_class: type[nn.Module], folder: Path, name: str, remote_code: bool, words: bool = True
) -> Any:
    """The tokenizer, which must be there where the model is to read `words`; else None is as good.

    Where that is not known yet, one that cannot be read says so when it is asked for anything.
    """
    try:
        return open_tokenizer(folder, name, remote_code)
    except ModelUnavailableError as error:
        takes = inspect.signature(model_class.forward).parameters
        if {"pixel_values", "input_features", "input_values"} & takes.keys() and "input_ids" not in takes:
            return Unreadable(error) if "decoder_input_ids" in takes else None
        refusal = ModelUnavailableError(f"{error}; token numbers need none (--ids)")
        if not words:
            return Unreadable(refusal)
        raise refusal from error


def open_tokenizer(folder: Path, name: str, remote_code: bool = False) -> Tokenizer:
    """The tokenizer of the model `name`; `ModelUnavailableError` where `folder` has none that is sound."""
    check_tokenizer_file(folder, name)
    with calling(f"{name}: cannot read the tokenizer", REMEDY):
        try:
            own = AutoTokenizer.from_pretrained(folder, trust_remote_code=remote_code)
        except ValueError as error:
            if "trust_remote_code" in str(error):
                raise needs_code(name) from error
            raise
    _check(own, folder, name)
    return Tokenizer(own, name)


def _check(own: Any, folder: Path, name: str) -> None:
    """Without files the library makes a tokenizer that reads all as unknown."""
    cannot = f"{name}: cannot read the tokenizer"
    if not isinstance(own.model_max_length, int | float):
        raise ModelUnavailableError(f"{cannot}: model_max_length is '{own.model_max_length}', not a number")
    files = set(own.vocab_files_names.values()) | ({FILE} if own.is_fast else set())
    if own.vocab_files_names and not any((folder / file).is_file() for file in files):
        raise ModelUnavailableError(f"{cannot}: there is no {' or '.join(sorted(files))}")
