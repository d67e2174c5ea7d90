"""Every option once, with the help text that all commands share, and the groups that commands take whole.

A command that asks for a group (`texts: Texts`, `request: Request`) gets the options of the group's
constructor in that place; `grouped` turns its signature into the flat one that Typer reads.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from attnscope.cli.panels import SHOWN
from attnscope.vocabulary import Scaling

Text = Annotated[
    str, typer.Argument(metavar="TEXT", help="The text to read; '-' reads it from standard input.")
]
SparedText = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT",
        help="The text to read; '-' reads it from standard input. Not needed with --image and --audio.",
        show_default=False,
    ),
]
ArticleText = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT",
        help="The text to read; '-' reads it from standard input. "
        "Default: I was watching the door when [MASK] opened.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="TEXT",
        help="What the decoder of an encoder-decoder reads. Default: what the model writes itself.",
    ),
]
TargetIds = Annotated[
    str | None,
    typer.Option(
        "--target-ids",
        metavar="N,N,...",
        help="The same as token numbers, the decoder's start token among them.",
    ),
]
Split = Annotated[
    bool,
    typer.Option(
        "--split",
        help="The words of TEXT, and of --pair, are those between its blanks, as treebanks have them.",
        show_default=False,
    ),
]
Ids = Annotated[
    str | None,
    typer.Option(
        "--ids",
        metavar="N,N,...",
        help="Read exactly these tokens instead of TEXT: 101,2023,102. Needs no tokenizer.",
    ),
]
Vocab = Annotated[
    Path | None,
    typer.Option(
        "--vocab",
        metavar="FILE",
        help="How the tokens of --ids are spelled: one in a line (vocab.txt), or JSON of numbers by token.",
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="encoder|decoder|cross",
        help="Which attention of a model that has several. Default: cross.",
    ),
]
Tower = Annotated[
    str | None,
    typer.Option(
        "--tower",
        metavar="NAME",
        help="Which part of a model that has attention in several, as `attnscope model` lists them.",
    ),
]
Block = Annotated[
    int,
    typer.Option(
        "--block",
        metavar="N",
        help="Which of the separate attentions of a layer that makes several (windows of a picture).",
    ),
]
Route = Annotated[
    str | None,
    typer.Option(
        "--route",
        metavar="takeover|custom|traced|returned",
        help="How to read the attention. Default: the first of these that the model allows.",
    ),
]
Attention = Annotated[
    str,
    typer.Option(
        "--attn",
        metavar="eager|sdpa|flex_attention|flash_attention_2",
        help="The kernel that the model runs, which is then held against the recomputation.",
    ),
]
Generate = Annotated[
    int | None,
    typer.Option(
        "--generate",
        metavar="N",
        help="Let a decoder go on for N tokens and show the attention of those too, its cache switched on.",
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(
        "--sample", metavar="SEED", help="Draw the generated tokens by lot. Default: the likeliest."
    ),
]
Temperature = Annotated[
    float | None, typer.Option("--temperature", metavar="T", help="Of --sample: below 1 surer, above 1 less.")
]
TopP = Annotated[
    float | None,
    typer.Option("--top-p", metavar="P", help="Of --sample: draw from the likeliest that make up P."),
]
Image = Annotated[
    Path | None,
    typer.Option(
        "--image", metavar="FILE", help="A picture to read, alone or beside TEXT, as the model takes it."
    ),
]
Audio = Annotated[
    Path | None, typer.Option("--audio", metavar="FILE", help="A sound to read: wav, flac, ogg or mp3.")
]
Texts = Annotated[
    Path | None,
    typer.Option(
        "--texts",
        metavar="FILE",
        help="Read every line of a file as a text of its own, '-' for standard input: one answer after the "
        "other, JSON in lines, files numbered by line (x-001.png). A line that cannot be read is told, the "
        "others go on, and the exit code is the highest of any line.",
    ),
]
Pair = Annotated[str | None, typer.Option("--pair", metavar="TEXT", help="Second sentence of a pair.")]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        help="Hub id, local folder, or a bundled model: demo, demo-causal, demo-translate. Default: "
        "ATTNSCOPE_MODEL, else bert-base-uncased, else the demo where the hub cannot be reached.",
    ),
]
Revision = Annotated[
    str | None, typer.Option("--revision", metavar="REV", help="Branch, tag or commit of a hub model.")
]
Device = Annotated[str, typer.Option("--device", metavar="auto|cpu|cuda|cuda:N|mps", help="Where to run.")]
Dtype = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="float32|bfloat16|float16|float64|auto",
        help="Arithmetic of the model; auto is the checkpoint's own.",
    ),
]
RemoteCode = Annotated[
    bool,
    typer.Option("--trust-remote-code", help="Run code that a model brings with it.", show_default=False),
]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Load pickled weights, which can run code.", show_default=False)
]
IgnoreUnread = Annotated[
    bool,
    typer.Option(
        "--ignore-unread",
        help="Run without weights inside attention that are stored and that the model has no place for.",
        show_default=False,
    ),
]
Adapter = Annotated[
    str | None,
    typer.Option(
        "--adapter",
        metavar="FOLDER|none",
        help="Put this adapter into the model (needs the package peft), or none where one is beside its "
        "weights. Default: the one beside them, if any.",
        show_default=False,
    ),
]
Truncate = Annotated[
    bool,
    typer.Option("--truncate", help="Cut a text that is longer than the model reads.", show_default=False),
]
Layer = Annotated[
    str | None,
    typer.Option("--layer", "-l", metavar="N", help="Layers, from 0: 3, -1, 0,3,7, 4-8 or all."),
]
Head = Annotated[
    str | None, typer.Option("--head", metavar="N", help="Heads, from 0: 11, -1, 0,3,7, 4-8 or all.")
]
OneLayer = Annotated[str, typer.Option("--layer", "-l", metavar="N", help="Layer, from 0; -1 is the last.")]
OneHead = Annotated[str, typer.Option("--head", metavar="N", help="Head, from 0; -1 is the last.")]
Out = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write a picture (.png, .svg, .pdf) or the numbers (.npz, .csv, .json); may be repeated.",
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
        help="Write a picture (.png, .svg, .pdf) or the numbers (.npz, .csv, .json); may be repeated. "
        "Default: a PNG in outputs/, nothing with --json.",
    ),
]
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
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notices.", show_default=False)]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Say what was loaded and how long it took.", show_default=False),
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


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """`command` for Typer: every parameter that is a group stands open as that group's own options."""
    taken = inspect.signature(command).parameters
    groups = {
        name: inspect.signature(parameter.annotation).parameters
        for name, parameter in taken.items()
        if inspect.isclass(parameter.annotation)
    }

    def call(**given: Any) -> None:
        for name, fields in groups.items():
            given[name] = taken[name].annotation(**{field: given.pop(field) for field in fields})
        command(**given)

    flat = [each for name in taken for each in (groups[name].values() if name in groups else (taken[name],))]
    flat = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in flat]
    call.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    call.__doc__, call.__name__ = command.__doc__, command.__name__
    panels = {name: getattr(taken[name].annotation, "PANEL", SHOWN) for name in groups}
    call.panels = {  # type: ignore[attr-defined]  # read by `panels.Panelled`
        each: getattr(taken[name].annotation, "PANELS", {}).get(each, panels.get(name, SHOWN))
        for name in taken
        for each in (groups.get(name) or (name,))
    }
    return call
