"""An adapter: small weights that are put into a model after its own, from a folder beside or of their own.

The library would put one in without a word where the package peft is installed, and leave it out without
a word where it is not. Here it is chosen, named and hashed, or refused.
"""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from attnscope.errors import ModelUnavailableError, one_line
from attnscope.incoming import settings
from attnscope.model.source.weight_files import check_head

CONFIG, WEIGHTS, PICKLE = "adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"
OF_TOKENIZER = "tokenizer_config.json"  # beside an adapter that has a tokenizer of its own
NONE = "none"  # what the option calls the model without an adapter


@dataclass(frozen=True)
class Adapter:
    """An adapter in `folder`, called `name`, and the file with its weights."""

    name: str
    folder: Path
    weights: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """All that decides about what it does to a model."""
        return (self.folder / CONFIG, self.weights)

    @property
    def judges(self) -> str | None:
        """What it was trained to tell in the place of words, by peft's name for that; None for words."""
        task = settings(self.folder / CONFIG).get("task_type")
        return task if task in ("SEQ_CLS", "TOKEN_CLS", "QUESTION_ANS") else None

    @property
    def pickled(self) -> bool:
        return self.weights.suffix != ".safetensors"


def has_adapter(folder: Path) -> bool:
    return os.path.isfile(folder / CONFIG)  # also of a name that is too long for any file


def is_adapter_alone(folder: Path) -> bool:
    """Whether there is an adapter in the folder, and no model."""
    return has_adapter(folder) and not (folder / "config.json").is_file()


def base_of(folder: Path, name: str) -> tuple[str, str | None]:
    """The name of the model that an adapter was made for, and its revision, as its config tells them."""
    try:
        stated = settings(folder / CONFIG)
        base, revision = stated["base_model_name_or_path"], stated.get("revision")
        if not isinstance(base, str) or not base.strip() or not isinstance(revision, str | None):
            raise ValueError(f"base_model_name_or_path is {base!r}")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ModelUnavailableError(
            f"{name} holds an adapter and no model, and {CONFIG} does not say of which: {one_line(error)}; "
            f"-m MODEL --adapter {name} does"
        ) from error
    return base, revision


def open_adapter(folder: Path, name: str, *, allow_pickle: bool = False) -> Adapter:
    """The adapter in `folder`; `ModelUnavailableError` where there is none that could be put into a model."""
    if not has_adapter(folder):
        raise ModelUnavailableError(f"no adapter in {name}: expected {CONFIG} and {WEIGHTS}")
    if find_spec("peft") is None:
        raise ModelUnavailableError(
            f"the adapter in {name} needs the package peft, which is not installed: pip install peft puts it "
            "in, --adapter none runs the model without it"
        )
    weights = next((folder / file for file in (WEIGHTS, PICKLE) if (folder / file).is_file()), None)
    if weights is None:
        raise ModelUnavailableError(f"the adapter in {name} has no weights: expected {WEIGHTS}")
    adapter = Adapter(name, folder, weights)
    if adapter.pickled and not allow_pickle:
        raise ModelUnavailableError(
            f"the adapter in {name} has only pickled weights, which can run code: --allow-pickle loads them"
        )
    if not adapter.pickled:
        check_head(weights, name)
    return adapter
