"""A result for every case and every optional part of what is said of the answers of layers."""

from collections.abc import Callable
from dataclasses import replace

import made_results as made
import numpy as np

from attnscope.results import Guess, LayerAnswer, LayeredPlace, LayeredPrediction
from attnscope.verbs.predict import sheet as sheets
from attnscope.verbs.predict.result import Case

SAID, CASES = sheets.layers_said, Case

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


EXAMPLES: dict[str, Callable[[], LayeredPrediction]] = {
    "from the embeddings on": lambda: layered("early", high=0.04),
    "from a layer between": lambda: layered("middle"),
    "an earlier lead that is lost": lambda: layered("at last", embeddings=False, controls=0),
    "a lead that was lost before": lambda: layered("lost again", controls=0),
    "from the last alone": lambda: layered("late", task="next"),
    "some controls give as much": lambda: layered("late", task="class", high=0.62),
    "several places": lambda: layered("middle", "late", "early", "middle", "late", "late"),
    "exactly": lambda: replace(layered("middle"), read_back=0.0),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "from the embeddings on": (Case.FROM, "“on”", "“opened”", "the embeddings", "5.0 %", "62.0 %", "0.5 %"),
    "from a layer between": (Case.FROM, "from L1 on", "40.0 %", "62.0 %", "L0", "“the”: 80.0 %", "4.0 %"),
    "an earlier lead that is lost": (Case.FROM, "from L1 on", "40.0 %", "62.0 %", "“the”: 80.0 %"),
    "a lead that was lost before": (Case.LAST, "first again: 62.0 %", "L1", "“the”: 50.0 %"),
    "from the last alone": (Case.LAST, "After “on” only", "62.0 %", "“the”: 50.0 %", "6.2 %"),
    "some controls give as much": (Case.LAST, "For the class only", "62.0 %", "6.2 %", "as much as here"),
    "several places": (Case.SEVERAL, "at “on” from L1", "“the”@5 from the last layer", "4 more places"),
}
