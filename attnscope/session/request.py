"""What is asked for, as plain data, checked when it is made: which model, and what it reads.

Where the parts of the model are to go is `auto`, or a place for each part:

    {"embeddings": "cuda:0", "encoder.layer.0": 1, "encoder.layer.1": "cpu", "pooler": "disk"}

Here it is only read, and written in one way, so that the same map is the same request. Whether there are such
parts and such devices is seen when the model is loaded (`attnscope.model.loading.placing`).
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.model.inputs.chat import Chat as Chat
from attnscope.model.inputs.chat import asked
from attnscope.model.inputs.chat import read_chat as read_chat
from attnscope.model.source.here import BUNDLED, check_environment
from attnscope.model.source.here import check_logs as check_logs
from attnscope.model.source.here import check_place as check_place
from attnscope.process.machine import bytes_of
from attnscope.session import selection
from attnscope.vocabulary import DTYPES, KERNELS, MASKED_SENTENCE, WHOLE_SENTENCE

if TYPE_CHECKING:
    from attnscope.model.loaded import Model
    from attnscope.session.prompts import Field, Prompt

AUTO = "auto"
DeviceMap = str | Path | Mapping[str, str | int] | None
Budgets = str | Mapping[str | int, str | int] | None
_FORM = 'auto, or a map such as {"": "cpu", "encoder.layer.0": "disk"}, there or in a file'


Tokens = str | Sequence[int]  # by number: "101,2023", [101, 2023]
PROVEN_HELP = (  # what the options that name a model say
    f"Hub id, local folder, or a bundled model: {BUNDLED}. Default: ATTNSCOPE_MODEL, else bert-base-uncased."
)
MODEL_HELP = f"{PROVEN_HELP[:-1]}, else the demo where the hub cannot be reached."
USUAL_KERNEL = "eager"  # where no other is asked for, but for rows of a long text


@dataclass(frozen=True)
class ModelRequest:
    """Which model to load, and how: as the options of the same names.

    `device_map` and `max_memory` are held as JSON, whatever they were given as.
    """

    model: str | None = None
    device: str = "auto"
    dtype: str = "float32"
    revision: str | None = None
    trust_remote_code: bool = False
    allow_pickle: bool = False
    attention: str | None = None
    ignore_unread: bool = False
    adapter: str | None = None
    device_map: Any = None
    max_memory: Any = None
    tokenizer: str | None = None

    stand_in: ClassVar[bool] = True  # for a model that nobody named, where the hub cannot be reached

    def __post_init__(self) -> None:
        object.__setattr__(self, "device_map", device_map(self.device_map))
        object.__setattr__(self, "max_memory", max_memory(self.max_memory))
        if self.device_map is not None and self.device != "auto":
            raise InputError("--device and --device-map: give one of the two")
        if self.max_memory is not None and self.device_map != AUTO:
            raise InputError("--max-memory goes with --device-map auto")
        check_environment()  # before the library is imported, which would trip over it
        if self.dtype not in DTYPES:
            raise InputError(f"unknown dtype '{self.dtype}': {', '.join(DTYPES)}")
        if self.attention is not None and self.attention not in KERNELS:
            raise InputError(f"unknown attention kernel '{self.attention}': {', '.join(KERNELS)}")

    @property
    def loading(self) -> dict[str, Any]:
        """What loading a checkpoint that was found needs to know."""
        return {
            "device": self.device,
            "dtype": self.dtype,
            "remote_code": self.trust_remote_code,
            "attention": self.attention or USUAL_KERNEL,
            "ignore_unread": self.ignore_unread,
            "device_map": self.device_map,
            "max_memory": self.max_memory,
        }


@dataclass(frozen=True)
class ProvenModel(ModelRequest):
    """A request for what is said of a model, and of no other one in its place."""

    stand_in = False


@dataclass(frozen=True)
class Writing:
    """How many tokens the model goes on with, the likeliest each time; None: it does not."""

    generate: int | None = None

    def __post_init__(self) -> None:
        if self.generate is not None and self.generate < 1:
            raise InputError(f"--generate is {self.generate}: it takes at least 1 token")


@dataclass(frozen=True)
class Inputs:
    """What the model reads: a text or a pair, a picture or a sound, and how far it goes on by itself.

    `target` is what the decoder beside an encoder reads (None: what the model writes itself). With `split`
    the words of a text are those between its blanks, unless `words` are given. In place of a text stand
    `ids`, and of a target `target_ids`: exactly these tokens, spelled as in the file `vocab`, or a `chat`.
    With `system`, which may be empty, the text is the user's message of a chat behind that. Without any
    text, picture or sound it is the sentence of the articles. `fields` are parts of the text that have names
    of their own. `answer` is what the model is taken to have answered, where it is asked about that.
    `remarks` are what to tell of how it came in.
    """

    text: str | None = None
    pair: str | None = None
    target: str | None = None
    image: Path | None = None
    audio: Path | None = None
    writing: Writing = Writing()
    truncate: bool = False
    split: bool = False
    words: tuple[str, ...] | None = None
    ids: Tokens | None = None
    vocab: Path | None = None
    target_ids: Tokens | None = None
    chat: Chat | None = None
    system: str | None = None
    fields: "Mapping[str, Field]" = field(default_factory=dict)
    answer: str | None = None
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_chat()
        if self.split and (self.text is None or self.sensed):
            raise InputError(
                "--split is about the words of a text alone: give TEXT, no --image and no --audio"
            )
        if self.image is not None and self.audio is not None:
            raise InputError("--image and --audio: give one of the two")
        if self.text is None and self.pair is not None:
            raise InputError("--pair is a second text: there is no first one, leave --pair out")
        if self.given_target and self.goes_on:
            raise InputError(
                "--target is what the decoder reads, --generate has the model write it: choose one"
            )
        if self.goes_on and self.sensed:
            raise InputError("--generate goes on with a text alone: leave --image and --audio out")

    def _check_numbers(self) -> None:
        texts = {
            "TEXT": self.text,
            "--pair": self.pair,
            "--image": self.image,
            "--audio": self.audio,
            "--split": self.split or None,
        }
        if self.ids is not None:
            if others := [name for name, value in texts.items() if value is not None]:
                raise InputError(f"--ids is all that is read: leave {' and '.join(others)} out")
            selection.parse_tokens(self.ids, "--ids")
        if self.vocab is not None and self.ids is None:
            raise InputError("--vocab says how the tokens of --ids are spelled: give these")
        if self.target_ids is not None:
            if self.target is not None:
                raise InputError("--target and --target-ids: give one of the two")
            selection.parse_tokens(self.target_ids, "--target-ids")

    def _check_chat(self) -> None:
        if self.chat is None and self.system is None:
            return
        option = "--system" if self.chat is None else "--chat"
        others = {
            "TEXT": self.text if self.chat is not None else None,
            "--ids": self.ids,
            "--pair": self.pair,
            "--image": self.image,
            "--audio": self.audio,
            "--split": self.split or None,
        }
        if there := [name for name, value in others.items() if value is not None]:
            reads = "is all that is read" if self.chat is not None else "is the system message of a chat"
            raise InputError(f"{option} {reads}: leave {' and '.join(there)} out")
        if self.chat is None and self.text is None:
            raise InputError("--system goes with the user's message, TEXT, or with --chat")
        if self.chat is not None and self.system is not None:
            self.chat.behind(self.system)

    @property
    def conversation(self) -> Chat | None:
        """What a chat template is to write, where one is asked for."""
        if self.system is None:
            return self.chat
        return (self.chat or asked(self.text or "")).behind(self.system)

    @property
    def prompt(self) -> "Prompt":
        """The text with its fields."""
        from attnscope.session.prompts import Prompt

        return Prompt(self.text or "", self.fields)

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """The tokens that are read, where they are given by number."""
        return None if self.ids is None else selection.parse_tokens(self.ids, "--ids")

    @property
    def target_numbers(self) -> tuple[int, ...] | None:
        """The tokens that the decoder reads, where they are given by number."""
        return None if self.target_ids is None else selection.parse_tokens(self.target_ids, "--target-ids")

    @property
    def given_target(self) -> bool:
        """Whether it is said what the decoder reads."""
        return self.target is not None or self.target_ids is not None

    @property
    def given_words(self) -> "tuple[tuple[str, ...], ...] | None":
        """The words of the text, and of the second of a pair, where they are given."""
        if self.text is None or not (self.split or self.words):
            return None
        first = tuple(self.text.split()) if self.words is None else self.words
        return (first,) if self.pair is None else (first, tuple(self.pair.split()))

    @property
    def goes_on(self) -> bool:
        """Whether the model writes on behind the text."""
        return self.writing.generate is not None

    @property
    def sensed(self) -> bool:
        """Whether there is something to read that is no text."""
        return self.image is not None or self.audio is not None

    @property
    def paired(self) -> bool:
        return self.pair is not None

    def texts(self, model: "Model") -> tuple[str, ...]:
        """The text or the two of a pair, as `model` can read them; none beside a picture or a sound."""
        if self.chat is not None:
            return ()
        if self.text is None and not self.sensed:
            masked = model.tokenizer is None or model.tokenizer.mask_token is not None
            return (MASKED_SENTENCE if masked else WHOLE_SENTENCE,)
        return tuple(text for text in (self.text, self.pair) if text is not None)


def device_map(written: DeviceMap) -> str | None:
    """`auto`, or the map as JSON; `InputError` for what is neither."""
    if written is None or written == AUTO:
        return written
    parts = dict(written) if isinstance(written, Mapping) else _read(str(written))
    if not parts:
        raise InputError(f"--device-map names no part of the model: it takes {_FORM}")
    for part, place in parts.items():
        if not isinstance(part, str) or isinstance(place, bool) or not isinstance(place, str | int):
            shown = json.dumps(place, default=str)
            raise InputError(f"--device-map: '{part}' goes to {shown}, which is no device")
    return json.dumps(parts)


def max_memory(written: Budgets) -> str | None:
    """How much each device may be given, in bytes, as JSON; `InputError` for what is no such thing."""
    if written is None:
        return None
    pairs: list[tuple[Any, Any]]
    if not isinstance(written, str):
        pairs = list(written.items())
    elif written.startswith("{"):
        pairs = list(_object(written, "--max-memory").items())
    else:
        pairs = [part.partition("=")[::2] for part in written.split(",")]
    budgets = {}
    for place, size in pairs:
        taken = size if isinstance(size, int) else bytes_of(str(size).strip())
        if not str(place).strip() or taken is None or taken < 0:
            raise InputError(f"--max-memory is '{written}': it takes cuda:0=10GB,cpu=30GB")
        budgets[str(place).strip()] = taken
    return json.dumps(budgets)


def _read(written: str) -> dict[str, Any]:
    if written.lstrip().startswith("{"):
        return _object(written, "--device-map")
    try:
        content = incoming.content(os.path.expanduser(written), "--device-map")
    except InputError as error:
        raise InputError(f"{error}; it takes {_FORM}") from error
    return _object(content, f"--device-map '{written}'")


def _object(content: str | bytes, where: str) -> dict[str, Any]:
    parts = incoming.parsed(content, where, object_pairs_hook=_once)
    if not isinstance(parts, dict):
        raise InputError(f"{where} is no map of parts to devices: it takes {_FORM}")
    for part in parts:
        incoming.check_name(part, where)
    return parts


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise ValueError(f"'{twice[0]}' stands there twice")
    return dict(pairs)
