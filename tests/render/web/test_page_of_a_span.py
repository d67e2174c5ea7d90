"""A page that is asked for a span opens on its first token, not on the token at the place of its row."""

from attnscope import load
from attnscope.render.focus import Focus
from attnscope.render.web.document import document
from attnscope.render.web.room import NOTHING
from attnscope.session.looking import aim_at
from attnscope.session.wanted import Looking

TEXT = "I was watching the door when [MASK] opened."


def test_a_page_of_a_span_opens_on_tokens_that_were_named() -> None:
    seen = aim_at(load("demo").read(TEXT).head(3, 11), Looking(), "[MASK]", "the door")
    assert (seen.query, seen.key) == (6, 4)  # the span is one row
    opening = document(seen.shown, Focus(queries=(seen.query,), key=seen.key), NOTHING).opening
    assert (opening["query"], opening["key"]) == (7, 4)  # [MASK], and the first of the door
    single = aim_at(load("demo").read(TEXT).head(3, 11), Looking(), "[MASK]", "door")
    opening = document(single.shown, Focus(queries=(single.query,), key=single.key), NOTHING).opening
    assert (opening["query"], opening["key"]) == (7, 5)
