"""Answers `find`: ranks heads by attention to a target, beside control texts; also links between words."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.controls import ControlTexts
from attnscope.analysis.prompts import Figures, OnePrompt, Seen, Spans, of_head
from attnscope.analysis.rows import AnyRows, Layer, Lens, check_numbers, lens, rows_of, verdicts_of
from attnscope.analysis.scores.dense import unplaced
from attnscope.attention import AttentionCall, Capture
from attnscope.capture.following.describe import names_in
from attnscope.capture.layer_answers import entering
from attnscope.capture.returned import Returned
from attnscope.errors import DoesNotFitError, InputError, listed
from attnscope.model.anatomy.sites import layer_stacks
from attnscope.results import Pattern, Special
from attnscope.results.base.evidence import LEAST, Explained, Link, Weights, telling_pairs
from attnscope.results.claims.prompts import Asked, Figure
from attnscope.results.claims.ranking import LEVEL
from attnscope.session.choosing import Chosen
from attnscope.session.question import Answer
from attnscope.session.questions.exchanging import (
    Controls,
    Exchange,
    alone,
    exchange_of,
    layers_of,
    rounding,
    runs,
)
from attnscope.session.questions.heads import tell_windows
from attnscope.session.questions.rows import attention_of, check_whole_fits, controls_by_rows, may_read_rows
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens
from attnscope.verbs.find.question import Find, FindLinks
from attnscope.verbs.find.rank import (
    ByHead,
    Likeness,
    Target,
    beside,
    beside_controls,
    numbers,
    pair,
    pattern_keys,
)
from attnscope.verbs.find.result import Finding, Links, Sought
from attnscope.vocabulary import Kind

_OF_KEYS = (Pattern.FIRST, Pattern.PUNCTUATION, Pattern.SPECIAL)  # ignore the query's position
_OF_WORDS = (Pattern.SAME, Pattern.INDUCTION, Pattern.PUNCTUATION)  # need text tokens


def find(reading: Reading, chosen: Chosen, asked: Find) -> Finding:
    """Rank the chosen heads by a pair, a pattern or likeness, each score beside its scores in control texts.

    Raises `InputError` where the target has no meaning for this attention, and for inputs without controls.
    """
    queries = _rows_asked(reading, chosen, asked)
    attention = attention_of(reading, chosen, queries)
    if reading.perceived is not None and isinstance(attention, Capture):
        tell_windows(attention, reading, chosen)
    layers, whole = layers_of(attention, chosen)
    seen = _lens(asked, *names_in(layers))
    sought = _sought(asked, seen)
    target = _target(sought, layers, chosen, seen)
    left_out = chosen.left_out
    own = numbers(target, layers, chosen.heads, seen, left_out)
    key = () if sought.key is None else seen.keys[sought.key]
    exchange = exchange_of(reading, chosen, names_in(whole)[1], key)
    controls = _controls(reading, chosen, sought, asked, exchange, seen)

    def alike(others: Sequence[Layer]) -> bool:
        again = numbers(target, others, chosen.heads, seen, left_out)
        return bool(_strays(own, again) <= rounding(whole))

    control_runs: Iterator[Sequence[AnyRows]]
    if queries is None:
        control_runs = runs(reading, chosen, controls, exchange, layers, alike)
    else:
        control_runs = controls_by_rows(reading, chosen, controls, exchange, queries)
    crosses = chosen.kind is Kind.CROSS
    with reading.listener.working(f"reading {len(controls)} controls"):
        notes = (*notes_of(attention, layers), *reading.notes)
        if reading.captured is not None:
            once = alone(reading, chosen, exchange.name, reading.inputs[exchange.name])
            strays = _strays(own, numbers(target, once, chosen.heads, seen, left_out))
            if strays > rounding(whole):
                of_writing = f"its numbers lie up to {strays:.2g} from those of writing"
                notes += (f"read at once, as the controls are, {of_writing}",)
        away = wider = None
        if sought.key is not None:
            away = exchange.went(controls, key), exchange.changed(controls, key)
        if isinstance(target, Target) and not crosses:
            wider = exchange.wider(controls, seen.queries, seen.keys, target.links)
        summary, stayed, followed = beside_controls(
            target, own, control_runs, chosen.heads, seen, away, left_out, wider
        )
    return Finding(
        question=sought,
        kind=chosen.kind,
        query_tokens=seen.query_tokens,
        key_tokens=seen.key_tokens,
        layers=tuple(layer.layer for layer in layers),
        heads=chosen.heads,
        rows=len(target.queries) if isinstance(target, Target) else len(seen.queries),
        weights=own,
        **beside(target, layers, chosen.heads, seen, crosses=crosses),
        stayed=stayed,
        key_lengths=None if crosses or queries is not None else _lengths(reading, chosen, key),
        followed=followed,
        controls=summary.described(controls, exchange.name),
        verdicts=tuple(verdicts_of(layer, chosen.heads) for layer in whole),
        by_rows=queries is not None,
        apart=chosen.apart,
        provenance=attention.provenance,
        tower=attention.tower,
        notes=notes,
        by=asked.looking.unit,
        special=asked.looking.treatment,
        links=target.links if isinstance(target, Target) else np.zeros((0, 2), dtype=int),
    )


def _rows_asked(reading: Reading, chosen: Chosen, asked: Find) -> tuple[int, ...] | None:
    """Query positions whose rows alone are read in a long text; None to read all rows.

    `DoesNotFitError` where all rows do not fit into memory.
    """
    if asked.query is None or not may_read_rows(reading, chosen):
        check_whole_fits(reading, chosen, "this question")
        return None
    seen = _lens(asked, *reading.sides(chosen.kind))
    return None if seen.query is None else seen.queries[seen.query]


def _lengths(reading: Reading, chosen: Chosen, key: Sequence[int]) -> Float[np.ndarray, " layer"] | None:
    """Norm of the hidden state of `key` over the median token's norm, at the entry of each chosen layer.

    None for pictures, sounds, generated or padded text, and models without one plain stack of layers.
    """
    tokens, module = reading.tokens_of(chosen.kind), reading.model.module
    if not key or reading.perceived is not None or reading.captured is not None:
        return None
    path = chosen.tower.sites[0].path
    every = layer_stacks(module, reading.model.sites)
    stacks = [stack for name, stack in every.items() if path.startswith(f"{name}.")]
    states = list[Tensor]()
    if len(stacks) == 1:
        with suppress(InputError), reading.running():
            states = entering(module, reading.inputs, stacks[0])
    if len(states) <= max(chosen.layers) or any(each.shape[:2] != (1, len(tokens)) for each in states):
        return None
    lengths = np.array([states[layer][0].float().norm(dim=-1).cpu().numpy() for layer in chosen.layers])
    middle = np.maximum(np.median(lengths, axis=1), np.finfo(np.float32).tiny)
    return np.asarray(lengths[:, list(key)].mean(axis=1) / middle, dtype=float)


def _strays(own: ByHead, others: ByHead) -> float:
    """Largest difference of two arrays of scores; infinite where NaN is not at the same heads."""
    if not np.array_equal(np.isnan(own), np.isnan(others)):
        return float("inf")
    return float(np.nanmax(np.abs(own - others), initial=0.0))


def check_names(chosen: Chosen, queries: Tokens | None, keys: Tokens, asked: Find) -> None:
    """Raise `InputError` for --from or --to tokens missing in the text, before weights load."""
    if queries is None:
        _lens(replace(asked, query=0) if asked.key is not None else asked, keys, keys)
    else:
        _lens(asked, queries, keys)


def _lens(asked: Find, queries: Tokens, keys: Tokens) -> Lens:
    looking = asked.looking
    try:
        return lens(queries, keys, query=asked.query, key=asked.key, **looking.how)
    except InputError:
        sides = ((asked.query, queries), (asked.key, keys))
        for name, tokens in sides if looking.treatment is not Special.SHOW else ():
            if any(token.special and name in (token.name, token.piece) for token in tokens.items):
                raise InputError(f"'{name}' is left out by --special {looking.treatment}") from None
        raise


def _sought(asked: Find, seen: Lens) -> Sought:
    if asked.like_head is not None:
        return Sought(like=asked.like_head)
    if asked.pattern is not None:
        return Sought(pattern=Pattern(asked.pattern))
    assert seen.query is not None, "a pair, where nothing else is sought"
    assert seen.key is not None, "a pair has both"
    units = seen.queries[seen.query], seen.keys[seen.key]
    query, key = ((), ()) if seen.by.joins else (unit if len(unit) > 1 else () for unit in units)
    return Sought(seen.query, seen.key, query_span=query, key_span=key)


def _target(sought: Sought, layers: Sequence[Layer], chosen: Chosen, seen: Lens) -> Target | Likeness:
    queries, keys = seen.query_tokens, seen.key_tokens
    if sought.like is not None:
        return _likeness(sought.like, layers)
    asked = range(len(queries)) if sought.query is None else (sought.query,)
    visible = np.any([seen.visible(layer, chosen.heads, asked) for layer in layers], axis=0)
    if sought.pattern is None:
        assert sought.query is not None, "a pair, where nothing else is sought"
        assert sought.key is not None, "a pair has both"
        if not visible[0, sought.key]:
            named = f"{queries.named(sought.query)} may not look at {keys.named(sought.key)}"
            raise InputError(f"{named} in any of these heads: it is masked, as later tokens are in a decoder")
        return pair(sought.query, sought.key, len(keys))
    _check_meaning(sought.pattern, chosen, seen)
    meant = pattern_keys(sought.pattern, queries, keys) & visible
    if not meant.any():
        where = "text" if keys.texts else "input"
        why = f"no query of this {where} has a key of pattern {sought.pattern}"
        raise InputError(f"{why} that it may look at")
    return Target.of(meant)


def _check_meaning(pattern: Pattern, chosen: Chosen, seen: Lens) -> None:
    queries, keys = seen.query_tokens, seen.key_tokens
    there = list(Pattern)
    if why := unplaced(chosen.kind, queries, keys):
        there = [pattern for pattern in there if pattern in _OF_KEYS]
    sensed = {place for stretch in keys.stretches for place in stretch.positions}
    if all(i in sensed or token.special for i, token in enumerate(keys.items)) and sensed:
        there = [pattern for pattern in there if pattern not in _OF_WORDS]
        why = why if pattern not in _OF_WORDS else "patches and frames are no words"
    if seen.special is not Special.SHOW and pattern in there and pattern is Pattern.SPECIAL:
        raise InputError(f"--special {seen.special} leaves special tokens out: none can be looked at")
    if pattern not in there:
        raise InputError(f"no pattern {pattern} here: {why}; there are {', '.join(there)}")


def _likeness(like: tuple[int, int], layers: Sequence[Layer]) -> Likeness:
    layer, head = like
    there = [layer.layer for layer in layers]
    if layer not in there:
        raise InputError(f"--like L{layer}H{head}: layers looked at are {listed(there)}")
    place = there.index(layer)
    its = layers[place]
    count = its.heads if isinstance(its, AttentionCall) else len(its.weights)
    if not 0 <= head < count:
        raise InputError(f"--like L{layer}H{head}: layer {layer} has heads 0-{count - 1}")
    return Likeness(place, head)


def _controls(
    reading: Reading, chosen: Chosen, sought: Sought, asked: Find, exchange: Exchange, seen: Lens
) -> ControlTexts:
    crossing = chosen.kind is Kind.CROSS
    asks = () if sought.query is None or crossing else seen.queries[sought.query]
    key = () if sought.key is None else seen.keys[sought.key]
    controls = exchange.controls(Controls(asked.controls, asked.seed, asks, key, seen.by))
    if len(controls) < controls.wanted:
        there = "is 1 control" if len(controls) == 1 else f"are {len(controls)} controls"
        left = f"there {there}, not {controls.wanted}"
        reading.listener.notice(f"{left}: its parts can stand in no more orders")
    if crossing and exchange.name == "input_ids":
        return replace(controls, how=f"{controls.how}; so does what the decoder reads")
    return controls


def notes_of(attention: Capture | Returned, layers: Sequence[Layer]) -> tuple[str, ...]:
    """Notes on how the attention was read: why only returned weights, or remarks on layers."""
    if isinstance(attention, Returned):
        return tuple(
            dict.fromkeys((attention.reason, *(n for layer in attention.layers for n in layer.notes)))
        )
    return attention.remarks(layer.layer for layer in layers)


MOST_KEPT, MOST_WEIGHTS = 1000, 25_000_000  # links; weights (memory holds about six times as many)


def links_in(reading: Reading, chosen: Chosen, asked: FindLinks) -> Answer[Links]:
    """Find links between words, in all heads, that position, distance, key or even attention do not explain.

    The answer also holds the weights of all pairs of words, for comparison over several prompts.

    `InputError` for pictures and sounds, texts that the model goes on with, texts without controls, and where
    all weights have no room.
    """
    if reading.perceived is not None:
        raise InputError("links are sought between words: name a pair with --from and --to, or a --pattern")
    if chosen.apart:
        raise InputError("links are sought in whole lists of heads: name these (--layer, --head), or a pair")
    if reading.asked.goes_on:
        raise InputError("links are sought in a text that is there: leave --generate out")
    both, heads = tuple(map(len, reading.sides(chosen.kind))), len(chosen.layers) * len(chosen.heads)
    if (count := heads * both[0] * both[1]) > MOST_WEIGHTS:
        raise DoesNotFitError(
            f"all links of {both[0]:,} x {both[1]:,} tokens in {heads:,} heads are {count:,} weights, and "
            f"{MOST_WEIGHTS:,} have room: choose layers with --layer, or name a pair with --from and --to"
        )
    with reading.listener.working("reading the attention"):
        attention = reading.attention(chosen)
    layers, whole = layers_of(attention, chosen)
    queries, keys = names_in(layers)
    crosses = chosen.kind is Kind.CROSS
    exchange = exchange_of(reading, chosen, names_in(whole)[1], ())
    controls = exchange.controls(Controls(asked.controls, asked.seed))
    own = _weights(layers, chosen)

    def alike(others: Sequence[Layer]) -> bool:
        return bool(np.abs(_weights(others, chosen) - own).max() <= rounding(whole))

    def texts() -> Iterator[Read]:
        yield Read(own, queries, keys)
        read = runs(reading, chosen, controls, exchange, layers, alike)
        for control, went in zip(read, exchange.went(controls, range(len(keys))), strict=True):
            check_numbers(control)
            other = in_order(keys, np.argsort(went))
            yield Read(_weights(control, chosen), queries if crosses else other, other)

    with reading.listener.working(f"reading {len(controls)} controls"):
        seen = telling_links(texts(), crosses=crosses, causal=chosen.kind is Kind.DECODER)
    links = tuple(
        replace(link, layer=layers[link.layer].layer, head=chosen.heads[link.head]) for link in seen.links
    )
    found = Links(
        kind=chosen.kind,
        query_tokens=queries,
        key_tokens=keys,
        layers=tuple(layer.layer for layer in layers),
        heads=chosen.heads,
        links=links[:MOST_KEPT],
        more=max(0, len(links) - MOST_KEPT),
        best_of_controls=seen.best,
        how=controls.how,
        seed=asked.seed,
        ids=controls.ids,
        input=exchange.name,
        verdicts=tuple(verdicts_of(layer, chosen.heads) for layer in whole),
        provenance=attention.provenance,
        tower=attention.tower,
        notes=(*notes_of(attention, layers), *reading.notes),
    )
    return Answer(found, links=InPrompt(found, own, seen.explained))


def _weights(layers: Sequence[Layer], chosen: Chosen) -> Weights:
    return np.asarray(np.stack([rows_of(layer, chosen.heads) for layer in layers]))


@dataclass(frozen=True, eq=False)
class Telling:
    """Links of the first text, most evidence first; `layer` and `head` of a link are indices into the arrays.

    `best` is the largest evidence of any link in each control text, 0 where no link has any. `explained` is
    the largest simpler explanation of each weight of the first text, NaN where there is no pair of words.
    """

    links: tuple[Link, ...]
    best: Float[np.ndarray, " control"]
    explained: Weights


@dataclass(frozen=True, eq=False)
class Read:
    """Attention weights of all heads in one text, with its query and key tokens."""

    weights: Weights
    queries: Tokens
    keys: Tokens


def telling_links(texts: Iterable[Read], *, crosses: bool, causal: bool) -> Telling:
    """Links of the first text with evidence >= `LEAST`, and the best evidence in each control text."""
    others = iter(texts)
    text = next(others)
    shape, count = text.weights.shape, 0
    most, second, left = np.full(shape, -1.0), np.zeros(shape), np.zeros(shape)
    whose = np.zeros(shape, dtype=np.int32)
    for count, read in enumerate(chain([text], others)):
        pairs = telling_pairs(read.queries, read.keys, crosses=crosses, causal=causal)
        for i, layer in enumerate(read.weights):
            explained = Explained.of(np.nan_to_num(layer), crosses=crosses)
            weights, more = explained.weights, explained.weights > most[i]
            np.maximum(second[i], np.minimum(most[i], weights), out=second[i])
            np.maximum(most[i], weights, out=most[i])
            np.copyto(left[i], np.where(pairs & explained.allowed, explained.most, np.inf), where=more)
            whose[i][more] = count
    evidence = most - np.maximum(second, left)
    best = np.zeros(count + 1)
    np.maximum.at(best, whose.ravel(), np.maximum(evidence, 0.0).ravel())
    links, told = list[Link](), telling_pairs(text.queries, text.keys, crosses=crosses, causal=causal)
    others_most = np.where(whose == 0, second, most)
    for i, layer in enumerate(text.weights):
        explained = Explained.of(np.nan_to_num(layer), crosses=crosses)
        others_most[i] = np.where(told & explained.allowed, np.fmax(others_most[i], explained.most), np.nan)
        mine = np.argwhere((whose[i] == 0) & (evidence[i] >= LEAST)).tolist()
        links += [
            explained.link(i, (j, query, key), float(second[i, j, query, key])) for j, query, key in mine
        ]
    return Telling(tuple(sorted(links, key=lambda link: -link.evidence)), best[1:], others_most)


def in_order(tokens: Tokens, sources: Int[np.ndarray, " token"]) -> Tokens:
    """Tokens permuted as in a control: position i holds token `sources[i]`."""
    return replace(tokens, items=tuple(tokens.items[int(source)] for source in sources))


Place = tuple[int, int]
Pair = tuple[str, str]
_MOST = 200  # figures reported


@dataclass(frozen=True, eq=False)
class InPrompt:
    """Links of one prompt, with the weight of every pair of its words in every head.

    `explained` is the largest simpler explanation of each weight: a control text at these positions, other
    queries at that distance or to that key, even attention; NaN where there is no pair of words.
    """

    links: Links
    weights: Weights
    explained: Weights

    def together(self, every: Sequence["InPrompt"]) -> tuple[list[Figures], int, str]:
        """Links that prompts share: figures by prompt, the number of candidates, and a sentence on it."""
        found, pairs = figures_of_links(every)
        among = pairs * self.weights.shape[0] * self.weights.shape[1]
        if not pairs:
            why = "no two words or fields stand in most of these prompts, as in a template they do (--fill)"
            return found, among, why
        of = f"{pairs:,} pairs of words or fields" if pairs > 1 else "one pair of words or fields"
        return found, among, f"{among:,} links were held against one another: {of} in every head"


def figures_of_links(every: Sequence[InPrompt]) -> tuple[list[Figures], int]:
    """Figures by prompt of links whose mean weight exceeds its explanation; the number of word pairs tried.

    Only pairs that occur in at least half of the prompts, and in two or more, count.
    """
    pairs = [_pairs(each) for each in every]
    times = Counter(pair for each in pairs for pair in each)
    shared = [pair for pair, count in times.items() if count >= max(2, len(every) / 2)]
    found: list[Figures] = [{} for _ in every]
    told = [
        (float(np.mean([seen.value - seen.control for _, seen in seen_in])), figure, seen_in)
        for pair in shared
        for figure, seen_in in _of_pair(pair, every, pairs)
    ]
    told = sorted((each for each in told if each[0] >= LEAST), key=lambda each: -each[0])
    for _, figure, seen_in in told[:_MOST]:
        for number, seen in seen_in:
            found[number][figure] = seen
    return found, len(shared)


def _of_pair(
    pair: Pair, every: Sequence[InPrompt], pairs: Sequence[dict[Pair, list[Place]]]
) -> Iterator[tuple[Figure, list[tuple[int, Seen]]]]:
    seen = {number: _seen(every[number], its[pair]) for number, its in enumerate(pairs) if pair in its}
    layers, heads = every[0].links.layers, every[0].links.heads
    for i, layer in enumerate(layers):
        for j, head in enumerate(heads):
            name = f"L{layer} H{head} from {pair[0]} at {pair[1]}"
            yield (
                Figure(name, "weight", layer, head),
                [(number, its(i, j)) for number, its in seen.items()],
            )


def _seen(one: InPrompt, places: Sequence[Place]) -> Callable[[int, int], Seen]:
    queries, keys = (list(side) for side in zip(*places, strict=True))
    weights, explained = (each[:, :, queries, keys] for each in (one.weights, one.explained))
    best = (weights - explained).argmax(axis=2)
    out = {
        (link.layer, link.head, link.query, link.key)
        for link in one.links.links
        if one.links.chance(link) <= LEVEL
    }

    def at(i: int, j: int) -> Seen:
        k = int(best[i, j])
        place = (one.links.layers[i], one.links.heads[j], *places[k])
        return Seen(float(weights[i, j, k]), float(explained[i, j, k]), stands=place in out)

    return at


def _pairs(one: InPrompt) -> dict[Pair, list[Place]]:
    queries, keys = called(one.links.query_tokens), called(one.links.key_tokens)
    found = dict[Pair, list[Place]]()
    for query, key in np.argwhere(~np.isnan(one.explained[0, 0])).tolist():
        if queries[query] != keys[key]:
            found.setdefault((queries[query], keys[key]), []).append((query, key))
    return found


def called(tokens: Tokens) -> list[str]:
    """Name of every token: its field or its quoted word, with `#n` where the name occurs several times."""
    names = [token.text.strip() or token.name for token in tokens.items]
    times, nth = Counter(names), Counter[str]()
    told = []
    for name in names:
        nth[name] += 1
        told.append(f"“{name}”" + (f"#{nth[name]}" if times[name] > 1 else ""))
    several, of_name = Counter(each.name for each in tokens.fields), Counter[str]()
    for field in tokens.fields:
        of_name[field.name] += 1
        which = f"#{of_name[field.name]}" if several[field.name] > 1 else ""
        for place in field.positions:
            told[place] = f"field:{field.name}{which}"
    return told


def figures(result: Finding, spans: Spans) -> OnePrompt:
    """Score of each head in one prompt, beside its control: mean over control texts or other queries."""
    measured, found = "distance" if result.smaller_is_better else "weight", dict[Figure, Seen]()
    for i, j in result.places:
        own, control = float(result.weights[i, j]), float(result.controls.mean[i, j])
        if result.elsewhere is not None:  # the weight of other queries is a control too
            control = float(np.fmax(control, result.elsewhere[i, j]))
        stands = bool(np.isfinite(own)) and result.stands_out((i, j))
        found[of_head(result.layers[i], result.heads[j], measured)] = Seen(own, control, stands=stands)
    return OnePrompt(Asked.LIKE if result.smaller_is_better else Asked.FIND, found)
