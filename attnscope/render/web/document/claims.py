"""What a page shows of claims about heads, each beside its control: found, taken away, compared, counted."""

from typing import Any

from attnscope.render.sheets import comparison_words as words
from attnscope.render.sheets import sheet_of
from attnscope.render.web import readings as sides
from attnscope.render.web import runs
from attnscope.render.web.beside import Beside
from attnscope.render.web.document.parts import Document, all_heads, opened, opens, told
from attnscope.results import Comparison, Difference
from attnscope.vocabulary import Unit


def of_sheet(made: Document, found: Any, beside: Beside) -> None:
    """Beside its sheet the weights that it is about, and the head that these open on."""
    sheet = sheet_of(found)
    made.first = "sheet"
    all_heads(made, beside, getattr(found, "by", Unit.WORD))
    made.heading = told(sheet.title, sheet.setting)
    if sheet.opens:
        made.opener = sides.opener(found)
        opens(made, **opened(made, sheet.opens))


def of_comparison(made: Document, found: Comparison, beside: Beside) -> None:
    made.first = "sheet"
    made.readings = runs.of_sides(found, beside.heads, made.blocks)
    a = found.a
    made.both = {
        "pairs": runs.pairs_of(found, beside.heads),
        "aligned": found.divergence is not None,
    }
    made.heading = told(words.subject(found), words.heads(found), words.models(found))
    made.says += [words.subject(found), *words.view_notes(found)]
    looked: dict[str, Any] = {"words": found.by.joins, "special": found.special.value}
    opens(made, a.head.layer, a.head.head, "both", query=a.position, **looked)


def of_difference(made: Document, found: Difference, beside: Beside) -> None:
    sheet = sheet_of(found)
    made.first = "sheet"
    made.heading = sheet.title
    made.both = {"pairs": found.pairs, "aligned": True}
    made.readings, looked = runs.of_runs(found, beside.heads, made.blocks)
    opens(made, view="both", **sheet.opens, **looked)
