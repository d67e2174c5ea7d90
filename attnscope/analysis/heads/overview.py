"""Overviews of many heads: measures, the strongest link of each, and weights pooled into few cells.

A cell is the largest weight of a group of queries and keys, not the mean, so that a diagonal or a column one
token wide stays dark. Heads are pooled one layer after another: the weights of all of them are never in
memory at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.heads.head import returned_overview
from attnscope.analysis.heads.view import groups_of, links, without_padding
from attnscope.analysis.scores.dense import ENTROPY, apply_measures, unplaced
from attnscope.analysis.scores.supplies import AllowedPairs, of_calls, of_groups, without_norms
from attnscope.arithmetic import weights_alone
from attnscope.attention import AttentionCall, Capture
from attnscope.capture.following.describe import names_in
from attnscope.capture.returned import Returned
from attnscope.errors import InputError
from attnscope.measures import MEASURES, Need
from attnscope.results import Overview, Special, Thumbnails, Verdict
from attnscope.results.base.groups import Groups, joined, members, regrouped
from attnscope.results.overview import Module
from attnscope.tokens import Tokens
from attnscope.verify import certify_heads
from attnscope.vocabulary import Unit


def measure_heads(
    captured: Capture,
    heads: Sequence[int] | None = None,
    block: int = 0,
    measures: Sequence[str] = ENTROPY,
) -> Overview:
    """Measures, strongest link and certificate of `heads` (default: all captured) in every layer.

    `block` chooses among the separate attentions of layers that make several. `InputError` for layers whose
    axes differ in length, as where a model pools its tokens, since one set of labels does not fit them; and
    where none of the `measures` has a meaning here.
    """
    layers = dict.fromkeys(call.layer for call in captured.calls)
    whole = [captured.call(layer, block=block) for layer in layers]
    calls = [without_padding(call) for call in whole]
    _check_same_axes(calls)
    chosen = tuple(calls[0].weights) if heads is None else tuple(heads)
    weights = [weights_alone(call.operands_of(chosen)).unbind() for call in calls]
    dense = tuple(tuple(each.numpy() for each in row) for row in weights)
    queries, keys = names_in(calls)
    supplies = of_calls(calls, chosen, queries, keys)
    notes = [*captured.remarks(layers)]
    if any(Need.NORMS in MEASURES[name].needs for name in measures):
        notes += without_norms(calls, supplies)
    return Overview(
        kind=calls[0].kind,
        query_tokens=queries,
        key_tokens=keys,
        scores=apply_measures(
            weights,
            measures,
            layers=tuple(layers),
            heads=chosen,
            unplaced=unplaced(calls[0].kind, calls[0].query_tokens, calls[0].key_tokens),
            supplies=supplies,
        ),
        **links(dense, queries, keys, calls[0].kind),
        weights=dense,
        certificates=tuple(certify_heads(call, chosen) for call in whole),
        provenance=captured.provenance,
        tower=captured.tower,
        sharing=tuple(call.heads // call.key_heads for call in calls),
        notes=tuple(dict.fromkeys(notes)),
        modules=tuple(
            Module(
                call.module,
                call.heads,
                captured.layers,
                call.block,
                captured.blocks(call.layer),
                captured.notes(call.layer),
            )
            for call in calls
        ),
    )


def _check_same_axes(calls: Sequence[AttentionCall]) -> None:
    first = calls[0]
    for call in calls[1:]:
        if (len(call.query_tokens), len(call.key_tokens)) != (len(first.query_tokens), len(first.key_tokens)):
            raise InputError(
                f"layers {first.layer} and {call.layer} differ in their numbers of queries and keys: "
                "show them one by one"
            )


def viewed_overview(
    overview: Overview,
    *,
    by: Unit = Unit.TOKEN,
    special: Special = Special.SHOW,
    allowed: AllowedPairs | None = None,
) -> Overview:
    """The overview `by` a unit or without special tokens, measured anew on the regrouped weights.

    Positions count the words, or the tokens, that are left. `allowed` gives the mask by index of layer and
    head. `InputError` for rows that special tokens were only hidden in, which have no entropy.
    """
    if special is Special.HIDE:
        raise InputError(
            "an overview shows entropies, and rows with hidden tokens have none: "
            "--special renormalise, or give one --layer and one --head"
        )
    queries = groups_of(overview.query_tokens, "query", by, special)
    keys = groups_of(overview.key_tokens, "key", by, special)
    scaled = special is Special.RENORMALISE
    weights = tuple(
        tuple(regrouped(each, queries, keys, renormalise=scaled) for each in row)
        for row in overview.dense_weights
    )
    asked, given = joined(overview.query_tokens, queries, by), joined(overview.key_tokens, keys, by)
    rows, columns = members(queries, len(overview.query_tokens)), members(keys, len(overview.key_tokens))

    def seen(layer: int, head: int) -> Tensor:
        assert allowed is not None, "asked where it is known"
        return torch.from_numpy(rows @ allowed(layer, head).numpy() @ columns.T)

    measured = apply_measures(
        [[torch.from_numpy(each) for each in row] for row in weights],
        tuple(overview.scores),
        layers=overview.layers,
        heads=overview.heads,
        unplaced=unplaced(overview.kind, overview.query_tokens, overview.key_tokens),
        by=by,
        supplies=of_groups(asked, given, None if allowed is None else seen, by),
    )
    return replace(
        overview,
        query_tokens=asked,
        key_tokens=given,
        scores=measured,
        **links(weights, asked, given, overview.kind, ordinary=overview.ordinary),
        weights=weights,
        by=by,
        special=special,
        tokens=overview,
    )


MANY_HEADS = 16  # side by side, from which on a thumbnail has fewer cells
_CELLS = {False: 64, True: 32}

Cells = Float[np.ndarray, "row column"]
Weights = Float[np.ndarray, "query key"]
Allowed = Bool[np.ndarray, "query key"]


def steps_for(queries: int, keys: int, heads: int) -> tuple[int, int]:
    """Queries and keys per thumbnail cell, so that no side has more than 64 cells (32 for many heads)."""
    most = _CELLS[heads > MANY_HEADS]
    return -(-queries // most), -(-keys // most)


def pooled(
    weights: Float[np.ndarray, "query key"], allowed: Bool[np.ndarray, "query key"], steps: tuple[int, int]
) -> Cells:
    """The largest allowed weight in each block of `steps` queries by keys; NaN where none is allowed."""
    seen = np.where(allowed, weights, np.nan)
    for axis, step in enumerate(steps):
        seen = np.fmax.reduceat(seen, np.arange(0, seen.shape[axis], step), axis=axis)
    return np.asarray(seen)


@dataclass(frozen=True, eq=False)
class _Layer:
    layer: int
    query_tokens: Tokens
    key_tokens: Tokens
    cells: list[Cells]
    verdicts: tuple[Verdict, ...]

    @property
    def size(self) -> tuple[int, int]:
        return len(self.query_tokens), len(self.key_tokens)


@dataclass(frozen=True)
class View:
    """A grouping of weights: by token or word, with or without special tokens."""

    by: Unit = Unit.TOKEN
    special: Special = Special.SHOW

    def seen(
        self, weights: Weights, allowed: Allowed, queries: Tokens, keys: Tokens
    ) -> tuple[Cells, Bool[np.ndarray, "row column"]]:
        """Weights and allowed pairs regrouped by this view; unchanged for tokens with special ones shown."""
        if not self.by.joins and self.special is Special.SHOW:
            return weights, allowed
        rows, columns = self._groups(queries, "query"), self._groups(keys, "key")
        scaled = self.special is Special.RENORMALISE
        left, right = (members(each, len(side)) for each, side in ((rows, queries), (columns, keys)))
        return regrouped(weights, rows, columns, renormalise=scaled), left @ allowed @ right.T

    def tokens(self, queries: Tokens, keys: Tokens) -> tuple[Tokens, Tokens]:
        """The labels of rows and columns in this view."""
        if not self.by.joins and self.special is Special.SHOW:
            return queries, keys
        asked = joined(queries, self._groups(queries, "query"), self.by)
        return asked, asked if queries == keys else joined(keys, self._groups(keys, "key"), self.by)

    def _groups(self, tokens: Tokens, side: str) -> Groups:
        return groups_of(tokens, side, self.by, self.special)


PLAIN = View()


def thumbnails(
    parts: Iterable[Capture | Returned], heads: Sequence[int], block: int = 0, view: View = PLAIN
) -> Thumbnails:
    """Thumbnails of these heads in all layers of `parts`, which are read and released one by one.

    `InputError` for layers that look at axes of different lengths, and for a `view` that leaves nothing.
    """
    layers: list[_Layer] = []
    notes: list[str] = []
    for part in parts:
        whole = part
        if isinstance(part, Returned):
            layers += _of_returned(part, heads, view)
        else:
            layers += _of_capture(part, heads, block, view)
        notes += _notes(part)
        if odd := next((each for each in layers if each.size != layers[0].size), None):
            raise InputError(
                f"layers {layers[0].layer} and {odd.layer} differ in their numbers of queries and keys: "
                "show them one by one"
            )
    queries, keys = names_in(layers)
    return Thumbnails(
        kind=whole.kind if isinstance(whole, Returned) else whole.calls[0].kind,
        query_tokens=queries,
        key_tokens=keys,
        layers=tuple(each.layer for each in layers),
        heads=tuple(heads),
        steps=steps_for(*layers[0].size, len(heads)),
        weights=np.array([each.cells for each in layers]),
        verdicts=tuple(each.verdicts for each in layers),
        provenance=whole.provenance,
        tower=whole.tower,
        notes=tuple(dict.fromkeys(notes)),
        by=view.by,
        special=view.special,
    )


def made_small(overview: Overview, allowed: AllowedPairs, view: View = PLAIN) -> Thumbnails:
    """Thumbnails from an overview in memory; `allowed` gives the mask by index of layer and head."""
    sides = overview.query_tokens, overview.key_tokens
    asked, given = view.tokens(*sides)
    steps = steps_for(len(asked), len(given), len(overview.heads))

    def small(i: int, j: int, weights: Weights) -> Cells:
        return pooled(*view.seen(weights, allowed(i, j).numpy(), *sides), steps)

    return Thumbnails(
        kind=overview.kind,
        query_tokens=asked,
        key_tokens=given,
        layers=overview.layers,
        heads=overview.heads,
        steps=steps,
        weights=np.array(
            [
                [small(i, j, each) for j, each in enumerate(row)]
                for i, row in enumerate(overview.dense_weights)
            ]
        ),
        verdicts=tuple(tuple(each.verdict for each in row) for row in overview.certificates),
        provenance=overview.provenance,
        tower=overview.tower,
        notes=overview.notes,
        by=view.by,
        special=view.special,
    )


def _of_capture(part: Capture, heads: Sequence[int], block: int, view: View) -> Iterator[_Layer]:
    for layer in dict.fromkeys(call.layer for call in part.calls):
        whole = part.call(layer, block=block)
        call = without_padding(whole)
        sides = call.query_tokens, call.key_tokens
        asked, given = view.tokens(*sides)
        steps, cells = steps_for(len(asked), len(given), len(heads)), list[Cells]()
        for head in heads:
            weights, allowed = weights_alone(call.operands(head))[0], call.allowed_matrix(head)
            cells.append(pooled(*view.seen(weights.numpy(), allowed.numpy(), *sides), steps))
        verdicts = tuple(proof.verdict for proof in certify_heads(whole, heads))
        yield _Layer(layer, asked, given, cells, verdicts)


def _of_returned(part: Returned, heads: Sequence[int], view: View) -> Iterator[_Layer]:
    """Pooled layers of returned weights; a zero weight counts as allowed, since no mask is known."""
    overview = returned_overview(part, heads)
    sides = overview.query_tokens, overview.key_tokens
    queries, keys = view.tokens(*sides)
    steps, verdicts = steps_for(len(queries), len(keys), len(heads)), (Verdict.UNCERTIFIED,) * len(heads)
    for layer, dense in zip(overview.layers, overview.dense_weights, strict=True):
        every = (view.seen(each, np.ones(each.shape, bool), *sides) for each in dense)
        cells = [pooled(weights, allowed, steps) for weights, allowed in every]
        yield _Layer(layer, queries, keys, cells, verdicts)


def _notes(part: Capture | Returned) -> list[str]:
    if isinstance(part, Returned):
        return [part.reason, *(note for layer in part.layers for note in layer.notes)]
    return [*part.remarks(call.layer for call in part.calls)]
