"""Options that belong together, as the commands get them: which model, what it reads, which heads.

Each is the session's own request with an option for every field, so that it is checked there.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from attnscope.cli import options
from attnscope.cli.lines import Line, read_lines
from attnscope.cli.naming import OWN_FOLDER
from attnscope.cli.panels import PICTURES, SHOWN
from attnscope.cli.streams import read_input
from attnscope.errors import InputError
from attnscope.render.look import DPI, USUAL, Look
from attnscope.session import request
from attnscope.vocabulary import MASKED_SENTENCE

if TYPE_CHECKING:
    from attnscope.results import MapSettings


@dataclass(frozen=True)
class Request(request.ModelRequest):
    """Which model to load, and how."""

    PANEL = "Which model, and how it runs"

    model: options.ModelName = None
    device: options.Device = "auto"
    dtype: options.Dtype = "float32"
    revision: options.Revision = None
    trust_remote_code: options.RemoteCode = False
    allow_pickle: options.AllowPickle = False
    attention: options.Attention = "eager"
    ignore_unread: options.IgnoreUnread = False
    adapter: options.Adapter = None
    device_map: options.DeviceMap = None
    max_memory: options.MaxMemory = None


@dataclass(frozen=True)
class Writing(request.Writing):
    """How far the model goes on with the text, and how."""

    PANEL = "Text that the model writes"

    generate: options.Generate = None
    sample: options.Sample = None
    temperature: options.Temperature = None
    top_p: options.TopP = None


@dataclass(frozen=True)
class Read:
    """What the model reads: a text or a pair, a picture or a sound, and what its decoder reads."""

    PANEL = "What is read"

    text: options.SparedText = None
    pair: options.Pair = None
    target: options.Target = None
    target_ids: options.TargetIds = None
    truncate: options.Truncate = False
    split: options.Split = False
    ids: options.Ids = None
    vocab: options.Vocab = None
    image: options.Image = None
    audio: options.Audio = None
    texts: options.Texts = None

    def __post_init__(self) -> None:
        check_something(self.text, self.ids, self.image, self.audio, self.texts)
        self.check_texts()

    def check_texts(self) -> None:
        """Raises `InputError` where there are many texts and one, or anything else that is read."""
        others = {"TEXT": self.text, "--ids": self.ids, "--image": self.image, "--audio": self.audio}
        there = [name for name, value in others.items() if value is not None]
        if self.texts is not None and there:
            raise InputError(f"--texts is all that is read: leave {' and '.join(there)} out")

    @property
    def media(self) -> list[Path]:
        """The files of the picture or the sound that is read."""
        return [file for file in (self.image, self.audio) if file is not None]

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The texts of the file, read once; none where there is no file."""
        return () if self.texts is None else read_lines(self.texts)

    def inputs(self, writing: Writing = Writing()) -> request.Inputs:
        """The same for the session, `-` read from standard input; `InputError` for what is not UTF-8.

        Of many texts none is read yet: what is checked here is the same for all of them.
        """
        return request.Inputs(
            text=MASKED_SENTENCE if self.lines else given(self.text),
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
        )


@dataclass(frozen=True)
class ArticleRead(Read):
    """The same where none need be given: then the sentence of the articles."""

    text: options.ArticleText = None

    def __post_init__(self) -> None:
        self.check_texts()


@dataclass(frozen=True)
class Wanted(request.Wanted):
    """Which layers and heads of which kind of attention, as the user wrote them."""

    PANEL = "Which attention"

    layer: options.Layer = None
    head: options.Head = None
    kind: options.Kind = None
    tower: options.Tower = None
    block: options.Block = 0
    route: options.Route = None


@dataclass(frozen=True)
class ArticleHead(Wanted):
    """One head, by default the one that the articles look at."""

    layer: options.OneLayer = "3"
    head: options.OneHead = "11"


@dataclass(frozen=True)
class Looking(request.Looking):
    """How to look at weights: by words instead of tokens, with special tokens or without."""

    PANEL = SHOWN

    words: options.Words = False
    special: options.SpecialTokens = None


@dataclass(frozen=True)
class MapOptions:
    """How to draw a map."""

    PANEL = "The map"

    perplexity: options.Perplexity = 5.0
    metric: options.Metric = "cosine"
    center_keys: options.CentreKeys = False
    seed: options.Seed = 0
    max_iter: options.MaxIter = None

    def settings(self) -> "MapSettings":
        """The same, checked; `InputError` for what cannot be."""
        from attnscope.results import MapSettings

        return MapSettings(self.metric, self.perplexity, self.seed, self.max_iter, self.center_keys)


@dataclass(frozen=True)
class Delivery:
    """Where a result goes: files, pictures dressed as they shall be, and JSON in place of the screen."""

    PANEL = SHOWN
    PANELS = dict.fromkeys(("title", "size", "dpi", "bare", "caption"), PICTURES)

    out: options.Out = None
    json: options.Json = False
    title: options.Title = None
    size: options.Size = None
    dpi: options.Dpi = DPI
    bare: options.Bare = False
    caption: options.Caption = "short"

    def __post_init__(self) -> None:
        if self.look == USUAL:
            return
        from attnscope.render.saving import PICTURES as DRAWN

        if not any(place.suffix.lower() in DRAWN for place in self.places):
            asked = "--title, --size, --dpi, --bare and --caption are about a picture"
            raise InputError(f"{asked}: name one with -o ({', '.join(DRAWN)})")

    @property
    def look(self) -> Look:
        """How pictures are dressed; `InputError` for what cannot be."""
        title = None if self.title is None else decoded(self.title)
        return Look(title, self.size, self.dpi, self.bare, self.caption)

    @property
    def targets(self) -> list[Path]:
        return list(self.out or [])

    @property
    def places(self) -> list[Path]:
        """Where something will be written, as far as it is known before any work."""
        return self.targets


@dataclass(frozen=True)
class PictureDelivery(Delivery):
    """The same for a result that is a picture first: where no file is named it goes to `OWN_FOLDER`."""

    out: options.Picture = None

    @property
    def places(self) -> list[Path]:
        return self.targets or ([] if self.json else [OWN_FOLDER / "picture.png"])


def check_something(*read: object) -> None:
    """Raises `InputError` where there is neither a text nor anything that stands in its place."""
    if all(each is None for each in read):
        raise InputError("give a text to read, token numbers with --ids, or a file with --image or --audio")


def given(text: str | None) -> str | None:
    """A text argument as it was meant, `-` standing for standard input."""
    if text is None:
        return None
    return decoded(_standard_input() if text == "-" else text)


def _standard_input() -> str:
    return read_input().decode("utf-8", "surrogateescape").rstrip("\r\n")


def decoded(text: str) -> str:
    """`text` as it was meant; `InputError` when its bytes are not UTF-8."""
    try:
        # an argument that Python could not decode holds its bytes as surrogates
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError as error:
        raise InputError("the text is not valid UTF-8") from error
