"""What the model reads: texts, numbers, pictures, sounds, and what it goes on to write."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import typer

from attnscope import incoming
from attnscope.cli.lines import Line, check_is_text, fill_in, read_lines
from attnscope.cli.panels import Brief
from attnscope.errors import InputError
from attnscope.session import request
from attnscope.session.request import Chat, read_chat
from attnscope.vocabulary import MASKED_SENTENCE

SparedText = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT",
        help="The text to read; '-' reads it from standard input. Not needed with --image and --audio.",
    ),
    Brief("the text in quotes; - reads standard input"),
]
ArticleText = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT",
        help="The text to read; '-' reads it from standard input. "
        "Default: I was watching the door when [MASK] opened.",
    ),
    Brief("the text in quotes; - reads standard input"),
]
Pair = Annotated[str | None, typer.Option("--pair", metavar="TEXT", help="Second sentence of a pair.")]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="TEXT",
        help="What the decoder of an encoder-decoder reads. Default: what the model writes itself.",
    ),
]
TargetIds = Annotated[
    str | None,
    typer.Option(
        "--target-ids",
        metavar="N,N,...",
        help="The same as token numbers, the decoder's start token among them.",
    ),
]
Truncate = Annotated[bool, typer.Option("--truncate", help="Cut a text that is longer than the model reads.")]
Split = Annotated[
    bool,
    typer.Option(
        "--split",
        help="The words of TEXT, and of --pair, are those between its blanks, as treebanks have them.",
    ),
]
Ids = Annotated[
    str | None,
    typer.Option(
        "--ids",
        metavar="N,N,...",
        help="Read exactly these tokens instead of TEXT: 101,2023,102. Needs no tokenizer.",
    ),
]
Vocab = Annotated[
    Path | None,
    typer.Option(
        "--vocab",
        metavar="FILE",
        help="How the tokens of --ids are spelled: one in a line (vocab.txt), or JSON of numbers by token.",
    ),
]
ChatFile = Annotated[
    Path | None,
    typer.Option(
        "--chat",
        metavar="FILE",
        help="A conversation instead of TEXT, as the model's own chat template writes it: JSON, a list of "
        'messages ({"role": "user", "content": "..."}) or an object with "messages", "tools" and what else '
        "the template knows; '-' reads it from standard input. Its messages are called role:user, "
        "role:assistant#2.",
    ),
]
System = Annotated[
    str | None,
    typer.Option(
        "--system",
        metavar="TEXT",
        help="Read TEXT as a user's message behind this system message, in the model's chat template; '' for "
        "no system message. With --chat the conversation stands behind it.",
    ),
]
Image = Annotated[
    Path | None,
    typer.Option(
        "--image", metavar="FILE", help="A picture to read, alone or beside TEXT, as the model takes it."
    ),
]
Audio = Annotated[
    Path | None, typer.Option("--audio", metavar="FILE", help="A sound to read: wav, flac, ogg or mp3.")
]
Texts = Annotated[
    Path | None,
    typer.Option(
        "--texts",
        metavar="FILE",
        help="Read every line of a file as a text of its own, '-' for standard input; in a .jsonl file each "
        'is {"text": "...", "spans": {"a": "Mary", "b": [9, 13]}}, whose spans are named as field:a. find, '
        "ablate, flow, predict and why answer over all of them; a file whose name has {line} is of each. "
        "Others give one answer after the other, files numbered by line (x-001.png). A line that cannot be "
        "read is told, the others go on, and the exit code is the highest of any line. --json: a record a "
        "line, with `error` where there is no answer, and at last one called `summary`.",
    ),
]
Fill = Annotated[
    Path | None,
    typer.Option(
        "--fill",
        metavar="TABLE",
        help='TEXT is a template, "{a} gave {b} the book", and this .csv file has its fields as columns: a '
        "text for each row, as with --texts. field:a names what stands there.",
    ),
]
Generate = Annotated[
    int | None,
    typer.Option(
        "--generate",
        metavar="N",
        help="Let a decoder go on for N tokens and show the attention of those too, its cache switched on.",
    ),
]


@dataclass(frozen=True)
class Writing(request.Writing):
    """How far the model goes on with the text."""

    PANEL = "Text that the model writes"
    BEYOND = "generating"

    generate: Generate = None


@dataclass(frozen=True)
class Read:
    """What the model reads: a text or a pair, a picture or a sound, and what its decoder reads."""

    PANEL = "What is read"
    BEYOND = "chats, pictures, sounds, many texts"

    text: SparedText = None
    pair: Pair = None
    target: Target = None
    target_ids: TargetIds = None
    truncate: Truncate = False
    split: Split = False
    ids: Ids = None
    vocab: Vocab = None
    image: Image = None
    audio: Audio = None
    texts: Texts = None
    chat: ChatFile = None
    system: System = None
    fill: Fill = None

    def __post_init__(self) -> None:
        check_something(self.text, self.ids, self.image, self.audio, self.texts, self.chat)
        self.check_texts()
        incoming.check_there(self.texts)
        incoming.check_there(self.fill, "table")

    def check_texts(self) -> None:
        """Raises `InputError` where there are many texts and one, or anything else that is read."""
        others = {
            "TEXT": self.text,
            "--ids": self.ids,
            "--chat": self.chat,
            "--image": self.image,
            "--audio": self.audio,
        }
        there = [name for name, value in others.items() if value is not None]
        if self.texts is not None and there:
            raise InputError(f"--texts is all that is read: leave {' and '.join(there)} out")
        if self.fill is None:
            return
        if self.texts is not None:
            raise InputError("--fill fills the fields of TEXT, --texts has whole texts: give one of the two")
        if beside := [name for name in there if name != "TEXT"]:
            raise InputError(f"--fill fills the fields of TEXT: leave {' and '.join(beside)} out")
        if self.text is None:
            raise InputError('--fill fills the fields of TEXT: give one, such as "{a} gave {b} the book"')

    @property
    def source(self) -> Path | None:
        """Where many texts come from; None where there is one."""
        return self.texts or self.fill

    @property
    def media(self) -> list[Path]:
        """The files of the picture or the sound that is read."""
        return [file for file in (self.image, self.audio) if file is not None]

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The texts of the file, read once; none where there is no file."""
        if self.fill is not None:
            return fill_in(given(self.text)[0] or "", self.fill)
        return () if self.texts is None else read_lines(self.texts)

    def inputs(self, writing: Writing = Writing()) -> request.Inputs:
        """Inputs for the session, `-` read from standard input; `InputError` for what is not UTF-8.

        Of many texts none is read yet: what is checked here is the same for all of them.
        """
        text, remarks = given(self.text)
        read = request.Inputs(
            text=MASKED_SENTENCE if self.lines else text,
            pair=None if self.pair is None else decoded(self.pair),
            target=None if self.target is None else decoded(self.target),
            image=self.image,
            audio=self.audio,
            writing=writing,
            truncate=self.truncate,
            split=self.split,
            ids=self.ids,
            vocab=self.vocab,
            target_ids=self.target_ids,
            chat=chat_in(self.chat),
            system=None if self.system is None else decoded(self.system),
            remarks=remarks,
        )
        check_files(self.vocab, self.image, self.audio)
        return read


@dataclass(frozen=True)
class SparedRead(Read):
    """Like `Read`; no text is required, as a command itself says."""

    def __post_init__(self) -> None:
        self.check_texts()
        incoming.check_there(self.texts)
        incoming.check_there(self.fill, "table")


@dataclass(frozen=True)
class ArticleRead(SparedRead):
    """What is read, by default the sentence of the articles."""

    text: ArticleText = None


def check_files(vocab: Path | None, image: Path | None, audio: Path | None) -> None:
    """Raises `InputError` where one is not there, before anything that takes time is imported."""
    incoming.check_there(vocab, "the vocabulary")
    incoming.check_there(image, "picture")
    incoming.check_there(audio, "sound")


def check_something(*read: object) -> None:
    """Raises `InputError` where there is neither a text nor anything that stands in its place."""
    if all(source is None for source in read):
        raise InputError(
            "give a text to read, token numbers with --ids, or a file with --chat, --image or --audio"
        )


def chat_in(file: Path | None) -> Chat | None:
    """The conversation of a file; `InputError` where it is not there or holds none."""
    incoming.check_there(file, "the chat")
    return None if file is None else read_chat(file)


def given(text: str | None) -> tuple[str | None, tuple[str, ...]]:
    """A text argument as it was meant, `-` standing for standard input, and what to tell of how it is read.

    Of standard input one line end at the end is no part of the text. `InputError` for a file's name.
    """
    if text is None:
        return None, ()
    if text != "-":
        check_is_text(text)
        return decoded(text), ()
    raw = incoming.content(text).removeprefix(incoming.BOM)
    ends = len(raw[len(raw.rstrip(b"\r\n")) :].splitlines())
    others = "the other belongs" if ends == 2 else f"the other {ends - 1} belong"
    told = (
        f"standard input ends in {ends} line ends: the last is left out, {others} to the text; "
        "--texts x.jsonl reads a text exactly as it stands"
    )
    return incoming.text(incoming.without_end(raw), "the text"), (told,) if ends > 1 else ()


def decoded(text: str) -> str:
    """`text` as it was meant; `InputError` when its bytes are not UTF-8."""
    try:
        # an argument that Python could not decode holds its bytes as surrogates
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError as error:
        raise InputError("the text is not valid UTF-8") from error
