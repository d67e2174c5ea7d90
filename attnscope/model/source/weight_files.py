"""Headers of weight files: names, types and shapes of the stored weights; and PEFT adapters.

An adapter holds small weights that are put into a model after its own, from the model's folder or one of its
own. The library would put one in silently where the package peft is installed, and silently leave it out
where it is not. Here it is chosen, named and hashed, or refused.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from attnscope.errors import ModelUnavailableError, one_line
from attnscope.incoming import settings

FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
CONFIG, WEIGHTS, PICKLE = "adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"
OF_TOKENIZER = "tokenizer_config.json"  # beside an adapter that has a tokenizer of its own
NONE = "none"  # value of --adapter for no adapter


def check_head(file: Path, name: str) -> None:
    """Refuse a safetensors file of model `name` that is truncated, corrupt or something else."""
    try:
        with safe_open(file, framework="np"):
            pass
    except (SafetensorError, OSError) as error:
        raise ModelUnavailableError(
            f"{name}: {file.name} is truncated or corrupt: {one_line(error)}"
        ) from error


def types(files: Iterable[Path]) -> dict[str, str]:
    """The stored number type of each weight in sound safetensors files: `F32`, `F8_E4M3`, `I8`."""
    return {name: entry["dtype"] for file in files for name, entry in _head(file).items()}


def shapes(files: Iterable[Path]) -> dict[str, tuple[int, ...]]:
    """The shape of each weight in sound safetensors files."""
    return {name: tuple(entry["shape"]) for file in files for name, entry in _head(file).items()}


def precision(files: Iterable[Path]) -> str | None:
    """The torch name of the floating type with the most bytes; None where no weight is floating."""
    taken: Counter[str] = Counter()
    for file in files:
        for entry in _head(file).values():
            start, end = entry["data_offsets"]
            taken[entry["dtype"]] += end - start
    floats = [kind for kind, _ in taken.most_common() if kind in FLOATS]
    return FLOATS[floats[0]] if floats else None


def is_float(kind: str) -> bool:
    """True for a number type that needs no scale beside it."""
    return kind in FLOATS


def _head(file: Path) -> dict[str, dict[str, Any]]:
    """The table at the start of a safetensors file: eight bytes of length, then JSON."""
    with file.open("rb") as stream:
        table: dict[str, Any] = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
    table.pop("__metadata__", None)
    return table


@dataclass(frozen=True)
class Adapter:
    """A PEFT adapter: its name, its folder and its weight file."""

    name: str
    folder: Path
    weights: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """The adapter's config and weights: all files that decide what it does to a model."""
        return (self.folder / CONFIG, self.weights)

    @property
    def judges(self) -> str | None:
        """PEFT's name of the classification task that it was trained for; None for words."""
        task = settings(self.folder / CONFIG).get("task_type")
        return task if task in ("SEQ_CLS", "TOKEN_CLS", "QUESTION_ANS") else None

    @property
    def pickled(self) -> bool:
        return self.weights.suffix != ".safetensors"


def has_adapter(folder: Path) -> bool:
    return os.path.isfile(folder / CONFIG)  # False, no error, for a name too long for a file


def is_adapter_alone(folder: Path) -> bool:
    """True where the folder holds an adapter and no model."""
    return has_adapter(folder) and not (folder / "config.json").is_file()


def base_of(folder: Path, name: str) -> tuple[str, str | None]:
    """Name and revision of the model that an adapter was made for, as its config gives them."""
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
    """The adapter in `folder`; `ModelUnavailableError` where there is none that can be loaded."""
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
