"""Runs the comparisons of one word: in two inputs, layers or models, or in many texts.

Of many texts: cosines of all pairs, and how far labels part them, beside all other labelings.

Other forms of a word (`banks` for `bank`) are found by a rule of a few endings, not a grammar: two words are
forms of one where, in small letters, one ending at most taken from each, the same is left, of three letters
at least. The endings are those of English plurals and verbs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.analysis.heads.overview import measure_heads
from attnscope.analysis.heads.view import Places, groups_of
from attnscope.attention import Capture
from attnscope.errors import InputError
from attnscope.results import Overview
from attnscope.results.base.groups import joined
from attnscope.results.base.origin import tallied
from attnscope.results.claims.ranking import LEAST_SPREAD
from attnscope.session.choosing import Chosen, choose_layers
from attnscope.session.listener import Listener
from attnscope.session.opening import Opened, Opening
from attnscope.session.prompts import labelled_in
from attnscope.session.question import Answer
from attnscope.session.questions.pages import Extent, extent, seen_extent
from attnscope.session.reading import Reading, open_chosen, read_inputs
from attnscope.session.request import ModelRequest, digests
from attnscope.session.wanted import Looking
from attnscope.spelling import spelled
from attnscope.tokens import Tokens
from attnscope.verbs.compare.question import InTexts, OnTwoSides, Word
from attnscope.verbs.compare.result import Between, Comparison
from attnscope.verbs.compare.texts_result import ROUNDING, Senses, Separation, Usage, splits_of
from attnscope.verbs.compare.vectors import ComparedWord, compare, word_in

Vectors = Float[np.ndarray, "text head dim"]
Fit = Callable[[Sequence[Extent]], bool]
ENDINGS = (("'s", ""), ("’s", ""), ("ies", "y"), ("es", ""), ("s", ""), ("ed", ""), ("d", ""), ("ing", ""))
_SHORTEST = 3


def compare_word(
    request: ModelRequest, opening: Opening, asked: OnTwoSides, listener: Listener
) -> Answer[Comparison]:
    """Compares a word on two sides: vectors in every layer, one head in full, and all heads for a page.

    Of two models one at a time is in memory.
    """
    fit, inputs, wanted = asked.files.fit if asked.files.pages else None, asked.inputs, asked.wanted
    first = open_chosen(opening, request, inputs[0], wanted.all_layers, listener)
    if asked.layer_b is not None:
        return compare_in_layers(first, asked, fit)
    if asked.model_b is None:
        reading, chosen = first
        choose_layers(reading.model, chosen.tower, wanted.layer)  # refused before the second text is read
        second = read_inputs(Opened(reading.model, reading.task, chosen), inputs[1], listener)
        return compare_readings(first, (second, chosen), asked, fit)
    whole = both_fit(fit, first, first)  # the second reads about as much
    a = _side(first, asked.both[0], asked)
    del first  # before the second model is loaded
    other = open_chosen(opening, request.of_other(asked.model_b), inputs[1], wanted.all_layers, listener)
    b = _side(other, asked.both[1], asked, "the second model")
    return _compared(Between.MODELS, (a, b), asked, listener, whole)


def compare_readings(
    a: tuple[Reading, Chosen], b: tuple[Reading, Chosen], asked: Word, fit: Fit | None = None
) -> Answer[Comparison]:
    """Compares a word in two readings: one model's of two texts, or two models'."""
    whole, one_model = both_fit(fit, a, b), a[0].model.module is b[0].model.module
    names = ("the first text", "the second text") if one_model else ("", "the second model")
    first, second = (
        _side(side, word, asked, name) for side, word, name in zip((a, b), asked.both, names, strict=True)
    )
    between = Between.TEXTS if one_model else Between.MODELS
    return _compared(between, (first, second), asked, a[0].listener, whole)


def compare_in_layers(
    opened: tuple[Reading, Chosen], asked: Word, fit: Fit | None = None
) -> Answer[Comparison]:
    """Compares a word in two layers of one reading."""
    reading, chosen = opened
    numbers = (asked.wanted.layer, asked.layer_b)
    several = [choose_layers(reading.model, chosen.tower, number) for number in numbers]
    if any(len(each) > 1 for each in several):
        raise InputError("--layer-b compares two layers: give one --layer and one --layer-b")
    (first,), (second,) = several
    if first == second:
        raise InputError(f"--layer and --layer-b are both layer {first}: give two layers")
    whole = both_fit(fit, opened, opened)
    side = _side(opened, asked.both[0], asked, layers=(first, second))
    return _compared(Between.LAYERS, (side, side), asked, reading.listener, whole)


@dataclass(frozen=True, eq=False)
class _Side:
    notes: tuple[str, ...]
    position: Places
    captured: Capture
    layers: tuple[int, ...]
    heads: tuple[int, ...]


def _side(
    opened: tuple[Reading, Chosen], word: str, asked: Word, where: str = "", layers: tuple[int, ...] = ()
) -> _Side:
    reading, chosen = opened
    shown = layers or choose_layers(reading.model, chosen.tower, asked.wanted.layer)
    position, _ = position_of(reading, chosen, word, asked.looking, where)
    with reading.listener.working("reading the attention"):
        captured = reading.capture(chosen, layers or None)
    captured.check_in_place("a word is compared by its own row")
    return _Side(reading.notes, position, captured, shown, chosen.heads)


def _compared(
    between: Between, sides: tuple[_Side, _Side], asked: Word, listener: Listener, whole: bool
) -> Answer[Comparison]:
    a, b = sides
    with listener.working("comparing"):
        captures, places = (a.captured, b.captured), (a.position, b.position)
        result = compare(between, *captures, places, layers=a.layers, heads=a.heads, look=asked.looking)
    first, second = (
        replace(side, head=replace(side.head, notes=(*side.head.notes, *read.notes)))
        for side, read in zip(result.sides, sides, strict=True)
    )
    found = replace(result, a=first, b=second)

    def heads() -> Iterator[Overview]:
        """The overview of each side's shown layer, where several heads fit on a page."""
        for side, captured in zip(found.sides, captures, strict=True):
            if whole and len(found.heads) > 1:
                calls = tuple(call for call in captured.calls if call.layer == side.head.layer)
                yield measure_heads(replace(captured, calls=calls), found.heads)

    return Answer(found, beside=lambda: {"heads": (*heads(),)})


def position_of(
    reading: Reading, chosen: Chosen, word: str, looking: Looking, where: str = ""
) -> tuple[Places, str]:
    """Positions of the word, or of several, among the queries, and its text there.

    If only another form of it stands there (`banks`), that is taken, with a notice. An error says `where` the
    word is missing.
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


def compare_senses(
    request: ModelRequest, opening: Opening, asked: InTexts, listener: Listener
) -> Answer[Senses]:
    """Compares the word's output vectors over many texts, and by labels where the texts have them."""
    texts, word, looking = [*labelled_in(asked.texts)], asked.word, asked.looking
    if len(texts) < 2:
        raise InputError("one text is not enough: a word is compared in two or more")
    unlabelled = [text.name for text in texts if not text.label]
    if unlabelled and len(unlabelled) < len(texts):
        raise InputError(f"{unlabelled[0]} has no label, others have: write LABEL, a tab and the text in all")
    inputs_of_each = [replace(asked.inputs, text=text.text, fields=text.fields) for text in texts]
    first, chosen = open_chosen(opening, request, inputs_of_each[0], asked.wanted, listener)
    opened = Opened(first.model, first.task, chosen)
    usages, found = list[Usage](), list[list[ComparedWord]]()
    for i, (text, its_inputs) in enumerate(zip(texts, inputs_of_each, strict=True)):
        reading = first if i == 0 else read_inputs(opened, its_inputs, listener)
        places, name = position_of(reading, chosen, word, looking, text.name)
        with listener.working(f"reading {text.name}"):
            calls = reading.capture(chosen).calls
            found.append([word_in(call, chosen.heads, places, looking) for call in calls])
        usages.append(Usage(text.text, text.label, name, places[0], places))
    by_layer = [np.stack([one.vectors["output"] for one in layer]) for layer in zip(*found, strict=True)]
    labels, read = [text.label for text in texts], asked.read_again
    provenance = first.capture(chosen, chosen.layers[:1]).provenance
    senses = Senses(
        question=word,
        kind=chosen.kind,
        usages=tuple(usages),
        layers=tuple(call.layer for call in calls),
        heads=chosen.heads,
        cosines=np.array([together(vectors) for vectors in by_layer]),
        separation=separation(by_layer, labels, asked.controls, asked.seed) if labels[0] else None,
        certified=tallied(each.verdict for words in found for one in words for each in one.certificates),
        provenance=replace(provenance, read=read, files=digests(read)),
        by=looking.unit,
    )
    return Answer(senses)


def both_fit(fit: Fit | None, *sides: tuple[Reading, Chosen]) -> bool:
    """Whether a page has room for all heads of two sides, judged by one layer of each.

    `fit` refuses where not even one of each has, before the model runs; None where no page is asked for.
    """
    if fit is None:
        return False
    ones = [(reading, replace(chosen, layers=chosen.layers[:1])) for reading, chosen in sides]
    foreseen = [size for one in ones if (size := extent(*one)) is not None]
    if len(foreseen) < len(sides):
        return True
    if any(reading.perceived is not None for reading, _ in sides):
        foreseen = [seen_extent(*one, size) for one, size in zip(ones, foreseen, strict=True)]
    return fit(foreseen)


def stems(word: str) -> set[str]:
    """The lower-case word, and its rests without one ending, three letters or more."""
    small = word.lower()
    cut = {small.removesuffix(ending) + put for ending, put in ENDINGS if small.endswith(ending)}
    return {small} | {each for each in cut if len(each) >= _SHORTEST}


def forms_in(tokens: Tokens, word: str) -> list[int]:
    """Positions of other forms of `word` among the tokens; empty if the word itself is there."""
    names = [token.text.strip() for token in tokens.items]
    if word in names or not word.isalpha():
        return []
    wanted = stems(word)
    return [i for i, name in enumerate(names) if name.isalpha() and wanted & stems(name)]


def pair_cosines(vectors: Float[np.ndarray, "text dim"]) -> Float[np.ndarray, "text text"]:
    """Cosine of every two rows; NaN where one of them is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.clip(rows @ rows.T, -1.0, 1.0))


def together(vectors: Vectors) -> Float[np.ndarray, "text text"]:
    """Pairwise cosines of texts, with the vectors of all heads joined to one."""
    return pair_cosines(vectors.reshape(len(vectors), -1))


def separation(by_layer: Sequence[Vectors], labels: Sequence[str], controls: int, seed: int) -> Separation:
    """Separation of the groups of `labels` in each layer and head, beside other labelings.

    The controls are all other splits where these are at most `controls`, else so many shuffled ones. Raises
    `InputError` where there are no two groups, or no two texts of one.
    """
    numbers = np.array([sorted(set(labels)).index(label) for label in labels])
    real = _same(numbers)
    if real.all():
        raise InputError(f"all texts are labelled '{labels[0]}': two groups are needed")
    if not real.any():
        raise InputError("no two texts have the same label: a group needs two at least")
    sizes = np.bincount(numbers).tolist()
    splits = splits_of(sizes)
    exact = splits - 1 <= controls
    random = np.random.default_rng(seed)
    others = (
        _every_other(numbers, sizes)
        if exact
        else [_same(random.permutation(numbers)) for _ in range(controls)]
    )
    whole = np.array([_pairs(together(vectors)) for vectors in by_layer])
    heads = np.array(
        [[_pairs(pair_cosines(head)) for head in vectors.swapaxes(0, 1)] for vectors in by_layer]
    )
    (within, between), (heads_within, heads_between) = _means(whole, real), _means(heads, real)
    gaps = np.stack([np.subtract(*_means(whole, each)) for each in others])
    of_heads = np.stack([np.subtract(*_means(heads, each)) for each in others])
    (mean, excess, strongest), (heads_mean, heads_excess, heads_strongest) = (
        _beside(*each) for each in ((within - between, gaps), (heads_within - heads_between, of_heads))
    )
    return Separation(
        within=within,
        between=between,
        heads_within=heads_within,
        heads_between=heads_between,
        control_mean=mean,
        heads_control_mean=heads_mean,
        excess=excess,
        heads_excess=heads_excess,
        below=(gaps < within - between - ROUNDING).sum(axis=0).astype(float),
        strongest=strongest,
        heads_strongest=heads_strongest,
        splits=splits,
        exact=exact,
        seed=seed,
    )


def _beside(
    real: Float[np.ndarray, "*any"], others: Float[np.ndarray, "..."]
) -> tuple[Float[np.ndarray, "*any"], Float[np.ndarray, "*any"], Float[np.ndarray, " control"]]:
    """A gap's mean over all labelings, the real one's excess, and the largest excess in each other one.

    An excess is in standard deviations over all labelings, at least `LEAST_SPREAD`.
    """
    every = np.concatenate([real[None], others])
    mean, spread = every.mean(axis=0), np.maximum(every.std(axis=0), LEAST_SPREAD)
    excess = ((every - mean) / spread).reshape(len(every), -1)
    return mean, excess[0].reshape(real.shape), np.fmax.reduce(excess[1:], axis=1)


def _every_other(numbers: Int[np.ndarray, " text"], sizes: Sequence[int]) -> list[Bool[np.ndarray, " pair"]]:
    """Masks of the pairs that share a group, for every split but the real one."""
    real, found = _same(numbers), []
    for groups in _splits(tuple(range(len(numbers))), tuple(sizes)):
        labels = np.empty_like(numbers)
        for label, group in enumerate(groups):
            labels[list(group)] = label
        same = _same(labels)
        if not np.array_equal(same, real):
            found.append(same)
    return found


def _splits(texts: tuple[int, ...], sizes: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """Every split of the texts into groups of these sizes, once each."""
    if not texts:
        yield []
        return
    first, *rest = texts
    for size in sorted(set(sizes)):
        left = list(sizes)
        left.remove(size)
        for others in combinations(rest, size - 1):
            remaining = tuple(each for each in rest if each not in others)
            for more in _splits(remaining, tuple(left)):
                yield [(first, *others), *more]


def _same(numbers: Int[np.ndarray, " text"]) -> Bool[np.ndarray, " pair"]:
    first, second = np.triu_indices(len(numbers), 1)
    return np.asarray(numbers[first] == numbers[second])


def _pairs(cosines: Float[np.ndarray, "text text"]) -> Float[np.ndarray, " pair"]:
    return np.asarray(cosines[np.triu_indices(len(cosines), 1)])


def _means(
    cosines: Float[np.ndarray, "*any pair"], same: Bool[np.ndarray, " pair"]
) -> tuple[Float[np.ndarray, "*any"], Float[np.ndarray, "*any"]]:
    return np.asarray(cosines[..., same].mean(axis=-1)), np.asarray(cosines[..., ~same].mean(axis=-1))
