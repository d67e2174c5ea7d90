"""What a page shows of claims about heads, each beside its control: found, taken away, compared, counted."""

from typing import Any

from attnscope.render.sheets import comparison_words as words
from attnscope.render.sheets import sheet_of
from attnscope.render.web import readings as sides
from attnscope.render.web import runs
from attnscope.render.web.beside import Beside
from attnscope.render.web.document.parts import Document, all_heads, opens, told
from attnscope.render.web.tokens import first_token
from attnscope.results import (
    Comparison,
    Difference,
    Special,
)


def of_sheet(made: Document, found: Any, beside: Beside) -> None:
    """Beside its sheet the weights that it is about, and the head that these open on."""
    sheet = sheet_of(found)
    all_heads(made, beside)
    made.heading = told(sheet.title, sheet.setting)
    if sheet.opens:
        made.opener = sides.opener(found)
        opened = dict(sheet.opens)
        words, special = opened.get("words", False), opened.get("special", Special.SHOW)
        for side, name in (("queries", "query"), ("keys", "key")):
            if name in opened:
                opened[name] = first_token(opened[name], made.tokens(side), words, special)
        opens(made, view="heads", **opened)


def of_comparison(made: Document, found: Comparison, beside: Beside) -> None:
    made.readings = runs.of_sides(found, beside.heads, made.blocks)
    a = found.a
    made.both = {
        "pairs": runs.pairs_of(found, beside.heads),
        "aligned": found.divergence is not None,
    }
    made.heading = told(words.subject(found), words.heads(found), words.models(found))
    made.says += [words.subject(found), *words.view_notes(found)]
    looked: dict[str, Any] = {"words": found.words, "special": found.special.value}
    opens(made, a.head.layer, a.head.head, "both", query=a.position, **looked)


def of_difference(made: Document, found: Difference, beside: Beside) -> None:
    sheet = sheet_of(found)
    made.heading = sheet.title
    made.both = {"pairs": found.pairs, "aligned": True}
    made.readings, looked = runs.of_runs(found, beside.heads, made.blocks)
    opens(made, view="both", **sheet.opens, **looked)
