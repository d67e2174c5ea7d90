"""Which layer, head, query, key and tokens are asked for."""

from typing import Annotated

import typer

Layer = Annotated[
    str | None,
    typer.Option("--layer", "-l", metavar="N", help="Layers, from 0: 3, -1, 0,3,7, 4-8 or all."),
]
Head = Annotated[
    str | None, typer.Option("--head", metavar="N", help="Heads, from 0: 11, -1, 0,3,7, 4-8 or all.")
]
OneLayer = Annotated[str, typer.Option("--layer", "-l", metavar="N", help="Layer, from 0; -1 is the last.")]
OneHead = Annotated[str, typer.Option("--head", metavar="N", help="Head, from 0; -1 is the last.")]
Query = Annotated[
    str | None,
    typer.Option(
        "--query", metavar="TOKEN", help="Show what one query attends to: a token's text or its position."
    ),
]
QueryOverFile = Annotated[
    str | None,
    typer.Option(
        "--query",
        metavar="TOKEN",
        help="Show what one query attends to: a token's text or its position; over a picture or a sound also "
        "a patch (r3c5: row 3, column 5), a time (0.20s) or mean, the mean over all queries.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option("--key", metavar="TOKEN", help="State the figures of one key: its text or position."),
]
Words = Annotated[
    bool,
    typer.Option(
        "--words",
        help="Join word pieces into words: weights are summed over the pieces of a key and averaged over "
        "those of a query.",
        show_default=False,
    ),
]
SpecialTokens = Annotated[
    str | None,
    typer.Option(
        "--special",
        metavar="show|hide|renormalise",
        help="Special tokens such as [CLS]: shown, left out, or left out and each row divided by what "
        "remains. Without this they are shown, but the strongest links of several heads are those of "
        "other tokens.",
    ),
]
