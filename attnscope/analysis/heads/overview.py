"""Many heads at once: how focused each is, and its strongest link; between tokens, or between words."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attnscope.analysis.heads.view import groups_of, links, without_padding
from attnscope.analysis.scores.dense import ENTROPY, apply_measures, unplaced
from attnscope.analysis.scores.supplies import AllowedPairs, of_calls, of_groups, without_norms
from attnscope.arithmetic import weights_alone
from attnscope.attention import AttentionCall, Capture
from attnscope.capture.following.describe import names_in
from attnscope.errors import InputError
from attnscope.measures import MEASURES, Need
from attnscope.results import Overview, Special
from attnscope.results.base.groups import joined, members, regrouped
from attnscope.results.overview import Module
from attnscope.verify import certify_heads
from attnscope.vocabulary import Unit


def measure_heads(
    captured: Capture,
    heads: Sequence[int] | None = None,
    block: int = 0,
    measures: Sequence[str] = ENTROPY,
) -> Overview:
    """Measures, strongest link and certificate of `heads` (default all captured) in every layer.

    `block` chooses among the separate attentions of layers that make several. `InputError` for layers that
    look at axes of different lengths, as where a model pools its tokens: one set of labels does not fit
    them; and for `measures` of which none has a meaning here.
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
    """The overview `by` a unit, or without special tokens; measures and links are those of the new rows.

    Positions count the words, or the tokens, that are left. `allowed` says by the place of a layer and of a
    head where which tokens may look.

    `InputError` for rows that special tokens were only hidden in, which have no entropy.
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
