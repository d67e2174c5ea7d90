"""What is written to files, and how a picture looks."""

from pathlib import Path
from typing import Annotated

import typer

from attnscope.vocabulary import Scaling

Out = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write a picture (.png, .svg, .pdf), the numbers (.npz, .csv, .json) or a page for a browser "
        "(.html); may be repeated.",
    ),
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
        show_default=False,
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
Picture = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write a picture (.png, .svg, .pdf), the numbers (.npz, .csv, .json) or a page for a browser "
        "(.html); may be repeated. Default: a PNG in outputs/, nothing with --json.",
    ),
]
Scale = Annotated[
    Scaling,
    typer.Option(
        "--scale",
        metavar="auto|max|row|1|log",
        help="How dark a weight is: darkest for 1, for the largest (max), for each row's own largest, or for "
        "the largest in equal ratios (log). Default: the first of 1, max and log that shows the weights.",
        show_default=False,
    ),
]
