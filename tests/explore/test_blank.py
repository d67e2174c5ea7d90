"""A mask in the place of a token: the text that comes of it, and why there may be none."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from attnscope.errors import InputError
from attnscope.explore.app import Explorer
from attnscope.explore.state import Scene, Tower
from attnscope.tokens import Token, Tokens
from attnscope.vocabulary import Kind

TEXT = "un café, door"


def scene(**changes: object) -> Scene:
    """A pair whose second word has the blank before it in its token, as some tokenizers have it."""
    items = (
        Token(0, "[CLS]", "", None, None, special=True),
        Token(1, "un", "un", (0, 2), 0),
        Token(2, "Ġcafé", " café", (2, 7), 1),
        Token(3, ",", ",", (7, 8), 2),
        Token(4, "<mask>", "door", (9, 13), 3, special=True),
        Token(5, "and", "and", (0, 3), 0, part=1),
    )
    tower = Tower("encoder", "", Kind.ENCODER, "encoder x", (0,), 1)
    tokens = Tokens((TEXT, "and"), items)
    return replace(Scene("m", TEXT, (tower,), tower, tokens, tokens, mask="<mask>"), **changes)


@pytest.mark.parametrize(
    ("query", "text"), [(1, "<mask> café, door"), (2, "un <mask>, door"), (3, "un café<mask> door")]
)
def test_a_mask_stands_where_the_token_stood_and_blanks_stay(query: int, text: str) -> None:
    assert scene().with_mask(query) == text


@pytest.mark.parametrize(
    ("query", "why"), [(0, "is not of the text"), (4, "is a blank already"), (5, "is of the second text")]
)
def test_what_is_no_word_of_the_text_stays_and_says_why(query: int, why: str) -> None:
    with pytest.raises(InputError, match=why):
        scene().with_mask(query)


def test_a_model_that_fills_no_blanks_says_so() -> None:
    with pytest.raises(InputError, match="m fills in no blanks"):
        scene(mask="").with_mask(1)


def test_the_key_puts_a_mask_shows_what_is_expected_there_and_takes_it_back(
    explored: Callable[..., Explorer],
) -> None:
    async def keys(app: Explorer, screen) -> None:
        first = app.state.scene.text
        await screen.press("tab", "up", "up", "underscore")
        assert app.state.scene.text == "I was watching the [MASK] when [MASK] opened."
        assert app.state.query == 5
        assert "5 [MASK]" in screen.pane("predicts")
        assert "door" in screen.pane("predicts"), "among the five that are likeliest"
        await screen.press("underscore")
        assert app.state.scene.text == first
        await screen.press("home", *["up"] * 6, "underscore")
        assert "[CLS] is not of the text" in screen.pane("status")

    explored(keys)
