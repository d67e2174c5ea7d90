"""Many heads at once: how focused each is, and its strongest link."""

from collections.abc import Sequence

from attnscope.analysis.heads.links import links
from attnscope.analysis.padding import without_padding
from attnscope.analysis.scores.dense import ENTROPY, apply_measures, unplaced
from attnscope.analysis.scores.supplies import of_calls, without_norms
from attnscope.attention import AttentionCall, Capture
from attnscope.errors import InputError
from attnscope.measures import MEASURES, Need
from attnscope.results import Overview
from attnscope.sdpa import weights_alone
from attnscope.verify import certify_heads


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
    labelled = max(calls, key=lambda call: call.standing.rank)  # what is numbered in one is so for all
    supplies = of_calls(calls, chosen, labelled.query_tokens, labelled.key_tokens)
    notes = [note for layer in layers for note in captured.notes(layer)]
    if any(Need.NORMS in MEASURES[name].needs for name in measures):
        notes += without_norms(calls, supplies)
    return Overview(
        kind=calls[0].kind,
        query_tokens=labelled.query_tokens,
        key_tokens=labelled.key_tokens,
        scores=apply_measures(
            weights,
            measures,
            layers=tuple(layers),
            heads=chosen,
            unplaced=unplaced(calls[0].kind, calls[0].query_tokens, calls[0].key_tokens),
            supplies=supplies,
        ),
        **links(dense, labelled.query_tokens, labelled.key_tokens)._asdict(),
        weights=dense,
        certificates=tuple(certify_heads(call, chosen) for call in whole),
        provenance=captured.provenance,
        tower=captured.tower,
        sharing=tuple(call.heads // call.key_heads for call in calls),
        notes=tuple(dict.fromkeys(notes)),
    )


def _check_same_axes(calls: Sequence[AttentionCall]) -> None:
    first = calls[0]
    for call in calls[1:]:
        if (len(call.query_tokens), len(call.key_tokens)) != (len(first.query_tokens), len(first.key_tokens)):
            raise InputError(
                f"layers {first.layer} and {call.layer} differ in their numbers of queries and keys: "
                "show them one by one"
            )
