"""What a terminal shows."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notices.", show_default=False)]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Say what was loaded and how long it took.", show_default=False),
]
Timings = Annotated[
    bool,
    typer.Option("--timings", help="Say at the end where the time went.", show_default=False),
]
Rows = Annotated[
    str | None,
    typer.Option(
        "--rows",
        metavar="N|all",
        help="How many queries the terminal lists, the most telling first, where the numbers of the whole "
        "matrix do not fit. Default: 20.",
    ),
]
Theme = Annotated[
    str | None,
    typer.Option(
        "--theme",
        metavar="auto|light|dark",
        help="Colours for a light or a dark terminal. Default: ATTNSCOPE_THEME, else what the terminal says.",
    ),
]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        help="Compute the answer even if it is kept from an earlier run, and do not keep it.",
        show_default=False,
    ),
]
