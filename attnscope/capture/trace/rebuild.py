"""Logits taken apart: from the traced sum that a softmax was given to q, k, scale, cap, terms and mask.

What comes out is held against the model's own logits, in float64. Whatever does not add up to them
within rounding is handed on as a remainder, so that nothing read off the logits passes for an operand.
"""

from collections import Counter
from typing import cast

import torch
from torch import Tensor

from attnscope.capture.trace.layout import Layout, Logits, compact, completed, in_order, layout_of, query_axis
from attnscope.capture.trace.scores import FORBIDDEN, Origin, Part, Product, Scores
from attnscope.reference import exact


@torch.no_grad()
def rebuilt(scores: Scores, logits: Tensor | None, key_axis: int, heads: int | None) -> Logits | None:
    """What `logits` were made of; None when no product of the sum runs along `key_axis`.

    `heads` is the count that the module states. Without `logits`, as in a fused kernel, nothing is compared.
    """
    placed = [(part, *roles) for part in scores.parts if (roles := _placed(part, scores, key_axis))]
    if not placed:
        return None
    # content meets content; a product with position embeddings is a term
    main, queries, exchanged = max(placed, key=lambda each: _made_from_activations(each[0]))
    product = cast(Product, main.product)
    mine = product.origins[exchanged]
    layout = layout_of(scores.shape, queries, key_axis, heads, mine.shapes)
    query, key = _operands(product, exchanged, layout, scores.shape)
    for factor in main.factors:
        query, key = _scaled_operands(query, key, _arranged(factor, layout, scores.shape, query.device))
    roots = mine.root, product.origins[not exchanged].root
    terms, shifts, allowed = _terms_and_allowed(scores, main, layout, roots)
    cap = scores.cap
    scale = main.factor * (1 if cap is None else cap)
    parts = Logits(layout, query, key, scale, cap, terms, allowed, shifts)
    return parts if logits is None else completed(parts, layout.arrange(logits))


def _placed(part: Part, scores: Scores, key_axis: int) -> tuple[int, bool] | None:
    """The query axis and the roles in one part; None where it is no product along `key_axis`."""
    if part.product is None:
        return None
    return query_axis(part.product.places.moved(lambda place: place.expand(scores.shape)), key_axis)


def _made_from_activations(part: Part) -> int:
    return 0 if part.product is None else sum(origin.activation for origin in part.product.origins)


def _operands(product: Product, exchanged: bool, layout: Layout, shape: torch.Size) -> tuple[Tensor, Tensor]:
    """Query and key as `batch head token dim`, in the order in which the scores have them."""
    left, right, places = product.left, product.right, product.places
    row, column = places.row, places.column
    if exchanged:
        left, right, row, column = right, left, column, row
    lead = layout.arrange(places.lead.expand(shape))[:, :, 0, 0]
    queried = layout.arrange(row.expand(shape))[0, 0, :, 0]
    keyed = layout.arrange(column.expand(shape))[0, 0, 0]
    return (
        _picked(left.expand(*product.lead, *left.shape[-2:]), lead, queried),
        _picked(right.expand(*product.lead, *right.shape[-2:]), lead, keyed),
    )


def _picked(operand: Tensor, lead: Tensor, rows: Tensor) -> Tensor:
    """`batch head row dim` with the leading indices and rows of `*lead row dim` in the asked order."""
    flat = operand.reshape(-1, *operand.shape[-2:])
    flat = in_order(in_order(flat, 0, lead.flatten()), 1, rows)
    return flat.reshape(*lead.shape, *flat.shape[-2:])


def _arranged(tensor: Tensor, layout: Layout, shape: torch.Size, device: torch.device) -> Tensor:
    """`batch head query key`, with length 1 along every axis where all entries are the same one in memory.

    A mask that was made for all layers is brought to the device on which this one works.
    """
    return compact(layout.arrange(tensor.expand(shape))).to(device)


def _scaled_operands(query: Tensor, key: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
    """A factor that differs by head or query belongs to the query, one that differs by key to the key.

    One that differs by both is a mask of zeros and ones, as in the first GPT, and stays with the cells.
    """
    if factor.shape[-1] == 1:
        return query * factor, key
    if factor.shape[-2] == 1:
        return query, key * factor.mT
    return query, key


def _terms_and_allowed(
    scores: Scores, main: Part, layout: Layout, roots: tuple[object, object]
) -> tuple[tuple[tuple[str, Tensor], ...], tuple[Tensor, ...], Tensor | None]:
    """The other parts by name, what only shifts whole rows, and where a query may look.

    Forbidden is what a mask covers, and what a part at or below `FORBIDDEN` is added to.
    """
    product = cast(Product, main.product)
    device = product.left.device
    barred = [_arranged(mask, layout, scores.shape, device) for mask in scores.forbidden]
    terms: list[tuple[str, Tensor]] = []
    shifts: list[Tensor] = []
    for part in scores.parts:
        if part is main or not part.intact:
            continue
        term = _arranged(part.tensor, layout, scores.shape, device)
        if not term.is_floating_point():  # whole numbers and truth values are added as they are
            term = term.to(product.left.dtype)
        if part.factor != 1:
            term = term * part.factor
        for factor in part.factors:
            term = term * _arranged(factor, layout, scores.shape, device)
        low = term <= FORBIDDEN
        if low.any():
            barred.append(low)
            term = term.masked_fill(low, 0)
        if term.shape[-1] == 1:
            shifts.append(term)
        elif term.any():
            terms.append((_name(part.origin, term, roots), term))
    allowed = None
    for each in barred:
        allowed = ~each if allowed is None else allowed & ~each
    return _distinct(terms), tuple(shifts), None if allowed is None or allowed.all() else allowed


def _name(origin: Origin, term: Tensor, roots: tuple[object, object]) -> str:
    """What a term is, by what made it: a gathered product with the query or the key is DeBERTa's kind."""
    operands = {root for pair in origin.products for root in pair}
    if operands and origin.looked_up:
        if roots[0] in operands:
            return "content to position"
        if roots[1] in operands:
            return "position to content"
    if operands or (origin.learned and (origin.looked_up or not origin.given)):
        return "relative position"
    if origin.learned:
        return "bias"
    values = torch.unique(term)  # type: ignore[no-untyped-call]
    if len(values) <= 2:
        return "mask"
    return "alibi" if _is_straight(term) else "bias"


def _is_straight(term: Tensor) -> bool:
    """Whether the values along the keys mostly lie on straight lines, as what grows with distance does."""
    bends = term.diff(n=2, dim=-1).abs()
    return bool(exact(bends <= 1e-3 * (term.max() - term.min())).mean() > 0.5)


def _distinct(terms: list[tuple[str, Tensor]]) -> tuple[tuple[str, Tensor], ...]:
    seen: Counter[str] = Counter()
    named = []
    for name, term in terms:
        seen[name] += 1
        named.append((name if seen[name] == 1 else f"{name} {seen[name]}", term))
    return tuple(named)
