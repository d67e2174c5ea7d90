"""Deeds that are no matrix over tokens: an answer that is not used, heads in another order."""

from collections.abc import Callable

import torch
from torch import Tensor

from tests.capture.constructed.model import HEADS, Attention, Part, Place


def _values(own: Attention) -> Tensor:
    """What every token's own value is, in the shape of an answer."""
    value = own.now["value"].repeat_interleave(own.num_key_value_groups, 1)
    return value.transpose(1, 2).contiguous()


def _uniform(own: Attention, answer: Tensor, _place: Place) -> Tensor:
    """An attention that looks at everything alike."""
    return _values(own).mean(1, keepdim=True).expand_as(answer)


def _another(own: Attention, _answer: Tensor, _place: Place) -> Tensor:
    """An attention by another scale, past the kernel."""
    query, key = (own.now[name] for name in ("query", "key"))
    scores = torch.matmul(query, key.transpose(2, 3)) * 0.2
    chances = scores.sub(scores.amax(-1, keepdim=True)).exp()
    met = torch.matmul(chances / chances.sum(-1, keepdim=True), own.now["value"])
    return met.transpose(1, 2)


def _silent_gate(own: Attention, x: Tensor, place: Place) -> Tensor:
    """A learned gate that has come to be exactly zero."""
    return x * own.learned(f"gate_{place.name}", x.shape[-1], times=0)


def _written_over(own: Attention, answer: Tensor, _place: Place) -> Tensor:
    return answer.copy_(_values(own))


def _written_over_unseen(own: Attention, answer: Tensor, _place: Place) -> Tensor:
    answer.detach().numpy()[...] = _values(own).detach().numpy()
    return answer


REPLACED_ANSWERS: dict[str, Part] = {
    "the values in its place": lambda own, answer, place: _values(own),
    "equal attention in its place": _uniform,
    "the values of one token in its place": lambda own, answer, place: _values(own)[:, :1].expand_as(answer),
    "another attention in its place": _another,
    "the values written over it": _written_over,
    "the values written over it unseen": _written_over_unseen,
    "zeros in its place": lambda own, answer, place: torch.zeros_like(answer),
    "a learned row in its place": lambda own, answer, place: own.learned("row", *answer.shape[2:]).expand_as(
        answer
    ),
    "a gate of zero": _silent_gate,
    "times nothing, and the values": lambda own, answer, place: 0.0 * answer + _values(own),
    "clamped to nothing": lambda own, answer, place: answer.clamp(0, 0) + _values(own),
    "rounded to nothing": lambda own, answer, place: (answer * 1e-3).round() + _values(own),
    "compared with what it never is": lambda own, answer, place: (answer > 1e6).to(answer) + _values(own),
}
REPLACED: dict[str, Part] = {
    "what was given in its place": lambda own, x, place: own.now["entered"].clone(),
    "zeros in its place": lambda own, x, place: torch.zeros_like(x),
    "a gate of zero": _silent_gate,
    "itself without itself": lambda own, x, place: x - x.detach(),
    "a learned row in its place": lambda own, x, place: own.learned(
        f"row_{place.name}", x.shape[-1]
    ).expand_as(x),
}


def _ordered(order: list[int]) -> Part:
    return lambda own, x, place: x.index_select(place.heads, torch.tensor(order))


def _one_zeroed(head: int) -> Part:
    kept = torch.ones(HEADS, 1)
    kept[head] = 0
    return lambda own, answer, place: answer * kept.to(answer)


HEADS_MOVED: dict[str, Part] = {
    "heads rolled": _ordered([2, 0, 1]),
    "heads flipped": _ordered([2, 1, 0]),
    "first two heads swapped": _ordered([1, 0, 2]),
    "one head for all": _ordered([1, 1, 1]),
    "heads averaged": lambda own, answer, place: answer.mean(2, keepdim=True).expand_as(answer),
    "head 0 zeroed": _one_zeroed(0),
    "head 2 zeroed": _one_zeroed(2),
    "heads rolled in columns": lambda own, answer, place: (
        answer.flatten(2).roll(answer.shape[-1], -1).view_as(answer)
    ),
    "heads rolled in NumPy": lambda own, answer, place: torch.from_numpy(
        answer.detach().numpy()[:, :, [1, 2, 0]].copy()
    ),
    "head 1 left out": lambda own, answer, place: torch.cat(
        [answer[:, :, :1], torch.zeros_like(answer[:, :, :1]), answer[:, :, 2:]], 2
    ),
}


def _sharpened(weights: Tensor) -> Tensor:
    squared = weights.pow(2)
    return squared / squared.sum(-1, keepdim=True)


def _largest(weights: Tensor) -> Tensor:
    return weights * (weights >= weights.topk(2).values[..., -1:])


def _without_largest(weights: Tensor) -> Tensor:
    return weights * (weights < weights.amax(-1, keepdim=True))


def _plainly(function: Callable[[Tensor], Tensor]) -> Part:
    return lambda own, x, place: function(x)


WEIGHTS_CHANGED: dict[str, Part] = {
    "squared": _plainly(lambda w: w.pow(2)),
    "sharpened": _plainly(_sharpened),
    "the two largest alone": _plainly(_largest),
    "without the largest": _plainly(_without_largest),
    "blended with equal ones": _plainly(lambda w: 0.9 * w + 0.1 / w.shape[-1]),
    "of the next head": _plainly(lambda w: w.roll(1, 1)),
    "of the mean head": _plainly(lambda w: w.mean(1, keepdim=True).expand_as(w)),
    "of the next key": _plainly(lambda w: w.roll(1, -1)),
    "turned round": _plainly(lambda w: w.flip(-1)),
    "rounded": _plainly(lambda w: w.round(decimals=1)),
    "times 1.01": _plainly(lambda w: 1.01 * w),
    "one softmax more": _plainly(lambda w: torch.softmax(w, -1)),
}


def _sorted(_own: Attention, x: Tensor, place: Place) -> Tensor:
    """Rows in the order of what they are."""
    key = x.movedim(place.tokens, 1)[0].flatten(1)[:, 0]
    return x.index_select(place.tokens, key.argsort())


SORTED: dict[str, Part] = {"rows sorted": _sorted}


TEXTS_EXCHANGED: Part = lambda own, x, place: x.flip(0)  # noqa: E731


def _second(own: Attention, answer_to: Callable[..., Tensor]) -> Tensor:
    query, key, value = (own.now[name] for name in ("query", "key", "value"))
    return answer_to(-query, key, value)


SECOND_CALLS: dict[str, Callable[..., Tensor]] = {
    "a second attention, rolled": lambda own, to, answer: answer - 0.5 * _second(own, to).roll(1, 1),
    "a second attention, averaged": lambda own, to, answer: answer + _second(own, to).mean(1, keepdim=True),
    "a second attention, thrown away": lambda own, to, answer: answer + 0 * _second(own, to),
    "a second attention alone": lambda own, to, answer: _second(own, to),
    "a second attention, the first flipped": lambda own, to, answer: _second(own, to) - answer.flip(1),
}
