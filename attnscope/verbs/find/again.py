"""Score of every head in the text, and in control texts: the words of the text in other orders.

The score is the weight on the target links, averaged over the queries that have any; or else how far the
head's rows lie from those of another head (Jensen-Shannon divergence in nats, averaged over queries).
"""

import torch
from torch import Tensor

from attnscope.render.script.again import SHOWN, Figures, Given, attention, inputs, load, report

ROUNDING = 64 * torch.finfo(torch.float32).eps  # relative tolerance of a comparison


def looked_at(weights: Tensor) -> Tensor:
    """Merge tokens to words: weights are summed over the pieces of a key, averaged over those of a query."""
    columns = torch.stack([weights[..., pieces].sum(-1) for pieces in SHOWN["keys"]], -1)
    rows = torch.stack([columns[:, pieces].mean(1) for pieces in SHOWN["queries"]], 1)
    return rows / rows.sum(-1, keepdim=True) if SHOWN["renormalised"] else rows


def apart(rows: Tensor, given: Tensor) -> Tensor:
    """Jensen-Shannon divergence of rows in nats; mass missing to 1 counts as one more key."""
    p, q = (torch.cat([each, (1 - each.sum(-1, keepdim=True)).clamp(min=0)], -1) for each in (rows, given))
    mean = (p + q) / 2
    return (p.xlogy(p) + q.xlogy(q) - 2 * mean.xlogy(mean)).sum(-1).mean(-1) / 2


def numbers(layers: list[Tensor]) -> Tensor:
    """Score of every head in SHOWN, from the weights of all layers."""
    if SHOWN["like"]:
        layer, head = SHOWN["like"]
        given = looked_at(layers[layer])[head]
        by_layer = {layer: apart(looked_at(layers[layer]), given) for layer, *_ in SHOWN["heads"]}
    else:
        queries, keys = torch.tensor(SHOWN["links"]).T
        rows = len(set(queries.tolist()))
        by_layer = {
            layer: looked_at(layers[layer])[:, queries, keys].sum(-1) / rows for layer, *_ in SHOWN["heads"]
        }
    return torch.stack([by_layer[layer][head] for layer, head, *_ in SHOWN["heads"]])


def figures() -> Figures:
    model = load()

    def of(given: Given) -> Tensor:
        return numbers(attention(model, given))

    own = of(inputs())
    controls = torch.stack([of(inputs(**{SHOWN["exchanged"]: ids})) for ids in SHOWN["controls"]])
    beyond = own - controls if not SHOWN["smaller is better"] else controls - own
    below = (beyond > ROUNDING * own.abs() + 1e-9).double().sum(0)
    now = torch.stack([own, controls.mean(0), below], 1).tolist()
    for (layer, head, *shown), again in zip(SHOWN["heads"], now, strict=True):
        for name, one, other in zip(
            ("", " in its controls", " is beyond of them"), shown, again, strict=True
        ):
            yield f"L{layer} H{head}{name}", one, other


if __name__ == "__main__":
    report(figures())
