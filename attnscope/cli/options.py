"""Options that many commands share: what the model reads, and where and how a result is written."""

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.printable import printable, word
from attnscope.render.look import DPI, USUAL, Look
from attnscope.session.option import OUT, SHOWN, given_of, option
from attnscope.session.prompts import Line, fill_in, read_lines
from attnscope.session.question import HEAD, LAYER
from attnscope.session.request import GENERATE, TEXT, File, InputOptions, Inputs, check_something
from attnscope.vocabulary import MASKED_SENTENCE

if TYPE_CHECKING:
    from attnscope.results import HeadWeights


ARTICLE_TEXT = replace(
    TEXT,
    help="The text to read; '-' reads it from standard input. "
    "Default: I was watching the door when [MASK] opened.",
)
TEXTS = option(
    "--texts", metavar="FILE",
    help="Read every line of a file as a text of its own, '-' for standard input; in a .jsonl file each is "
    '{"text": "...", "spans": {"a": "Mary", "b": [9, 13]}}, whose spans are named as field:a. find, ablate, '
    "flow, predict and why answer over all of them; a file whose name has {line} is of each. Others give "
    "one answer after the other, files numbered by line (x-001.png). A line that cannot be read is told, "
    "the others go on, and the exit code is the highest of any line. --json: a record a line, with `error` "
    "where there is no answer, and at last one called `summary`.",
)  # fmt: skip
FILL = option(
    "--fill", metavar="TABLE",
    help='TEXT is a template, "{a} gave {b} the book", and this .csv file has its fields as columns: a text '
    "for each row, as with --texts. field:a names what stands there.",
)  # fmt: skip


@dataclass(frozen=True)
class Writing:
    """Option: the number of tokens that the model generates."""

    PANEL = "Text that the model writes"
    BEYOND = "generating"

    generate: Annotated[int | None, GENERATE] = None


@dataclass(frozen=True, kw_only=True)
class Read(InputOptions):
    """Options for the input: one text, picture or sound, or many texts from a file."""

    PANEL = "What is read"
    BEYOND = "chats, pictures, sounds, many texts"

    generate: Annotated[int | None, GENERATE] = field(default=None, init=False)
    texts: Annotated[Path | None, TEXTS] = None
    fill: Annotated[Path | None, FILL] = None

    SPARED: ClassVar[bool] = False  # whether a command says itself what may be left out

    def __post_init__(self) -> None:
        if not self.SPARED:
            check_something(self.text, self.ids, self.image, self.audio, self.texts, self.chat)
        self.check_texts()
        incoming.check_there(self.texts)
        incoming.check_there(self.fill, "table")

    def check_texts(self) -> None:
        """Raise `InputError` where many texts are combined with another input, or --fill has no template."""
        there = given_of(self, ("TEXT", "--ids", "--chat", "--image", "--audio"))
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
        """The file of many texts (--texts or --fill), or None for one text."""
        return self.texts or self.fill

    @property
    def media(self) -> list[Path]:
        """The picture and sound files that are read."""
        return [Path(file) for file in (self.image, self.audio) if file is not None]

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The texts of the file, read once; empty where there is no file."""
        if self.fill is not None:
            return fill_in(given(self.text)[0] or "", self.fill)
        return () if self.texts is None else read_lines(self.texts)

    def inputs(self, writing: Writing = Writing()) -> Inputs:
        """Inputs for the session, `-` read from standard input; `InputError` for bytes that are not UTF-8.

        The lines of many texts are not read here: only what they have in common is checked.
        """
        text, remarks = given(self.text)
        meant: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(InputOptions)}
        for name in ("pair", "target", "system"):
            meant[name] = None if meant[name] is None else incoming.argument(meant[name])
        meant |= vars(writing) | {"text": MASKED_SENTENCE if self.lines else text}
        read = Inputs(**meant, remarks=remarks)
        check_files(self.vocab, self.image, self.audio)
        return read


@dataclass(frozen=True)
class SparedRead(Read):
    """Like `Read`; no text is required."""

    SPARED = True


@dataclass(frozen=True)
class ArticleRead(SparedRead):
    """Like `SparedRead`; the text defaults to the example sentence of the articles."""

    text: Annotated[str | None, ARTICLE_TEXT] = None


def check_files(vocab: File | None, image: File | None, audio: File | None) -> None:
    """Raise `InputError` where a named file does not exist, before slow imports."""
    incoming.check_there(vocab, "the vocabulary")
    incoming.check_there(image, "picture")
    incoming.check_there(audio, "sound")


def given(text: str | None) -> tuple[str | None, tuple[str, ...]]:
    """The text of an argument (`-` reads standard input), and remarks on how it was read.

    One line end at the end of standard input is dropped. `InputError` where the text is a file's name.
    """
    if text is None:
        return None, ()
    if text != "-":
        check_is_text(text)
        return incoming.argument(text), ()
    raw = incoming.content(text).removeprefix(incoming.BOM)
    ends = len(raw[len(raw.rstrip(b"\r\n")) :].splitlines())
    others = "the other belongs" if ends == 2 else f"the other {ends - 1} belong"
    told = (
        f"standard input ends in {ends} line ends: the last is left out, {others} to the text; "
        "--texts x.jsonl reads a text exactly as it stands"
    )
    return incoming.text(incoming.without_end(raw), "the text"), (told,) if ends > 1 else ()


_OF_MODELS = ("config.json", "adapter_config.json")  # what a folder holds that -m names
_SUFFIXES = {  # of files that are no texts, by how each is read
    "attnscope show {} opens it": (".npz", ".json"),
    "--image {} reads it": (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp"),
    "--audio {} reads it": (".wav", ".flac", ".ogg", ".mp3"),
    "attnscope dependencies {} reads its sentences": (".conllu",),
}
_AS_TEXT = "- < {0} reads it as one text, --texts {0} each line as one"


def check_is_text(text: str) -> None:
    """Raise `InputError`, with the right option, where the text is the name of a file or model folder.

    A name without suffix that is no model folder counts as text: `door`.
    """
    if any(os.path.isfile(os.path.join(text, name)) for name in _OF_MODELS):
        raise InputError(f"'{printable(text)}' is a model folder, and no text: -m {word(text)}")
    if Path(text).suffix and os.path.isfile(text):
        raise InputError(f"'{printable(text)}' is a file, and no text: {_how(text).format(word(text))}")


def seems_a_file(text: str) -> str:
    """Note for a text that looks like the name of a missing file; empty for any other text."""
    known = _how(text) is not _AS_TEXT or Path(text).suffix.lower() == ".txt"
    return f"there is no file '{printable(text)}': read as a text" if known and " " not in text else ""


def _how(text: str) -> str:
    suffix = Path(text).suffix.lower()
    return next((how for how, suffixes in _SUFFIXES.items() if suffix in suffixes), _AS_TEXT)


OWN_FOLDER = Path("outputs")
LINE = "{line}"  # in the name of a file, for its number
_DIGITS = 3  # of a line, at least
_LONGEST, _DIGEST = 32, 6


def numbered(target: Path, number: int, last: int) -> Path:
    """The file name for text `number`: `x.png` becomes `x-007.png`, `{line}` the number."""
    digits = f"{number:0{max(_DIGITS, len(str(last)))}}"
    if LINE in target.name:
        return target.with_name(target.name.replace(LINE, digits))
    return target.with_name(f"{target.stem}-{digits}{target.suffix}")


def is_of_each_line(target: Path) -> bool:
    """True where the file name has `{line}`, so each text gets a file of its own: `x-{line}.png`."""
    return LINE in target.name


def of_head(target: Path, layer: int, head: int) -> Path:
    return target.with_name(target.name.replace(LAYER, str(layer)).replace(HEAD, str(head)))


def own_place(command: str, head: "HeadWeights", asked: Sequence[object], media: Sequence[Path]) -> Path:
    """Default path of a picture: `outputs/tsne-demo-L3-H11-the-door-opened-3f9a1c.png`.

    Its last part is a hash of all inputs and of `asked`: equal inputs get equal names on every machine, and
    different inputs different ones.
    """
    from attnscope.render.kit.words import own_name

    origin, texts = head.provenance, (*head.query_tokens.texts, *head.key_tokens.texts)
    parts = [command, _plain(own_name(origin.model)) or "model"]
    parts += [] if head.kind == "encoder" else [str(head.kind)]
    parts += [f"L{head.layer}", f"H{head.head}", slug(texts[0] if texts else "")]
    weights = (origin.model if origin.digest is None else "", origin.source, origin.adapter, origin.dtype)
    read = (texts, origin.token_ids, head.query_tokens.ids, head.key_tokens.ids)
    place = (head.tower, head.kind.value, head.layer, head.head, head.block)
    identity = json.dumps(
        [weights, origin.kernel, origin.route, read, place, [repr(setting) for setting in asked]]
    )
    digest = hashlib.sha256(identity.encode())
    for file in media:
        digest.update(incoming.content(file))
    return OWN_FOLDER / f"{'-'.join(part for part in parts if part)}-{digest.hexdigest()[:_DIGEST]}.png"


def slug(text: str) -> str:
    """File-name slug of the first words of a text: `i-was-watching-the-door-when`."""
    words = _plain(unicodedata.normalize("NFKD", text).casefold()).split("-")
    kept = ""
    for part in words:
        longer = f"{kept}-{part}" if kept else part[:_LONGEST]
        if len(longer) > _LONGEST:
            break
        kept = longer
    return kept


def _plain(text: str) -> str:
    plain = "".join(letter for letter in text if not unicodedata.combining(letter))
    return re.sub(r"[^A-Za-z0-9_.]+", "-", plain).strip("-.")


PICTURES = "Pictures"  # the heading of options
OUT_FILES = option(
    "--out", "-o", metavar="FILE", under=OUT,
    help="Write a picture (.png, .svg, .pdf), the numbers (.npz, .csv, .json), a page for a browser (.html), "
    "or of a claim a script that computes it again without attnscope (.py); may be repeated.",
    brief=".png .svg .pdf .html .npz .csv .json, by suffix",
)  # fmt: skip
PICTURE = option(
    "--out", "-o", metavar="FILE", under=OUT,
    help="Write a picture (.png, .svg, .pdf), the numbers (.npz, .csv, .json) or a page for a browser "
    "(.html); may be repeated. Default: a PNG in outputs/, nothing with --json.",
    brief=".png .svg .pdf .html .npz .csv .json, by suffix",
)  # fmt: skip
JSON = option(
    "--json", under=OUT,
    help="Print one JSON document instead.",
    brief="one JSON document in place of the screen",
)  # fmt: skip
TITLE = option("--title", metavar="TEXT|none", help="What stands above a picture in place of its heading.")
SIZE = option(
    "--size", metavar="WxH",
    help="Width and height of a picture in inches, such as 3.3x2.5. Default: what its labels need.",
)  # fmt: skip
DOTS = option("--dpi", metavar="N", help="Dots per inch of a PNG.")
BARE = option(
    "--bare",
    help="Of a picture the axes alone: no heading, no text, no caption. What is proved stands in the file's "
    "metadata.",
)  # fmt: skip
CAPTION = option(
    "--caption", metavar="short|full|none",
    help="What stands below a picture; full has the certificate, the weights' hash and all versions.",
)  # fmt: skip
FRAGMENT = option(
    "--fragment", help="Of a page (.html) only what stands inside its frame, to be put into another page."
)


@dataclass(frozen=True)
class Delivery:
    """Output options: files, picture style, and JSON in place of the screen."""

    PANEL = SHOWN
    PANELS = dict.fromkeys(("title", "size", "dpi", "bare", "caption"), PICTURES)
    BEYOND = "figures"

    out: Annotated[list[Path] | None, OUT_FILES] = None
    json: Annotated[bool, JSON] = False
    title: Annotated[str | None, TITLE] = None
    size: Annotated[str | None, SIZE] = None
    dpi: Annotated[int, DOTS] = DPI
    bare: Annotated[bool, BARE] = False
    caption: Annotated[str, CAPTION] = "short"
    fragment: Annotated[bool, FRAGMENT] = False

    def __post_init__(self) -> None:
        if not self.fragment and self.look == USUAL:
            return
        from attnscope.render.saving import PAGE
        from attnscope.render.saving import PICTURES as DRAWN

        if self.fragment and not any(place.suffix.lower() == PAGE for place in self.places):
            raise InputError(f"--fragment is about a page: name one with -o ({PAGE})")
        if self.look == USUAL:
            return
        if not any(place.suffix.lower() in DRAWN for place in self.places):
            asked = "--title, --size, --dpi, --bare and --caption are about a picture"
            raise InputError(f"{asked}: name one with -o ({', '.join(DRAWN)})")

    @property
    def look(self) -> Look:
        """Style options of pictures as a `Look`; `InputError` for an impossible value."""
        title = None if self.title is None else incoming.argument(self.title)
        return Look(title, self.size, self.dpi, self.bare, self.caption)

    @property
    def targets(self) -> list[Path]:
        return list(self.out or [])

    @property
    def places(self) -> list[Path]:
        """The files that will be written, as far as they are known before any work."""
        return self.targets


@dataclass(frozen=True)
class PictureDelivery(Delivery):
    """Output options of a command that draws: the default is a picture in `OWN_FOLDER`."""

    out: Annotated[list[Path] | None, PICTURE] = None

    @property
    def places(self) -> list[Path]:
        return self.targets or ([] if self.json else [OWN_FOLDER / "picture.png"])
