"""The parts of a page about a comparison: the heads of both sides."""

from typing import Any

import numpy as np

from attnscope.render.kit.words import verdict_words
from attnscope.render.sheets import sheet_of
from attnscope.render.web import readings
from attnscope.render.web.document import Document, opens, told
from attnscope.render.web.room import Beside
from attnscope.results import Overview, Result, Special
from attnscope.verbs.compare import sheet as words
from attnscope.verbs.compare.result import Comparison, Difference
from attnscope.vocabulary import Unit


def of_comparison(made: Document, found: Comparison, beside: Beside) -> None:
    """Adds both sides of a word to the page: the shown layer's heads where held, the shown one exactly."""
    made.first = "sheet"
    for i, (letter, side) in enumerate(zip("ab", found.sides, strict=True)):
        name = f"{letter}: {words.side_words(found, side) or words.sentence(side)}"
        overview = beside.heads[i] if beside.heads else None
        if isinstance(overview, Overview):
            reading = readings.of_overview(overview, made.blocks, [side.head], name, found.by)
            reading["opens"] = {"layer": side.head.layer, "head": side.head.head}
        else:
            reading = readings.of_heads([side.head], made.blocks, name, found.by)
        reading["opens"]["query"] = side.position
        made.readings.append(reading)
    a, b = (side.head for side in found.sides)
    heads = found.heads if beside.heads else (a.head,)  # heads of one number belong together
    pairs = [[a.layer, head, b.layer, head] for head in heads]
    made.both = {"pairs": pairs, "aligned": found.divergence is not None}
    say = words.said(found)
    made.heading = told(say("subject"), words.heads(found), words.models(found))
    made.says += [say("subject"), *say.lines("view_notes")]
    looked: dict[str, Any] = {"words": found.by.joins, "special": found.special.value}
    opens(made, a.layer, a.head, "both", query=found.a.position, **looked)


def of_difference(made: Document, found: Difference, beside: Beside) -> None:
    """Adds both runs to the page, with the pair that is shown exactly."""
    sheet = sheet_of(found)
    made.first = "sheet"
    made.heading = sheet.title
    made.both = {"pairs": found.pairs, "aligned": True}
    names = [f"{letter}: {run.name}" for letter, run in zip("ab", (found.a, found.b), strict=True)]
    ways = [_looked(result) for result in beside.heads]
    pairs = zip(beside.heads, names, strict=True) if beside.heads else ()
    whole = [readings.of_result(result, made.blocks, name) for result, name in pairs]
    known = [each for each in whole if each is not None]
    looked: dict[str, Any] = {}
    if len(known) < 2 or ways[0] != ways[1]:
        known = _alone(made, found, names)
    else:
        looked = ways[0]
        if looked == _looked(None):
            for each, exact in zip(known, _alone(made, found, names), strict=True):
                each["full"] = exact["full"] | each["full"]
    made.readings = known
    opens(made, view="both", **sheet.opens, **looked)


def _looked(result: Result | None) -> dict[str, Any]:
    """View options of a result for the page: words or tokens, and the treatment of special tokens."""
    special = getattr(result, "special", Special.SHOW)
    by = getattr(result, "by", Unit.TOKEN)
    return {"words": by.joins, "special": special.value}


def _alone(made: Document, found: Difference, names: list[str]) -> list[readings.Reading]:
    """Page entries for the pair that is shown alone, from its weights only; a weight of 0 is masked."""
    pair, blocks = found.pairs[found.shown], made.blocks
    alone = ((found.a, pair[:2], found.before), (found.b, pair[2:], found.after))
    return [
        {
            "name": name,
            **readings.sides(run.query_tokens, run.key_tokens),
            "layers": [layer],
            "heads": [head],
            "depth": 0,
            "blocks": None,
            "small": None,
            "full": {
                f"L{layer}H{head}": {
                    "weights": blocks.floats(np.where(weights == 0, np.nan, weights)),
                    "q": None,
                }
            },
            "certificates": blocks.json(readings.table([[run.verdict]], [[verdict_words(run.verdict)]])),
            "opens": {"layer": layer, "head": head},
            "command": "",
        }
        for name, (run, (layer, head), weights) in zip(names, alone, strict=True)
    ]
