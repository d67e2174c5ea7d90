"""Scores put together from several products: LUKE multiplies words and entities apart and joins the blocks.

Blocks that share their queries (or keys) are one product with the keys (or queries) behind each other.
Blocks that do not are one product as well, each with dimensions of its own:

    [q1 k1 | q2 k2]  =  [q1 q2] [k1  0]
                                [ 0 k2]   transposed
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attnscope.capture.trace.layout import query_axis
from attnscope.capture.trace.scores import Part, Product, Scores, places_of, version


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
    """The one product that the block is, or is cut out of, in its first layout, and its factor."""
    part, product = block.parts[0], block.parts[0].product
    bare = len(block.parts) == 1 and not part.factors and not block.forbidden and block.cap is None
    if not bare or product is None or block.shape[:-2] != product.lead:
        return None
    rank = len(block.shape)
    if query_axis(product.places, rank - 1) != (rank - 2, False):
        return None
    corner = (0,) * (rank - 2)
    rows, columns = product.places.row[corner][:, 0], product.places.column[corner][0]
    cut = replace(product, left=_picked(product.left, rows), right=_picked(product.right, columns))
    return cut, part.factor


def _picked(operand: Tensor, rows: Tensor) -> Tensor:
    """These rows of an operand; itself where they are all of them in order."""
    whole = len(rows) == operand.shape[-2] and bool(
        (rows == torch.arange(len(rows), device=rows.device)).all()
    )
    return operand if whole else operand[..., rows, :]


def _diagonal(blocks: Sequence[Tensor]) -> Tensor:
    """The blocks `*lead row dim` along a diagonal, zero elsewhere."""
    whole = sum(each.shape[-1] for each in blocks)
    rows, before = [], 0
    for each in blocks:
        after = whole - before - each.shape[-1]
        rows.append(torch.nn.functional.pad(each, (before, after)))
        before += each.shape[-1]
    return torch.cat(rows, -2)
