"""What layers would answer, as it could have come out: of one place, of several, of a class."""

import made_results as made
import numpy as np

from attnscope.results import Guess, LayerAnswer, LayeredPlace, LayeredPrediction

OWN, OTHER = Guess(7, "opened", 0.62), Guess(3, "the", 0.2)
# whose answer comes first in the embeddings and in each layer, and what the own one has
LEADS = {"early": "oooo", "middle": "ttoo", "late": "ttto", "lost again": "otto", "at last": "otoo"}
_OWN = (0.05, 0.1, 0.4, 0.62)


def layered(
    *leads: str, task: str = "masked", controls: int = 20, high: float = 0.2, embeddings: bool = True
) -> LayeredPrediction:
    """A place for each of `leads`, in `controls` texts a tenth of the own probability on average."""
    tokens = made.tokens(made.DOOR)
    positions = [None] if task == "class" else range(4, 4 + len(leads))
    places = [
        _place(position, LEADS[each], controls, high) for position, each in zip(positions, leads, strict=True)
    ]
    if not embeddings:
        places = [LayeredPlace(each.position, each.answer, each.layers[1:]) for each in places]
    return LayeredPrediction(
        task,
        tokens,
        tuple(places),
        3e-7,
        made.provenance(),
        "words change places" if controls else "no shuffled texts were asked for",
        4,
        np.arange(controls * len(tokens)).reshape(controls, -1) if controls else np.zeros((0, 0), dtype=int),
    )


def _place(position: int | None, leads: str, controls: int, high: float) -> LayeredPlace:
    rows = []
    for i, (first, own) in enumerate(zip(leads, _OWN, strict=True)):
        best = Guess(7, "opened", own) if first == "o" else Guess(3, "the", 0.9 - own)
        held = (0.1 * own, high) if controls else (float("nan"), float("nan"))
        rows.append(LayerAnswer(i - 1, best, own, 1 if first == "o" else 2 + i, 0.62 - own, *held))
    return LayeredPlace(position, OWN, tuple(rows))
