"""How long the value of every key is as it arrives in the hidden state, for all texts of a batch.

||v P|| is ||R v|| where Q R is P transposed: the triangle R is as wide as the value and not as the hidden
state, found once for each head, and nothing is squared on the way (Golub and Van Loan, Section 5.2).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.capture.weights import Passed
from attnscope.reference import exact


def triangles(projection: Float[Tensor, "head value_dim hidden"]) -> Float[Tensor, "head size value_dim"]:
    """R of every head, in float64."""
    triangle: Tensor = torch.linalg.qr(exact(projection).mT, mode="r").R
    return triangle


def norms(passed: Passed, of: Float[Tensor, "head size value_dim"]) -> Float[Tensor, "row chosen key"]:
    """||f(x)|| of every key in the selected heads, in units of the hidden state, in float64."""
    values = exact(passed.values)
    each = [values[:, head // passed.shared] @ of[head].mT.to(values.device) for head in passed.heads]
    lengths: Tensor = torch.linalg.vector_norm(torch.stack(each, dim=1), dim=-1)
    return lengths
