"""The answer before and after a head is taken out, and with a mask in the place of a token."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from made_results import provenance

from attnscope.errors import InputError
from attnscope.explore import questions as ask
from attnscope.explore.app import Explorer
from attnscope.explore.asking import Failed
from attnscope.explore.source import Source
from attnscope.explore.state import Scene, State, Tower, start
from attnscope.explore.surface import Surface
from attnscope.explore.views import of_prediction
from attnscope.results.claims.effect import Asks, Choice, Place, Without
from attnscope.tokens import Token, Tokens
from attnscope.vocabulary import Kind


def drawn(state: State, find: Callable[[object], object], width: int = 40) -> list[str]:
    part = of_prediction(state, find)
    lines = Surface("truecolor", "dark").lines(part.drawing(width, 20), width)
    return ["".join(each.text for each in line).rstrip() for line in lines]


def words(line: str) -> list[str]:
    """A per cent is one word with its number."""
    return [each.replace("~", " ") for each in line.replace(" %", "~%").split()]


@pytest.fixture
def out(demo: Source) -> State:
    return start(demo.scene()).takes()


def known(state: State, answer: object) -> Callable[[object], object]:
    return {ask.OfWithout.of(state, state.removed): answer}.get


def test_probabilities_have_as_many_digits_as_tell_before_from_after(out: State) -> None:
    place = Place((Choice("a", 0.9991, 0.9988), Choice("b", 0.25, 0.5), Choice("c", 2e-9, 2e-9)), 0)
    told = drawn(out, known(out, Without(((0, 0),), Asks.MASK, 7, (place,))))
    assert [words(line) for line in told] == [
        ["7", "[MASK]"],
        ["token", "before", "without"],
        ["a", "99.91 %", "99.88 %"],
        ["b", "25.0 %", "50.0 %"],
        ["c", "<0.1 %", "<0.1 %"],
    ]


@pytest.mark.parametrize("width", [20, 24, 26, 40])
def test_no_probability_from_before_ever_stands_without_the_other(out: State, width: int) -> None:
    """However narrow the pane, however long the names, however many digits tell them apart."""
    choices = (
        Choice("extraordinarily", 0.9991, 0.9988),
        Choice("triangle", 0.99999, 0.9998),
        Choice("of", 1, 1),
    )
    places = tuple(Place((each,), 0) for each in choices)
    told = drawn(out, known(out, Without(((0, 0),), Asks.WRITTEN, None, places)), width)
    assert told[0].split()[-2:] == ["before", "without" if width >= 26 else "out"]
    assert [words(line)[-2:] for line in told[1:]] == [
        ["99.91 %", "99.88 %"] if width >= 26 else ["99.9 %", "99.9 %"],
        [">99.99 %", "99.98 %"] if width >= 26 else [">99.9 %", ">99.9 %"],
        ["100 %", "100 %"],
    ]
    assert all(len(line) <= width for line in told)


def test_of_a_text_every_token_has_both_and_what_is_likelier_there_now(out: State) -> None:
    places = (
        Place((Choice("le", 0.9, 0.8), Choice("un", 0.1, 0.2)), 0),
        Place((Choice("chat", 0.7, 0.3), Choice("chien", 0.2, 0.6)), 0),
        Place((Choice("dort", 0.4, 0.6), Choice("court", 0.5, 0.3)), 0),
    )
    told = drawn(out, known(out, Without(((0, 0),), Asks.WRITTEN, None, places)))
    assert [words(line) for line in told] == [
        ["token", "before", "without", "instead"],
        ["le", "90.0 %", "80.0 %"],
        ["chat", "70.0 %", "30.0 %", "chien"],
        ["dort", "40.0 %", "60.0 %"],
    ]


def test_what_cannot_be_run_without_a_head_says_why_and_shows_no_number(out: State) -> None:
    assert drawn(out, known(out, Failed("there is not enough memory for this"))) == [
        "there is not enough memory for this"
    ]
    assert drawn(out, {}.get) == ["running without L0 H0 …"]


def test_the_answer_without_heads_is_what_ablating_them_measures(demo: Source) -> None:
    state = start(demo.scene()).takes().by_heads(3, 11).takes()
    without, measured = (
        demo.answer(ask.OfWithout.of(state, state.removed)),
        demo.answer(ask.OfAbsence.of(state, state.removed)),
    )
    (place,) = without.places
    meant, effect = place.choices[place.meant], measured.group.effect
    assert meant.text == measured.answer.text
    assert meant.before == pytest.approx(effect.before, abs=1e-6)
    assert meant.after == pytest.approx(effect.after, abs=1e-6)
    assert sum(each.before for each in place.choices) <= 1 + 1e-9
    assert len({each.text for each in place.choices}) == len(place.choices) >= 5
    with pytest.raises(InputError, match="no head 12 in layer 3"):
        demo.answer(ask.OfWithout(state.scene.text, state.scene.tower.pattern, ((3, 12),)))


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
    tower = Tower("encoder", Kind.ENCODER, "encoder x", (0,), 1)
    tokens = Tokens((TEXT, "and"), items)
    return replace(Scene("m", TEXT, (tower,), tower, tokens, tokens, provenance(), mask="<mask>"), **changes)


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

    explored(keys)
