"""Follow one operation of the model on traced scores: which sum of parts comes out of it.

Nothing is computed for the model and nothing is guessed. An operation that is not understood leaves only
the products in the sum; `layout.completed` then finds out, from the model's own logits, what is missing.

Also scores put together from several products (`joined`): LUKE multiplies words and entities apart and joins
the blocks. Blocks that share their queries (or keys) are one product with the keys (or queries) behind each
other. Blocks that do not are one product as well, each with dimensions of its own:

    [q1 k1 | q2 k2]  =  [q1 q2] [k1  0]
                                [ 0 k2]   transposed
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from attnscope.capture.trace.layout import in_order, query_axis
from attnscope.capture.trace.operations import KEEPS
from attnscope.capture.trace.scores import (
    FORBIDDEN,
    Origin,
    Part,
    Product,
    Scores,
    added,
    capped,
    forbidding,
    places_of,
    scaled,
    version,
)

Term = Scores | Part | None


def forbids(value: Any) -> bool:
    """Whether cells that are set to `value` get no weight in a softmax."""
    if isinstance(value, Tensor):
        return value.numel() > 0 and value.is_floating_point() and float(value.max()) <= FORBIDDEN
    return isinstance(value, Real) and float(value) <= FORBIDDEN


def followed(
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result: Tensor,
    term_of: Callable[[Any], Term],
) -> Scores | None:
    """The scores that operation `name` makes of `args`; only their products where it is not understood.

    `term_of` gives what is known of an argument: scores, any other tensor as a part, None of what is no
    tensor. Moves are not made here.
    """
    terms = [term_of(each) for each in args]
    mine = next((each for each in terms if isinstance(each, Scores)), None)
    if mine is None or not result.is_floating_point():
        return None
    understood = _understood(name, args, kwargs, result.shape, terms, mine)
    if understood is not None or mine.shape != result.shape:
        return understood
    # heads mixed by a matrix, cells bent: the products are still in it, what else was added is not to be told
    products = tuple(part for part in mine.parts if part.product is not None)
    return replace(mine, parts=products) if products else None


def _understood(
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    shape: torch.Size,
    terms: Sequence[Term],
    mine: Scores,
) -> Scores | None:
    if name in KEEPS:
        return mine if mine.shape == shape else None
    if name in ("add", "sub", "rsub") and len(args) > 1:
        return _sum(name, args, terms, kwargs, shape)
    if name in ("mul", "div") and len(args) > 1 and (name == "mul" or terms[0] is mine):
        return scaled(mine, args[1] if terms[0] is mine else args[0], divide=name == "div")
    if name == "neg":
        return scaled(mine, -1.0)
    if name == "tanh":
        return capped(mine) if mine.cap is None else None
    if name == "masked_fill":
        rest = list(args[1:])
        mask, value = (kwargs[each] if each in kwargs else rest.pop(0) for each in ("mask", "value"))
        return forbidding(mine, mask) if forbids(value) else None
    if name == "where" and len(args) == 3:
        return _selected(args, terms)
    return None


def _sum(
    name: str,
    args: Sequence[Any],
    terms: Sequence[Term],
    kwargs: Mapping[str, Any],
    shape: torch.Size,
) -> Scores | None:
    """a + alpha * b, a - alpha * b or b - a as scores; plain numbers become parts as well."""
    alpha = float(kwargs.get("alpha", 1)) * (1 if name == "add" else -1)
    signs = (-1.0, 1.0) if name == "rsub" else (1.0, alpha)
    total: Scores | None = None
    for value, term, sign in zip(args, terms, signs, strict=False):
        if term is None and isinstance(value, Real):
            if value == 0:
                continue
            number = torch.tensor(float(value))
            term = Part(number, version(number), Origin())
        if isinstance(term, Part):
            term = Scores(term.tensor.shape, (term,))
        if term is None or (signed := term if sign == 1 else scaled(term, sign)) is None:
            return None
        total = signed if total is None else added(total, signed, shape)
        if total is None:
            return None
    return total


def _selected(args: Sequence[Any], terms: Sequence[Term]) -> Scores | None:
    """torch.where on scores: a mask where the other choice is so low that it forbids; else None."""
    order = (0, 1, 2) if getattr(args[0], "dtype", None) == torch.bool else (1, 0, 2)  # x.where(mask, y)
    condition, chosen, other = order
    first, second = terms[chosen], terms[other]
    if isinstance(first, Scores) and forbids(args[other]):
        return forbidding(first, ~args[condition])
    if isinstance(second, Scores) and forbids(args[chosen]):
        return forbidding(second, args[condition])
    return None


def written(scores: Scores, index: Any, value: Any) -> Scores | None:
    """The scores after `scores[index] = value`, as a mask; None unless the value forbids."""
    if not forbids(value):
        return None
    mask = torch.zeros(scores.shape, dtype=torch.bool, device=scores.parts[0].tensor.device)
    mask[index] = True
    return forbidding(scores, mask)


def joined(blocks: Sequence[Scores], axis: int, result: Tensor) -> Scores | None:
    """The scores that `torch.cat` along `axis` makes of `blocks`; None unless each is one plain product."""
    products = [each for block in blocks if (each := _plain(block))]
    if axis < result.ndim - 2 or len(products) < len(blocks):
        return None
    lefts = [each.left.expand(*each.lead, -1, -1) * factor for each, factor in products]
    rights = [each.right.expand(*each.lead, -1, -1) for each, _ in products]
    along_keys = axis == result.ndim - 1
    shared, stacked = (lefts, rights) if along_keys else (rights, lefts)
    # where they were made apart and differ by rounding, the other way below gives the same scores
    if all(each.shape == shared[0].shape and torch.equal(each, shared[0]) for each in shared):
        one, many = shared[0], torch.cat(stacked, -2)
    else:
        one, many = torch.cat(shared, -1), _diagonal(stacked)
    left, right = (one, many) if along_keys else (many, one)
    places = places_of(left.shape[:-2], left.shape[-2], right.shape[-2], result.device)
    product = Product(left, right, left.shape[:-2], places, products[0][0].origins)
    part = Part(result, version(result), blocks[0].parts[0].origin, product=product)
    return Scores(result.shape, (part,))


def _plain(block: Scores) -> tuple[Product, float] | None:
    """The single product that a block of scores is cut from, in its first layout, and its factor."""
    part, product = block.parts[0], block.parts[0].product
    bare = len(block.parts) == 1 and not part.factors and not block.forbidden and block.cap is None
    if not bare or product is None or block.shape[:-2] != product.lead:
        return None
    rank = len(block.shape)
    if query_axis(product.places, rank - 1) != (rank - 2, False):
        return None
    corner = (0,) * (rank - 2)
    rows, columns = product.places.row[corner][:, 0], product.places.column[corner][0]
    cut = replace(product, left=in_order(product.left, -2, rows), right=in_order(product.right, -2, columns))
    return cut, part.factor


def _diagonal(blocks: Sequence[Tensor]) -> Tensor:
    """Block-diagonal tensor of the blocks `*lead row dim`."""
    whole = sum(each.shape[-1] for each in blocks)
    rows, before = [], 0
    for each in blocks:
        after = whole - before - each.shape[-1]
        rows.append(torch.nn.functional.pad(each, (before, after)))
        before += each.shape[-1]
    return torch.cat(rows, -2)
