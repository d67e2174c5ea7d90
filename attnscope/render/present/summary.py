"""A result in one line, as its `repr`: what it is, of which model, and what is proved of it."""

from attnscope.render.kit.labels import fit
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheets import sheet_of
from attnscope.results import Result

_MOST, _MOST_NAME = 150, 40  # cells of all but the verdict, and of one name in it


def summary(result: Result) -> str:
    """`<HeadAttention L3 H11 · encoder self-attention · 11 queries x 11 keys · demo · ✓ certified>`."""
    sheet = sheet_of(result)
    model = [fit(model_words(each), _MOST_NAME) for each in sheet.origins[:1]]
    parts = [fit(sheet.title, 2 * _MOST_NAME), *sheet.summary, *model]
    told = fit(" · ".join(part for part in parts if part), _MOST)
    proved = [] if result.verdict is None else [verdict_words(result.verdict)]
    return f"<{type(result).__name__} {' · '.join([told, *proved])}>"
