"""Requests as plain data, checked when made: which model to load, and what it reads.

A device map is `auto`, or a place for each part:

    {"embeddings": "cuda:0", "encoder.layer.0": 1, "encoder.layer.1": "cpu", "pooler": "disk"}

Here it is only parsed and normalised, so that equal maps are equal requests. Whether there are such parts and
such devices is checked when the model is loaded (`attnscope.model.loading.memory`).
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.model.inputs.given import Chat as Chat
from attnscope.model.inputs.given import asked, chat_of
from attnscope.model.inputs.given import read_chat as read_chat
from attnscope.model.source.here import BUNDLED, check_environment
from attnscope.model.source.here import check_logs as check_logs
from attnscope.model.source.here import check_place as check_place
from attnscope.printable import FileWord
from attnscope.process.machine import bytes_of
from attnscope.session import selection
from attnscope.session.option import WHICH, argument, given_of, option, words
from attnscope.vocabulary import DTYPES, KERNELS, MASKED_SENTENCE, WHOLE_SENTENCE

if TYPE_CHECKING:
    from attnscope.model.loaded import Model
    from attnscope.session.prompts import Field, Prompt

AUTO = "auto"
DeviceMap = str | Path | Mapping[str, str | int] | None
Budgets = str | Mapping[str | int, str | int] | None
_FORM = 'auto, or a map such as {"": "cpu", "encoder.layer.0": "disk"}, there or in a file'


Tokens = str | Sequence[int]  # by number: "101,2023", [101, 2023]
File = Path | str
Conversation = Path | str | Chat | Sequence[Mapping[str, Any]] | Mapping[str, Any]
USUAL_KERNEL = "eager"  # the default, but for rows of a long text

PROVEN_HELP = (  # what the options that name a model say
    f"Hub id, local folder, or a bundled model: {BUNDLED}. Default: ATTNSCOPE_MODEL, else bert-base-uncased."
)
NAME = option(
    "--model", "-m", metavar="NAME", under=WHICH,
    help=f"{PROVEN_HELP[:-1]}, else the demo where the hub cannot be reached.",
    brief="demo and its like (attnscope -h), hub id or folder",
)  # fmt: skip
PROVEN_NAME = replace(NAME, help=PROVEN_HELP)
REVISION = option("--revision", metavar="REV", help="Branch, tag or commit of a hub model.")
REMOTE_CODE = option("--trust-remote-code", help="Run code that a model brings with it.")
PICKLE = option("--allow-pickle", help="Load pickled weights, which can run code.")
DEVICE = option("--device", metavar="auto|cpu|cuda|cuda:N|mps", help="Where to run.")
DTYPE = option(
    "--dtype", metavar="float32|bfloat16|float16|float64|auto",
    help="Arithmetic of the model; auto is the checkpoint's own.",
)  # fmt: skip
KERNEL = option(
    "--attn", metavar="eager|sdpa|flex_attention|flash_attention_2",
    help="The kernel that the model runs, which is then held against the recomputation. Default: "
    "eager, and for rows of more than 1,024 tokens the fused one.",
)  # fmt: skip
IGNORE_UNREAD = option(
    "--ignore-unread",
    help="Run without weights inside attention that are stored and that the model has no place for.",
)
ADAPTER = option(
    "--adapter", metavar="FOLDER|none",
    help="Put this adapter into the model (needs the package peft), or none where one is beside its "
    "weights. Default: the one beside them, if any.",
)  # fmt: skip
DEVICE_MAP = option(
    "--device-map", metavar="auto|FILE|JSON",
    help="Spread a model that one device does not hold over devices, memory and disk (needs the package "
    "accelerate): auto, or which part goes where.",
)  # fmt: skip
MAX_MEMORY = option(
    "--max-memory", metavar="DEVICE=SIZE,...",
    help="What --device-map auto may take: cuda:0=10GB,cpu=30GB. Default: nine tenths of what is free.",
)  # fmt: skip
TOKENIZER = option(
    "--tokenizer", metavar="NAME",
    help="The model or folder whose tokenizer is read, for a checkpoint that comes without one.",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Loading:
    """Options of loading and running a model.

    `device_map` and `max_memory` are held as JSON, whatever they were given as.
    """

    device: Annotated[str, DEVICE] = "auto"
    dtype: Annotated[str, DTYPE] = "float32"
    revision: Annotated[str | None, REVISION] = None
    trust_remote_code: Annotated[bool, REMOTE_CODE] = False
    allow_pickle: Annotated[bool, PICKLE] = False
    attn: Annotated[str | None, KERNEL] = None
    ignore_unread: Annotated[bool, IGNORE_UNREAD] = False
    adapter: Annotated[str | None, ADAPTER] = None
    device_map: Annotated[DeviceMap, DEVICE_MAP] = None
    max_memory: Annotated[Budgets, MAX_MEMORY] = None
    tokenizer: Annotated[str | None, TOKENIZER] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "device_map", device_map(self.device_map))
        object.__setattr__(self, "max_memory", max_memory(self.max_memory))
        if self.device_map is not None and self.device != "auto":
            raise InputError("--device and --device-map: give one of the two")
        if self.max_memory is not None and self.device_map != AUTO:
            raise InputError("--max-memory goes with --device-map auto")
        check_environment()  # before transformers is imported, which it may break
        if self.dtype not in DTYPES:
            raise InputError(f"unknown dtype '{self.dtype}': {', '.join(DTYPES)}")
        if self.attn is not None and self.attn not in KERNELS:
            raise InputError(f"unknown attention kernel '{self.attn}': {', '.join(KERNELS)}")

    @property
    def loading(self) -> dict[str, Any]:
        """Keyword arguments for loading a checkpoint."""
        return {
            "device": self.device,
            "dtype": self.dtype,
            "remote_code": self.trust_remote_code,
            "attention": self.attn or USUAL_KERNEL,
            "ignore_unread": self.ignore_unread,
            "device_map": self.device_map,
            "max_memory": self.max_memory,
        }


@dataclass(frozen=True)
class ModelRequest(Loading):
    """A request for a model: its name and the options of loading it."""

    PANEL: ClassVar[str] = "Which model, and how it runs"
    BEYOND: ClassVar[str] = "devices, kernels"

    name: Annotated[str | None, NAME] = None

    stand_in: ClassVar[bool] = True  # for a model that nobody named, where the hub cannot be reached

    def __post_init__(self) -> None:
        super().__post_init__()
        check_place(self.name)

    def of_other(self, name: str) -> Self:
        """Copy for the model called `name`, without revision and adapter."""
        return replace(self, name=name, revision=None, adapter=None)


@dataclass(frozen=True)
class ProvenModel(ModelRequest):
    """A request without the bundled stand-in, for statements about one model."""

    stand_in = False

    name: Annotated[str | None, PROVEN_NAME] = None


TEXT = argument(
    "TEXT", brief="the text in quotes; - reads standard input",
    help="The text to read; '-' reads it from standard input. Not needed with --image and --audio.",
)  # fmt: skip
PAIR = option("--pair", metavar="TEXT", help="Second sentence of a pair.")
TARGET = option(
    "--target", metavar="TEXT",
    help="What the decoder of an encoder-decoder reads. Default: what the model writes itself.",
)  # fmt: skip
TARGET_IDS = option(
    "--target-ids", metavar="N,N,...",
    help="The same as token numbers, the decoder's start token among them.",
)  # fmt: skip
TRUNCATE = option("--truncate", help="Cut a text that is longer than the model reads.")
SPLIT = option(
    "--split", help="The words of TEXT, and of --pair, are those between its blanks, as treebanks have them."
)
IDS = option(
    "--ids", metavar="N,N,...",
    help="Read exactly these tokens instead of TEXT: 101,2023,102. Needs no tokenizer.",
)  # fmt: skip
VOCAB = option(
    "--vocab", metavar="FILE",
    help="How the tokens of --ids are spelled: one in a line (vocab.txt), or JSON of numbers by token.",
)  # fmt: skip
IMAGE = option(
    "--image", metavar="FILE", help="A picture to read, alone or beside TEXT, as the model takes it."
)
AUDIO = option("--audio", metavar="FILE", help="A sound to read: wav, flac, ogg or mp3.")
CHAT = option(
    "--chat", metavar="FILE",
    help="A conversation instead of TEXT, as the model's own chat template writes it: JSON, a list of "
    'messages ({"role": "user", "content": "..."}) or an object with "messages", "tools" and what else '
    "the template knows; '-' reads it from standard input. Its messages are called role:user, "
    "role:assistant#2.",
)  # fmt: skip
SYSTEM = option(
    "--system", metavar="TEXT",
    help="Read TEXT as a user's message behind this system message, in the model's chat template; '' for "
    "no system message. With --chat the conversation stands behind it.",
)  # fmt: skip
GENERATE = option(
    "--generate", metavar="N",
    help="Let a decoder go on for N tokens and show the attention of those too, its cache switched on.",
)  # fmt: skip


@dataclass(frozen=True)
class ReadOptions:
    """The model's inputs as command-line options; a chat file is read at once, others when needed."""

    text: Annotated[str | None, TEXT] = None
    _: KW_ONLY
    pair: Annotated[str | None, PAIR] = None
    target: Annotated[str | None, TARGET] = None
    target_ids: Annotated[Tokens | None, TARGET_IDS] = None
    truncate: Annotated[bool, TRUNCATE] = False
    split: Annotated[bool, SPLIT] = False
    ids: Annotated[Tokens | None, IDS] = None
    vocab: Annotated[File | None, VOCAB] = None
    image: Annotated[File | None, IMAGE] = None
    audio: Annotated[File | None, AUDIO] = None
    chat: Annotated[Conversation | None, CHAT] = None
    system: Annotated[str | None, SYSTEM] = None
    generate: Annotated[int | None, GENERATE] = None

    def __post_init__(self) -> None:
        for name, value in self._held().items():
            object.__setattr__(self, name, value)
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

    def _held(self) -> dict[str, Any]:
        files = {name: getattr(self, name) for name in ("vocab", "image", "audio")}
        held: dict[str, Any] = {name: Path(file) for name, file in files.items() if file is not None}
        if (chat := self.chat) is not None:
            held["chat"] = read_chat(Path(chat)) if isinstance(chat, str | Path) else chat_of(chat)
        return held

    def _check_numbers(self) -> None:
        if self.ids is not None:
            if others := given_of(self, ("TEXT", "--pair", "--image", "--audio", "--split")):
                raise InputError(f"--ids is all that is read: leave {' and '.join(others)} out")
            selection.parse_tokens(self.ids, "--ids")
        if self.generate is not None and self.generate < 1:
            raise InputError(f"--generate is {self.generate}: it takes at least 1 token")
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
        others = ("--ids", "--pair", "--image", "--audio", "--split")
        if there := given_of(self, others if self.chat is None else ("TEXT", *others)):
            reads = "is all that is read" if self.chat is not None else "is the system message of a chat"
            raise InputError(f"{option} {reads}: leave {' and '.join(there)} out")
        if self.chat is None and self.text is None:
            raise InputError("--system goes with the user's message, TEXT, or with --chat")
        if self.given_chat is not None and self.system is not None:
            self.given_chat.behind(self.system)

    @property
    def given_target(self) -> bool:
        """True where the decoder's text is given."""
        return self.target is not None or self.target_ids is not None

    @property
    def goes_on(self) -> bool:
        """True where the model generates behind the text."""
        return self.generate is not None

    @property
    def sensed(self) -> bool:
        """True where a picture or a sound is read."""
        return self.image is not None or self.audio is not None

    @property
    def given_chat(self) -> Chat | None:
        """The conversation that was given, or None."""
        return None if self.chat is None else chat_of(self.chat)


@dataclass(frozen=True)
class InputOptions(ReadOptions):
    """The model's inputs: a text or a pair, a picture or a sound, and how many tokens to generate.

    `words` stand in place of a text; `split` cuts the text at its blanks. `fields` are named parts of it.
    """

    _: KW_ONLY
    words: Sequence[str] | None = None
    fields: "Mapping[str, str | tuple[int, int] | Field] | None" = None

    def _held(self) -> dict[str, Any]:
        held = super()._held()
        if self.words is not None and not self.split:
            if self.text is not None or isinstance(self.words, str) or not self.words:
                raise InputError("words are a list of strings, at least one, in place of a text")
            held |= {"words": tuple(self.words), "text": " ".join(self.words), "split": True}
        if self.fields:
            from attnscope.session.prompts import SPANS, TEXT, prompt_of

            held["fields"] = prompt_of({TEXT: self.text, SPANS: self.fields}).fields
        return held


@dataclass(frozen=True, kw_only=True)
class Inputs(InputOptions):
    """The model's inputs, with fields that only this program sets.

    `answer` is the answer that a question assumes of the model. `remarks` are notices about the text's
    source.
    """

    answer: str | None = None
    remarks: tuple[str, ...] = ()

    @property
    def conversation(self) -> Chat | None:
        """The conversation for the chat template, where one is used, else None."""
        if self.system is None:
            return self.given_chat
        return (self.given_chat or asked(self.text or "")).behind(self.system)

    @property
    def prompt(self) -> "Prompt":
        """The text with its named parts, as a `Prompt`."""
        from attnscope.session.prompts import Prompt

        parts: Any = self.fields or {}
        return Prompt(self.text or "", parts)

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """The token ids that are read, where ids are given, else None."""
        return None if self.ids is None else selection.parse_tokens(self.ids, "--ids")

    @property
    def target_numbers(self) -> tuple[int, ...] | None:
        """The decoder's token ids, where ids are given, else None."""
        return None if self.target_ids is None else selection.parse_tokens(self.target_ids, "--target-ids")

    @property
    def given_words(self) -> "tuple[tuple[str, ...], ...] | None":
        """Words of the text, and of the second of a pair, where they are given, else None."""
        if self.text is None or not (self.split or self.words):
            return None
        first = tuple(self.text.split() if self.words is None else self.words)
        return (first,) if self.pair is None else (first, tuple(self.pair.split()))

    @property
    def paired(self) -> bool:
        return self.pair is not None

    def read_again(self, model: "Model") -> tuple[str, ...] | None:
        """Command-line words that read the same inputs, with the default text where none was given.

        None where no words can: words with blanks in them, a conversation that stands in no file.
        """
        chat = self.given_chat
        if any(" " in word for word in self.words or ()) or (chat is not None and chat.file is None):
            return None
        given = any(each is not None for each in (self.text, self.ids, chat, self.image, self.audio))
        return words(self if given else replace(self, text=self.texts(model)[0]))

    def texts(self, model: "Model") -> tuple[str, ...]:
        """The text or the pair for `model`, by default the articles' text; none for a chat."""
        if self.chat is not None:
            return ()
        if self.text is None and not self.sensed:
            masked = model.tokenizer is None or model.tokenizer.mask_token is not None
            return (MASKED_SENTENCE if masked else WHOLE_SENTENCE,)
        return tuple(text for text in (self.text, self.pair) if text is not None)


def check_something(*read: object) -> None:
    """Raises `InputError` unless a text or another input is given."""
    if all(source is None for source in read):
        raise InputError(
            "give a text to read, token numbers with --ids, or a file with --chat, --image or --audio"
        )


def digests(read: Iterable[str] | None) -> dict[str, str]:
    """SHA-256 of each existing file among these command-line words, by its name."""
    files = (each for each in read or () if isinstance(each, FileWord) and os.path.isfile(each))
    return {each.stored: incoming.sha256(each) for each in files}


def device_map(written: DeviceMap) -> str | None:
    """A device map as JSON, or `auto`; `InputError` for anything else."""
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
    """Bytes for each device as JSON; `InputError` for anything else."""
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
