"""How a map of queries and keys is made."""

from typing import Annotated

import typer

Perplexity = Annotated[
    float, typer.Option("--perplexity", metavar="P", help="t-SNE's perplexity, lowered for few tokens.")
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", help="Seed of t-SNE, which starts from a PCA, so that it seldom matters."
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        "--metric",
        metavar="cosine|euclidean|manhattan|chebyshev|correlation",
        help="Distance in the full space.",
    ),
]
MaxIter = Annotated[
    int | None,
    typer.Option(
        "--max-iter",
        metavar="N",
        help="Most iterations of t-SNE, which nearly always stops by itself. Default: 100000000, above 256 "
        "points 1000; a map that has not stopped after 20000 is shown as it is, unless N is given.",
    ),
]
CentreKeys = Annotated[
    bool,
    typer.Option(
        "--center-keys",
        help="Move the keys onto the queries' mean first: attention stays as it is, the map does not.",
        show_default=False,
    ),
]
