"""One word held against itself: in two inputs, in two layers, or under two models."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from attnscope.analysis.claims.comparison import compare as comparison
from attnscope.analysis.claims.comparison.word import Look, forms_in
from attnscope.analysis.heads.view import Places, groups_of
from attnscope.attention import Capture
from attnscope.errors import InputError
from attnscope.results import Comparison
from attnscope.results.base.groups import joined
from attnscope.session.choosing import Chosen, choose_layers
from attnscope.session.listener import Listener
from attnscope.session.opening import Opened
from attnscope.session.questions.pages import BothHeads
from attnscope.session.reading import Reading, open_chosen, read_inputs
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Looking, Numbers, Wanted
from attnscope.spelling import spelled

Words = tuple[str, str]


def compare_inputs(
    request: ModelRequest,
    inputs: tuple[Inputs, Inputs],
    words: Words,
    wanted: Wanted,
    listener: Listener,
    looking: Looking,
    page: BothHeads,
) -> Comparison:
    """A word in two inputs of one model: its vectors in every layer, one head in full, a `page` more."""
    first, chosen = open_chosen(request, inputs[0], wanted.all_layers, listener)
    choose_layers(first.model, chosen.tower, wanted.layer)  # refused before the second text is read
    second = read_inputs(Opened(first.model, first.task, chosen), inputs[1], listener)
    return compare_readings((first, chosen), (second, chosen), words, wanted.layer, looking, page)


def compare_layers(
    request: ModelRequest,
    inputs: Inputs,
    word: str,
    wanted: Wanted,
    other: Numbers,
    listener: Listener,
    looking: Looking,
    page: BothHeads,
) -> Comparison:
    """A word in two layers of one model, `wanted.layer` and `other`."""
    if wanted.layer is None:
        raise InputError("--layer-b needs --layer: the layer that it is compared with")
    opened = open_chosen(request, inputs, wanted.all_layers, listener)
    return compare_in_layers(*opened, word, wanted.layer, other, looking, page)


def compare_models(
    requests: tuple[ModelRequest, ModelRequest],
    inputs: tuple[Inputs, Inputs],
    words: Words,
    wanted: Wanted,
    listener: Listener,
    looking: Looking,
    page: BothHeads,
) -> Comparison:
    """A word under two models, of which one at a time is in memory."""
    first = open_chosen(requests[0], inputs[0], wanted.all_layers, listener)
    page.foresee(first, first)  # the second reads about as much
    a = _side(first, words[0], wanted.layer, looking)
    del first  # before the second model is loaded
    second = open_chosen(requests[1], inputs[1], wanted.all_layers, listener)
    b = _side(second, words[1], wanted.layer, looking, "the second model")
    return _compared(comparison.compare_models, a, b, listener, looking, page)


def compare_readings(
    a: tuple[Reading, Chosen],
    b: tuple[Reading, Chosen],
    words: Words,
    layer: Numbers,
    looking: Looking,
    page: BothHeads,
) -> Comparison:
    """A word in two readings: of one model in two texts, else under two models."""
    page.foresee(a, b)
    one_model = a[0].model.module is b[0].model.module
    names = ("the first text", "the second text") if one_model else ("", "the second model")
    first, second = (
        _side(side, word, layer, looking, name) for side, word, name in zip((a, b), words, names, strict=True)
    )
    compare = comparison.compare_texts if one_model else comparison.compare_models
    return _compared(compare, first, second, a[0].listener, looking, page)


def compare_in_layers(
    reading: Reading,
    chosen: Chosen,
    word: str,
    layer: Numbers,
    other: Numbers,
    looking: Looking,
    page: BothHeads,
) -> Comparison:
    """A word in two layers of one reading."""
    first, second = (_one(choose_layers(reading.model, chosen.tower, number)) for number in (layer, other))
    if first == second:
        raise InputError(f"--layer and --layer-b are both layer {first}: give two layers")
    position, _ = position_of(reading, chosen, word, looking)
    page.foresee((reading, chosen), (reading, chosen))
    with reading.listener.working("comparing"):
        captured = _captured(reading, chosen, (first, second))
        two, look = (first, second), _look(looking)
        result = comparison.compare_layers(captured, position, two, heads=chosen.heads, look=look)
        page.hold(result, (captured, captured))
    return _with_notes(result, reading, reading)


@dataclass(frozen=True, eq=False)
class _Side:
    position: Places
    captured: Capture
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    notes: tuple[str, ...] = ()


def _side(
    opened: tuple[Reading, Chosen], word: str, layer: Numbers, looking: Looking, where: str = ""
) -> _Side:
    reading, chosen = opened
    layers = choose_layers(reading.model, chosen.tower, layer)
    position, _ = position_of(reading, chosen, word, looking, where)
    with reading.listener.working("reading the attention"):
        return _Side(position, _captured(reading, chosen), layers, chosen.heads, reading.notes)


def _captured(reading: Reading, chosen: Chosen, layers: tuple[int, ...] | None = None) -> Capture:
    captured = reading.capture(chosen, layers)
    captured.check_in_place("a word is compared by its own row")
    return captured


def _compared(
    compare: Callable[..., Comparison],
    a: _Side,
    b: _Side,
    listener: Listener,
    looking: Looking,
    page: BothHeads,
) -> Comparison:
    with listener.working("comparing"):
        captures, positions = (a.captured, b.captured), (a.position, b.position)
        result = compare(*captures, positions, layers=a.layers, heads=a.heads, look=_look(looking))
        page.hold(result, captures)
    return _with_notes(result, a, b)


def _look(looking: Looking) -> Look:
    return Look(looking.unit, looking.treatment, looking.links_among_all)


def _with_notes(result: Comparison, a: Reading | _Side, b: Reading | _Side) -> Comparison:
    first, second = (
        replace(side, head=replace(side.head, notes=(*side.head.notes, *read.notes)))
        for side, read in zip(result.sides, (a, b), strict=True)
    )
    return replace(result, a=first, b=second)


def _one(layers: tuple[int, ...]) -> int:
    if len(layers) > 1:
        raise InputError("--layer-b compares two layers: give one --layer and one --layer-b")
    return layers[0]


def position_of(
    reading: Reading, chosen: Chosen, word: str, looking: Looking, where: str = ""
) -> tuple[Places, str]:
    """The positions of the word, or of several, among the queries, and its text there.

    Where it does not stand there as it is and another form of it does (`banks`), that is taken and told. A
    mistake says `where` it is missing.
    """
    if reading.target is not None and chosen.kind != "encoder":
        where = " of ".join(part for part in ("the target", where) if part)
    tokens = reading.tokens_of(chosen.kind)
    groups = groups_of(tokens, "query", looking.unit, looking.treatment) if looking.changes else None
    units = tokens if groups is None else joined(tokens, groups, looking.unit)
    forms = forms_in(units, word)
    try:
        places = (forms[0],) if len(forms) == 1 else units.span(word).positions
    except InputError as error:
        others = ", ".join(units.labels[form] for form in forms)
        why = f"'{word}' has several forms there: {others}: name one" if forms else str(error)
        raise InputError(f"{where}: {why}" if where else why) from error
    taken = spelled(units, places).strip() or units.names[places[0]]
    if forms:
        in_it = f"{where}: " if where else ""
        reading.listener.notice(f"{in_it}no '{word}', but another form of it: '{taken}'")
    return (places if groups is None else tuple(i for place in places for i in groups[place])), taken
