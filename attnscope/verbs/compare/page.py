"""What a page shows of a comparison: the heads of both sides."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnscope.render.kit.words import verdict_words
from attnscope.render.sheets import sheet_of
from attnscope.render.web import readings as sides
from attnscope.render.web.blocks import Blocks
from attnscope.render.web.document import Document, opens, told
from attnscope.render.web.readings import Reading, table
from attnscope.render.web.readings import sides as tokens_of
from attnscope.render.web.room import Beside
from attnscope.results import Overview, Result, Special
from attnscope.verbs.compare import sheet as words
from attnscope.verbs.compare.difference_result import Difference, Run
from attnscope.verbs.compare.result import Comparison
from attnscope.vocabulary import Unit


def of_comparison(made: Document, found: Comparison, beside: Beside) -> None:
    made.first = "sheet"
    made.readings = of_sides(found, beside.heads, made.blocks)
    a = found.a
    made.both = {"pairs": pairs_of(found, beside.heads), "aligned": found.divergence is not None}
    say = words.said(found)
    made.heading = told(say("subject"), words.heads(found), words.models(found))
    made.says += [say("subject"), *say.lines("view_notes")]
    looked: dict[str, Any] = {"words": found.by.joins, "special": found.special.value}
    opens(made, a.head.layer, a.head.head, "both", query=a.position, **looked)


def of_difference(made: Document, found: Difference, beside: Beside) -> None:
    sheet = sheet_of(found)
    made.first = "sheet"
    made.heading = sheet.title
    made.both = {"pairs": found.pairs, "aligned": True}
    made.readings, looked = of_runs(found, beside.heads, made.blocks)
    opens(made, view="both", **sheet.opens, **looked)


def of_runs(
    found: Difference, held: Sequence[Result], blocks: Blocks
) -> tuple[list[sides.Reading], dict[str, Any]]:
    """The readings of both sides, and how they are looked at; the pair that is shown is there exactly.

    `held` are the results that were compared, or nothing.
    """
    names = [f"{letter}: {run.name}" for letter, run in zip("ab", (found.a, found.b), strict=True)]
    looked = [_looked(result) for result in held]
    pairs = zip(held, names, strict=True) if held else ()
    whole = [sides.of_result(result, blocks, name) for result, name in pairs]
    known = [each for each in whole if each is not None]
    if len(known) < 2 or looked[0] != looked[1]:
        return _alone(found, names, blocks), {}
    if looked[0] == _looked(None):
        for each, exact in zip(known, _alone(found, names, blocks), strict=True):
            each["full"] = exact["full"] | each["full"]
    return known, looked[0]


def of_sides(found: Comparison, held: Sequence[Result], blocks: Blocks) -> list[sides.Reading]:
    """Both sides of a word: the heads of the layer that is shown where they are `held`, that one exactly."""
    made = []
    for i, (letter, side) in enumerate(zip("ab", found.sides, strict=True)):
        name = f"{letter}: {words.side_words(found, side) or words.sentence(side)}"
        overview = held[i] if held else None
        if isinstance(overview, Overview):
            made.append(sides.of_overview(overview, blocks, [side.head], name, found.by))
            made[-1]["opens"] = {"layer": side.head.layer, "head": side.head.head}
        else:
            made.append(sides.of_heads([side.head], blocks, name, found.by))
        made[-1]["opens"]["query"] = side.position
    return made


def pairs_of(found: Comparison, held: Sequence[Result]) -> list[list[int]]:
    """Heads of one number belong together."""
    a, b = (side.head for side in found.sides)
    heads = found.heads if held else (a.head,)
    return [[a.layer, head, b.layer, head] for head in heads]


def _alone(found: Difference, names: Sequence[str], blocks: Blocks) -> list[sides.Reading]:
    layer, head, other, second = found.pairs[found.shown]
    return [
        of_matrix(found.a, names[0], (layer, head), found.before, blocks),
        of_matrix(found.b, names[1], (other, second), found.after, blocks),
    ]


def _looked(result: Result | None) -> dict[str, Any]:
    """By words, or without special tokens, or as it is."""
    special = getattr(result, "special", Special.SHOW)
    by = getattr(result, "by", Unit.TOKEN)
    return {"words": by.joins, "special": special.value}


def of_matrix(run: Run, name: str, place: tuple[int, int], weights: np.ndarray, blocks: Blocks) -> Reading:
    """One head of a run of which nothing is known but its weights; a pair that has 0 is masked."""
    layer, head = place
    masked = blocks.floats(np.where(weights == 0, np.nan, weights))
    return {
        "name": name,
        **tokens_of(run.query_tokens, run.key_tokens),
        "layers": [layer],
        "heads": [head],
        "depth": 0,
        "blocks": None,
        "small": None,
        "full": {f"L{layer}H{head}": {"weights": masked, "q": None}},
        "certificates": blocks.json(table([[run.verdict]], [[verdict_words(run.verdict)]])),
        "opens": {"layer": layer, "head": head},
        "command": "",
    }
