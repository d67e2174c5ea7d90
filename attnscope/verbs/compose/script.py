"""What a program is told, so that it computes the figures of `compose` again."""

from attnscope.render.script import Told, of_model
from attnscope.verbs.compose.result import STRONGEST, Composition


def figures(result: Composition) -> Told:
    pairs = [pair for through in result.through for pair in result.ranked(through, most=STRONGEST)]
    layers = {layer for pair in pairs for layer in (pair.early[0], pair.late[0])}
    between = {(pair.early[0], pair.late[0], pair.through) for pair in pairs}
    return of_model(result.provenance, result.tower) | {
        "norms": [(each.module, each.weight, each.one, each.centred) for each in result.norms],
        "matrices": {
            f"{each.side} of L{each.layer}": (each.module, each.firsts, each.size, each.reader)
            for each in result.matrices
            if each.layer in layers
        },
        "ways": {
            f"L{each.early} to {each.through.value} of L{each.late}": each.norms
            for each in result.ways
            if (each.early, each.late, each.through) in between
        },
        "hidden": result.hidden,
        "draws": result.draws,
        "seed": result.seed,
        "pairs": [
            (*pair.early, *pair.late, pair.through.value, pair.score, pair.chance, pair.below)
            for pair in pairs
        ],
    }
