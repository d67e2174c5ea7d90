"""How attention is looked at, how a map is drawn, and what a terminal shows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.panels import OUT, SHOWN, Brief
from attnscope.session import wanted
from attnscope.vocabulary import Scaling

if TYPE_CHECKING:
    from attnscope.results import MapSettings

Query = Annotated[
    str | None,
    typer.Option(
        "--query",
        "--from",
        metavar="TOKEN",
        help='Show what one query attends to: a token\'s text or its position; several words ("the door", '
        "4-5) are one query, their mean; the#2 is the second one.",
    ),
    Brief("the token that looks: its text, the@7, position 5"),
]
QueryOverFile = Annotated[
    str | None,
    typer.Option(
        "--query",
        "--from",
        metavar="TOKEN",
        help="Show what one query attends to: a token's text or its position (the@5; the#2 the second one); "
        'several words ("the door", 4-5, pos:all) are one query, their mean; over a picture or a sound also '
        "a patch (r3c5: row 3, column 5), a time (0.20s) or mean, the mean over all queries.",
    ),
    Brief("the token that looks: its text, the@7, position 5"),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        "--to",
        metavar="TOKEN",
        help="State the figures of one key, named likewise: several tokens are one key, their sum.",
    ),
    Brief("the token that is looked at, named likewise"),
]
Words = Annotated[
    bool,
    typer.Option(
        "--words",
        help="Join word pieces into words: the same as --by word.",
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="token|word|sentence|passage",
        help="What rows and columns are: weights are summed over the keys of a unit and averaged over the "
        "queries of one. Passages are parted by blank lines; sentences end at .!? before white space, not "
        "before a small letter. A sentence is named by its number or by words of it.",
    ),
    Brief("word, sentence or passage in place of tokens", metavar="UNIT"),
]
SpecialTokens = Annotated[
    str | None,
    typer.Option(
        "--special",
        metavar="show|hide|renormalise",
        help="Special tokens such as [CLS]: shown, left out, or left out and each row divided by what "
        "remains. Without this they are shown, but the strongest links of several heads pass "
        "them over.",
    ),
]
Scale = Annotated[
    Scaling,
    typer.Option(
        "--scale",
        metavar="sqrt|1|max|row|log",
        help="How dark a weight is: by its square root from 0 to 1 (sqrt), in proportion from 0 to 1, to the "
        "largest (max) or to the largest of its row, or in equal ratios (log). Default: sqrt.",
        show_default=False,
    ),
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
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="The answer and what is proved alone; with -o the files alone.")
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Everything: all columns, how the model was run, certificates in full, what was loaded.",
    ),
    Brief("all columns, hashes, certificate, what was loaded", under=OUT),
]
Legend = Annotated[
    bool,
    typer.Option("--legend", help="Say what the columns and marks on this screen mean, with their papers."),
    Brief("what the columns mean, with the papers", under=OUT),
]
InputLimit = Annotated[
    str | None,
    typer.Option(
        "--input-limit",
        metavar="SIZE",
        help="How much is read at most from a pipe, a device or standard input, such as 2GB. Files have no "
        "limit but memory. Default: ATTNSCOPE_INPUT_LIMIT, else 256MB.",
    ),
]
Theme = Annotated[
    str | None,
    typer.Option(
        "--theme",
        metavar="auto|light|dark",
        help="Colours for a light or a dark terminal. Default: ATTNSCOPE_THEME, else COLORFGBG.",
    ),
]


def whole_number(typed: str) -> int:
    """A whole number, also one written as 1e8; raises `BadParameter` for any other."""
    try:
        number = float(typed)
        whole = int(typed) if typed.strip("+-").isdecimal() else int(number)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"'{typed}' is not a whole number") from None
    if whole != number:
        raise typer.BadParameter(f"'{typed}' is not a whole number")
    return whole


Perplexity = Annotated[
    float,
    typer.Option("--perplexity", metavar="P", help="t-SNE's perplexity, lowered for few tokens."),
    Brief("t-SNE's perplexity, lowered for few tokens"),
]
Metric = Annotated[
    str,
    typer.Option(
        "--metric",
        metavar="cosine|euclidean",
        help="Distance in the full space.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", help="Seed of t-SNE, which starts from a PCA, so that it seldom matters."
    ),
]
MaxIter = Annotated[
    int | None,
    typer.Option(
        "--max-iter",
        metavar="N",
        parser=whole_number,
        help="Most iterations of t-SNE, which stops by itself where it has settled. Default: 20000, above "
        "256 points 1000; the answer says where it has not settled.",
    ),
]


@dataclass(frozen=True)
class Looking(wanted.Looking):
    """How to look at weights: by which unit, with special tokens or without."""

    PANEL = SHOWN

    words: Words = False
    special: SpecialTokens = None
    by: By = None


@dataclass(frozen=True)
class MapOptions:
    """How to draw a map."""

    PANEL = "The map"
    BEYOND = "the map"

    perplexity: Perplexity = 5.0
    metric: Metric = "cosine"
    seed: Seed = 0
    max_iter: MaxIter = None

    def settings(self) -> "MapSettings":
        """How to draw a map, checked; `InputError` for what cannot be."""
        from attnscope.results import MapSettings

        return MapSettings(self.metric, self.perplexity, self.seed, self.max_iter)
