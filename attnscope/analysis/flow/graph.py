"""Attention multiplied through the layers: rollout and flow (Abnar and Zuidema 2020), pure maths.

    A_l = (W_l + I) / rowsum,   R_l = A_l R_(l-1),   R before the first layer is I

W_l is the mean over heads of the weights of layer l, I the part of its input that a layer adds to its output.
The same A_l are the capacities of the flow: a graph with a node for each token and layer.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

Matrix = Float[np.ndarray, "query key"]
_WHOLE = 2**28  # what a capacity of 1 is in whole numbers, which is what SciPy's flow counts in


def mixed(weights: Matrix) -> Matrix:
    """A of one layer: half its attention, half its input; a row that has no key is its input alone."""
    both = np.nan_to_num(weights) + np.eye(len(weights))
    return np.asarray(both / both.sum(axis=1, keepdims=True))


def shares(moved: Matrix) -> Matrix:
    """Every row divided by its sum; a row of nothing stays one."""
    known = np.nan_to_num(moved)
    sums = known.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(known, sums, out=np.zeros_like(known), where=sums > 0))


def rollout(layers: Sequence[Matrix]) -> Float[np.ndarray, "layer query key"]:
    """R of every layer from the A of each; rows sum to 1."""
    reached, found = np.eye(len(layers[0])), []
    for layer in layers:
        reached = layer @ reached
        found.append(reached)
    return np.array(found)


def max_flow(layers: Sequence[Matrix], query: int) -> Float[np.ndarray, " key"]:
    """The largest flow from `query` in the last layer to every input token, the A of each layer the capacity.

    Each by Dinic's algorithm, rounded down to 2**-28 of a capacity of 1; one run for every input token.
    """
    count = len(layers[0])
    graph, source = _graph(layers), len(layers) * count + query
    flows = [maximum_flow(graph, source, key).flow_value for key in range(count)]
    return np.array(flows, dtype=np.float64) / _WHOLE


def _graph(layers: Sequence[Matrix]) -> csr_array:
    """Node `l * count + i` is token i behind layer l, node i itself is the input."""
    count = len(layers[0])
    starts, ends, sizes = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
    for number, layer in enumerate(layers):
        whole = np.floor(layer * _WHOLE).astype(np.int32)
        queries, keys = np.nonzero(whole)
        starts.append((number + 1) * count + queries)
        ends.append(number * count + keys)
        sizes.append(whole[queries, keys])
    nodes = (len(layers) + 1) * count
    places = (np.concatenate(starts).astype(np.int32), np.concatenate(ends).astype(np.int32))
    return csr_array((np.concatenate(sizes), places), shape=(nodes, nodes))
