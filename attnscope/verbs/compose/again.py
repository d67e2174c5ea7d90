"""Recomputes composition scores (Elhage et al. 2021) of pairs of heads, from the model's weights alone.

What the earlier head writes is x OV, what the later one reads is x M, both with the norms that stand before
and between them. The score is the Frobenius norm of OV M over the product of their norms. Beside it stands
what circuits of the same singular values in random directions have.
"""

from typing import Any

import torch
from torch import Tensor, nn

from attnscope.render.script.again import SHOWN, Figures, load, report


def normed(model: Any, place: int, x: Tensor) -> Tensor:
    """Directions after a norm, row by row: centred where the norm centres, then times its weight."""
    path, name, one, centred = SHOWN["norms"][place]
    x = x - x.mean(-1, keepdim=True) if centred else x
    return x * (model.get_parameter(f"{path}.{name}").double() + one) if name else x


def matrix(model: Any, side: str, layer: int, head: int, heads: int) -> Tensor:
    """One head's matrix: from the norm's input to head dimensions, or for the output from these to hidden."""
    path, firsts, size, reader = SHOWN["matrices"][f"{side} of L{layer}"]
    part = model.get_submodule(path)
    whole = (part.weight.T if isinstance(part, nn.Linear) else part.weight).double()
    first = firsts[head // (heads // len(firsts))]
    if side == "output":
        return whole[first : first + size]
    own = whole[:, first : first + size]
    return own if reader is None else normed(model, reader, torch.eye(len(own), dtype=own.dtype)) @ own


def circuits(
    model: Any, early: tuple[int, int], late: tuple[int, int], through: str
) -> tuple[Tensor, Tensor]:
    """OV of the earlier head with the norms on the way, and the later head's circuit from `through`."""

    def of(place: tuple[int, int], side: str) -> Tensor:
        heads = len(SHOWN["matrices"][f"output of L{place[0]}"][1])
        return matrix(model, side, *place, heads)

    written = of(early, "value") @ of(early, "output")
    for place in SHOWN["ways"].get(f"L{early[0]} to {through} of L{late[0]}", ()):
        written = normed(model, place, written)
    if through == "value":
        return written, of(late, "value") @ of(late, "output")
    query, key = of(late, "query"), of(late, "key")
    return written, query @ key.T if through == "query" else key @ query.T


def spectrum(circuit: Tensor, rank: int) -> Tensor:
    """Squared singular values over their sum, the smallest first."""
    squares: Tensor = torch.linalg.svdvals(circuit)[:rank].square().flip(0)
    return squares / squares.sum()


def cosines(first: int, second: int) -> Tensor:
    """Squared cosines between fixed and random directions, one matrix for each draw."""
    random, drawn = torch.Generator().manual_seed(SHOWN["seed"]), []
    for _ in range(SHOWN["draws"]):
        normal = torch.randn(SHOWN["hidden"], second, generator=random, dtype=torch.float64)
        triangle = torch.linalg.cholesky(normal.T @ normal)
        frame = torch.linalg.solve_triangular(triangle, normal[:first].T, upper=False).T
        drawn.append(frame.square())
    return torch.stack(drawn)


@torch.no_grad()
def computed(model: Any) -> list[tuple[str, float, float]]:
    found, known = [], dict[tuple[int, int], Tensor]()
    for first, head, second, other, through, shown, shown_chance, shown_below in SHOWN["pairs"]:
        written, read = circuits(model, (first, head), (second, other), through)
        score = (written @ read).norm() / (written.norm() * read.norm())
        ranks = tuple(SHOWN["matrices"][f"value of L{layer}"][2] for layer in (first, second))
        if through != "value":
            ranks = ranks[0], SHOWN["matrices"][f"query of L{second}"][2]
        if ranks not in known:
            known[ranks] = cosines(*ranks)
        drawn = (spectrum(written, ranks[0]) @ known[ranks] @ spectrum(read, ranks[1])).sqrt()
        below = ((drawn < score).double() + (drawn == score).double() / 2).sum()
        name = f"L{first} H{head} to {through} of L{second} H{other}"
        found += [
            (name, shown, float(score)),
            (f"{name}, chance", shown_chance, float(drawn.mean())),
            (f"{name}, controls below", shown_below, float(below)),
        ]
    return found


def figures() -> Figures:
    return computed(load())


if __name__ == "__main__":
    report(figures())
