"""What is read: texts, numbers, pictures, sounds."""

from pathlib import Path
from typing import Annotated

import typer

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
Truncate = Annotated[
    bool,
    typer.Option("--truncate", help="Cut a text that is longer than the model reads.", show_default=False),
]
