"""Where a result goes: files, and how pictures in them are dressed, or JSON in place of the screen."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.render.look import DPI, USUAL, Look
from attnscope.session.option import OUT, SHOWN, option
from attnscope.session.question import HEAD, LAYER

if TYPE_CHECKING:
    from attnscope.results import HeadWeights

OWN_FOLDER = Path("outputs")
LINE = "{line}"  # in the name of a file, for its number
_DIGITS = 3  # of a line, at least
_LONGEST, _DIGEST = 32, 6


def numbered(target: Path, number: int, last: int) -> Path:
    """`x.png` as `x-007.png`, or the number where the name has `{line}`; as many digits as `last` has."""
    digits = f"{number:0{max(_DIGITS, len(str(last)))}}"
    if LINE in target.name:
        return target.with_name(target.name.replace(LINE, digits))
    return target.with_name(f"{target.stem}-{digits}{target.suffix}")


def is_of_each_line(target: Path) -> bool:
    """Whether a file for each of many texts is meant: `x-{line}.png`."""
    return LINE in target.name


def of_head(target: Path, layer: int, head: int) -> Path:
    return target.with_name(target.name.replace(LAYER, str(layer)).replace(HEAD, str(head)))


def own_place(command: str, head: "HeadWeights", asked: Sequence[object], media: Sequence[Path]) -> Path:
    """Where a picture goes that nobody named: `outputs/tsne-demo-L3-H11-the-door-opened-3f9a1c.png`.

    Its end stands for all that was read and `asked`: the same input has the same name on every machine, and
    no other input is written over it.
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
    """The first words of a text in letters that every file name takes: `i-was-watching-the-door-when`."""
    words = _plain(unicodedata.normalize("NFKD", text).casefold()).split("-")
    kept = ""
    for word in words:
        longer = f"{kept}-{word}" if kept else word[:_LONGEST]
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
    """Where a result goes: files, pictures dressed as they shall be, and JSON in place of the screen."""

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
        """How pictures are dressed; `InputError` for what cannot be."""
        title = None if self.title is None else incoming.argument(self.title)
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
    """Delivery of a result that is a picture first: where no file is named it goes to `OWN_FOLDER`."""

    out: Annotated[list[Path] | None, PICTURE] = None

    @property
    def places(self) -> list[Path]:
        return self.targets or ([] if self.json else [OWN_FOLDER / "picture.png"])
