"""`attnscope compare`: one word in two texts, in two layers, or under two models."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli import options, selection
from attnscope.cli.groups import Request, Texts, Wanted
from attnscope.cli.output import NUMBERS, PICTURES, Output, check_targets, finish, save
from attnscope.cli.session import Session, encode, open_session, read_target
from attnscope.errors import InputError, listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnscope.results import Comparison
    from attnscope.tokens import Tokens

TextB = Annotated[
    str | None,
    typer.Argument(metavar="TEXT_B", help="A second text with the word.", show_default=False),
]
Word = Annotated[
    str, typer.Option("--word", metavar="TOKEN", help="The word: a token's text or its position.")
]
WordB = Annotated[
    str | None,
    typer.Option("--word-b", metavar="TOKEN", help="The word on the second side, where it is another one."),
]
LayerB = Annotated[
    str | None,
    typer.Option("--layer-b", metavar="N", help="Compare with this layer, in the same text: needs --layer."),
]
ModelB = Annotated[
    str | None,
    typer.Option("--model-b", metavar="NAME", help="Compare with this model, on the same text."),
]
TargetB = Annotated[
    str | None,
    typer.Option("--target-b", metavar="TEXT", help="What the decoder reads on the second side."),
]


@dataclass(frozen=True)
class Sides:
    """The one thing that differs between both sides, and the word on each of them."""

    PANEL = "What is compared"

    text: options.Text
    word: Word
    text_b: TextB = None
    word_b: WordB = None
    layer_b: LayerB = None
    model_b: ModelB = None
    target: options.Target = None
    target_b: TargetB = None
    truncate: options.Truncate = False

    def __post_init__(self) -> None:
        differing = (self.text_b, self.layer_b, self.model_b)
        if sum(each is not None for each in differing) != 1:
            raise InputError("compare one thing at a time: give a second text, --layer-b or --model-b")
        if self.text == self.text_b == "-":
            raise InputError("only one of the two texts can come from standard input")
        if self.layer_b is not None and (self.word_b is not None or self.target_b is not None):
            raise InputError("--layer-b reads one text once: leave --word-b and --target-b out")

    @property
    def words(self) -> tuple[str, str]:
        return self.word, self.word if self.word_b is None else self.word_b

    @property
    def texts(self) -> tuple[Texts, Texts]:
        """What is read on each side."""
        first = Texts(self.text, target=self.target, truncate=self.truncate)
        target = self.target if self.text_b is None and self.target_b is None else self.target_b
        return first, replace(first, text=self.text if self.text_b is None else self.text_b, target=target)


def compare(
    sides: Sides,
    wanted: Wanted,
    out: options.Out = None,
    json: options.Json = False,
    *,
    request: Request,
    output: Output,
) -> None:
    """Compare one word in two texts, in two layers or under two models.

    How alike its query, key, value and output vectors are, layer by layer, and what it attends to on each
    side. Of the layers and heads that are asked for, that is shown of the head that differs most; the
    table has every layer.
    """
    if wanted.block:
        raise InputError("compare looks at block 0 of a layer: leave --block out")
    targets = list(out or [])
    check_targets(targets, PICTURES + NUMBERS)
    if sides.layer_b is not None:
        result = _layers(sides, wanted, request, output)
    elif sides.model_b is not None:
        result = _models(sides, wanted, request, output)
    else:
        result = _texts(sides, wanted, request, output)
    save(output, targets, result, lambda: _figure(result))
    if json:
        output.document(result)
    else:
        from attnscope.render import screen as terminal

        output.show(terminal.comparison_header(result), "", terminal.comparison(result, output.width))
    finish(result.verdict)


def _texts(sides: Sides, wanted: Wanted, request: Request, output: Output) -> "Comparison":
    first, second = sides.texts
    read = second.read()
    session = _open(request, first, wanted, output)
    layers = _chosen(session, wanted.layer)
    encoded = encode(session.model, read, output, truncate=second.truncate)
    target = read_target(session.model, encoded, second.target, output, kind=session.kind)
    other = replace(session, encoded=encoded, target=target)
    positions = (
        _position(session, sides.words[0], "the first text"),
        _position(other, sides.words[1], "the second text"),
    )
    with output.working("comparing"):
        from attnscope.analysis.comparison import compare_texts

        return compare_texts(
            session.capture(), other.capture(), positions, layers=layers, heads=session.heads
        )


def _layers(sides: Sides, wanted: Wanted, request: Request, output: Output) -> "Comparison":
    if wanted.layer is None:
        raise InputError("--layer-b needs --layer: the layer that it is compared with")
    session = _open(request, sides.texts[0], wanted, output)
    layers = _one(_chosen(session, wanted.layer)), _one(_chosen(session, sides.layer_b))
    if layers[0] == layers[1]:
        raise InputError(f"--layer and --layer-b are both layer {layers[0]}: give two layers")
    position = _position(session, sides.word)
    with output.working("comparing"):
        from attnscope.analysis.comparison import compare_layers

        return compare_layers(session.capture(layers), position, layers, heads=session.heads)


def _models(sides: Sides, wanted: Wanted, request: Request, output: Output) -> "Comparison":
    first, second = sides.texts
    if first.text == "-":
        first = second = replace(first, text=first.read()[0])
    session = _open(request, first, wanted, output)
    layers, heads = _chosen(session, wanted.layer), session.heads
    position = _position(session, sides.words[0])
    with output.working("reading the first model"):
        captured = session.capture()
    del session  # one model in memory at a time
    other = _open(replace(request, model=sides.model_b, revision=None), second, wanted, output)
    _chosen(other, wanted.layer)
    positions = position, _position(other, sides.words[1], "the second model")
    with output.working("comparing"):
        from attnscope.analysis.comparison import compare_models

        return compare_models(captured, other.capture(), positions, layers=layers, heads=heads)


def _open(request: Request, texts: Texts, wanted: Wanted, output: Output) -> Session:
    """A session with every layer, whichever are shown in full."""
    selection.parse(wanted.layer, "layer")
    return open_session(request, texts, replace(wanted, layer=None), output)


def _chosen(session: Session, layer: str | None) -> tuple[int, ...]:
    from attnscope.model.anatomy.towers import layers_without

    where = f"{session.model.name}: layers {listed(session.layers)}"
    return selection.choose(
        selection.parse(layer, "layer"),
        session.layers,
        "layer",
        where,
        layers_without(session.model.module, session.tower),
    )


def _one(layers: tuple[int, ...]) -> int:
    if len(layers) > 1:
        raise InputError("--layer-b compares two layers: give one --layer and one --layer-b")
    return layers[0]


def _position(session: Session, word: str, where: str = "") -> int:
    """Position of the word among the queries; a mistake says where the word is missing."""
    tokens: Tokens = session.encoded.tokens
    if session.kind != "encoder" and session.target is not None:
        tokens = session.target.tokens
        where = " of ".join(part for part in ("the target", where) if part)
    try:
        return tokens.position(word)
    except InputError as error:
        raise InputError(f"{where}: {error}" if where else str(error)) from error


def _figure(result: "Comparison") -> "Figure":
    from attnscope.render.figure import comparison_figure

    return comparison_figure(result)
