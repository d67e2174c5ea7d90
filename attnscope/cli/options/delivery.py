"""Where a result goes: files, and how pictures in them are dressed, or JSON in place of the screen."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from attnscope.cli.naming import OWN_FOLDER
from attnscope.cli.options.inputs import decoded
from attnscope.cli.panels import OUT, PICTURES, SHOWN, Brief
from attnscope.errors import InputError
from attnscope.render.look import DPI, USUAL, Look

Out = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write a picture (.png, .svg, .pdf), the numbers (.npz, .csv, .json), a page for a browser "
        "(.html), or of a claim a script that computes it again without attnscope (.py); may be repeated.",
    ),
    Brief(".png .svg .pdf .html .npz .csv .json, by suffix", under=OUT),
]
Picture = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write a picture (.png, .svg, .pdf), the numbers (.npz, .csv, .json) or a page for a browser "
        "(.html); may be repeated. Default: a PNG in outputs/, nothing with --json.",
    ),
    Brief(".png .svg .pdf .html .npz .csv .json, by suffix", under=OUT),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document instead."),
    Brief("one JSON document in place of the screen", under=OUT),
]
Title = Annotated[
    str | None,
    typer.Option("--title", metavar="TEXT|none", help="What stands above a picture in place of its heading."),
]
Size = Annotated[
    str | None,
    typer.Option(
        "--size",
        metavar="WxH",
        help="Width and height of a picture in inches, such as 3.3x2.5. Default: what its labels need.",
    ),
]
Dpi = Annotated[int, typer.Option("--dpi", metavar="N", help="Dots per inch of a PNG.")]
Bare = Annotated[
    bool,
    typer.Option(
        "--bare",
        help="Of a picture the axes alone: no heading, no text, no caption. What is proved stands in the "
        "file's metadata.",
    ),
]
Caption = Annotated[
    str,
    typer.Option(
        "--caption",
        metavar="short|full|none",
        help="What stands below a picture; full has the certificate, the weights' hash and all versions.",
    ),
]
Fragment = Annotated[
    bool,
    typer.Option(
        "--fragment",
        help="Of a page (.html) only what stands inside its frame, to be put into another page.",
    ),
]


@dataclass(frozen=True)
class Delivery:
    """Where a result goes: files, pictures dressed as they shall be, and JSON in place of the screen."""

    PANEL = SHOWN
    PANELS = dict.fromkeys(("title", "size", "dpi", "bare", "caption"), PICTURES)
    BEYOND = "figures"

    out: Out = None
    json: Json = False
    title: Title = None
    size: Size = None
    dpi: Dpi = DPI
    bare: Bare = False
    caption: Caption = "short"
    fragment: Fragment = False

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
    """Delivery of a result that is a picture first: where no file is named it goes to `OWN_FOLDER`."""

    out: Picture = None

    @property
    def places(self) -> list[Path]:
        return self.targets or ([] if self.json else [OWN_FOLDER / "picture.png"])
