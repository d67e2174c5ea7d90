"""Replaces heads' outputs, or other parts' vectors: zeros, means over control texts, another text's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.analysis.controls import batches, control_texts, inputs_with
from attnscope.capture.intervening.changes import Answers, Cut, Place, Put, Tap, What, Zero
from attnscope.capture.intervening.passing import answers_to
from attnscope.capture.intervening.taps import handed
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import Site
from attnscope.reference import exact
from attnscope.results.claims.effect import ControlIds, Method
from attnscope.spans import Span
from attnscope.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Replacement:
    """The values that replace every head's output, and their description.

    `output` is the model's output for the other text, if any, and `mean_over` the texts averaged over. `rows`
    replace the vectors of other parts at taps.

    """

    method: Method
    what: What
    how: str
    output: Any = None
    mean_over: tuple[ControlIds, ...] = ()
    rows: Mapping[Tap, Tensor] = field(default_factory=dict)


def zeros(taps: Sequence[Tap] = ()) -> Replacement:
    """Replacement by zeros of each head's output, or of the vectors at the taps."""
    what = "what each part hands on" if taps else "each output"
    return Replacement(Method.ZERO, Zero(), f"{what} replaced by zeros")


def without_link(query: Span, key: Span) -> Replacement:
    """Replacement of each head's output by its output with these queries not attending to these keys."""
    how_replaced = f"the attention of {query.name} to {key.name} cut before the softmax"
    return Replacement(Method.LINK, Cut(query.positions, key.positions), how_replaced)


def of_text(
    model: nn.Module, inputs: Mapping[str, Any], sites: Sequence[Site], taps: Sequence[Tap] = ()
) -> Replacement:
    """Replacement by the head outputs, or vectors at the taps, of other inputs of the same length."""
    if taps:
        written, output = handed(model, inputs, taps)
        how_replaced = "what each part hands on replaced by what it hands on in the other text"
        rows = {tap: each.reshape(each.shape[-2:]) for tap, each in written.items()}
        return Replacement(Method.TEXT, Zero(), how_replaced, output, rows=rows)
    answers, output = answers_to(model, inputs, sites)
    how_replaced = "each output replaced by that of the same head in the other text"
    return Replacement(Method.TEXT, Put(answers), how_replaced, output)


def means(
    model: nn.Module,
    inputs: Mapping[str, Any],
    sites: Sequence[Site],
    sides: Mapping[str, Tokens],
    *,
    mask_id: int | None,
    count: int,
    seed: int,
    taps: Sequence[Tap] = (),
) -> Replacement:
    """Replacement by the mean over control texts of head outputs, or vectors at the taps, by position.

    `sides` maps each text input to its tokens: the text, and the text that a decoder reads beside it.

    """
    changed, how = dict(inputs), ""
    drawn: dict[str, Any] = {}
    for name, tokens in sides.items():
        try:
            controls = control_texts(tokens, mask_id=mask_id, count=count, seed=seed)
        except InputError:
            continue
        drawn[name], how = controls.ids, how or controls.how
    if not drawn:
        raise InputError(
            "the text has too few words that could change places: there is no mean over other texts"
        )
    entries = max(len(ids) for ids in drawn.values())
    sums: dict[Place | Tap, Tensor] = {}
    longest = max(len(tokens) for tokens in sides.values())
    for several in batches(entries, longest):
        batch = _batch(changed, drawn, range(several.start, several.stop))
        outputs: Mapping[Any, Tensor]
        outputs, _ = handed(model, batch, taps) if taps else answers_to(model, batch, sites)
        for place, each in outputs.items():
            parts = exact(each.unflatten(0, (several.stop - several.start, -1)).cpu()).sum(0)  # type: ignore[no-untyped-call]
            sums[place] = sums[place] + parts if place in sums else parts
    means = {place: each / entries for place, each in sums.items()}
    answers: Answers = {place: each for place, each in means.items() if not isinstance(place, Tap)}
    rows = {tap: each.reshape(each.shape[-2:]) for tap, each in means.items() if isinstance(tap, Tap)}
    what = "what each part hands on" if taps else "each output"
    how_replaced = f"{what} replaced by its mean over {entries} control texts, position by position ({how})"
    texts = tuple(ControlIds(name, ids) for name, ids in drawn.items())
    return Replacement(Method.MEAN, Put(answers), how_replaced, mean_over=texts, rows=rows)


def others(written: Mapping[Tap, Tensor]) -> Replacement:
    """Replacement of the vector at each position by the mean over all other positions."""
    rows = {
        tap: (each.sum(0, keepdim=True) - each) / (len(each) - 1)
        for tap, each in ((tap, exact(each.cpu())) for tap, each in written.items())
    }
    how_replaced = "the vector of each position replaced by the mean of those of the other positions"
    return Replacement(Method.MEAN, Zero(), how_replaced, rows=rows)


def _batch(inputs: Mapping[str, Any], drawn: Mapping[str, Any], entries: range) -> dict[str, Any]:
    """Inputs for one batch of control texts; a side with fewer texts repeats them."""
    batch: dict[str, Any] | None = None
    for name, ids in drawn.items():
        mine = ids[[entry % len(ids) for entry in entries]]
        if batch is None:
            batch = inputs_with(inputs, name, mine)
            if batch is None:
                raise InputError("--with mean needs an input that is text alone: leave it out, or use zero")
        else:
            batch[name] = torch.as_tensor(mine, dtype=inputs[name].dtype, device=inputs[name].device)
    assert batch is not None, "there is a side with controls"
    return batch
