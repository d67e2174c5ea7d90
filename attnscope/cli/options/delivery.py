"""Where a result goes: files, and how pictures in them are dressed, or JSON in place of the screen."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from attnscope import incoming
from attnscope.cli.naming import OWN_FOLDER
from attnscope.cli.panels import PICTURES
from attnscope.errors import InputError
from attnscope.render.look import DPI, USUAL, Look
from attnscope.session.option import OUT, SHOWN, option

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
