"""Lists of layers and heads as they are typed."""

import pytest

from attnscope.cli.options.model import ArticleHead
from attnscope.errors import InputError, listed
from attnscope.session.selection import choose, parse
from attnscope.session.wanted import Wanted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", (3,)),
        ("-1", (7,)),
        ("0,3,7", (0, 3, 7)),
        ("7, 0", (0, 7)),
        ("4-6", (4, 5, 6)),
        ("-3--1", (5, 6, 7)),
        ("1-2,2-3", (1, 2, 3)),
        ("all", tuple(range(8))),
        ("ALL", tuple(range(8))),
        (None, tuple(range(8))),
    ],
)
def test_a_list_names_these_layers(text, expected) -> None:
    assert choose(parse(text, "layer"), tuple(range(8)), "layer", "m") == expected


def test_a_range_in_a_hybrid_names_the_layers_that_have_attention() -> None:
    assert choose(parse("4-12", "layer"), (4, 8, 12, 16), "layer", "m") == (4, 8, 12)
    assert choose(parse("-1", "layer"), (4, 8, 12, 16), "layer", "m") == (16,)


@pytest.mark.parametrize("text", ["8", "-9", "6-9", "5-3"])
def test_a_number_that_is_not_there_says_what_is(text: str) -> None:
    with pytest.raises(InputError, match=f"no layer {text} in m: layers 0-7"):
        choose(parse(text, "layer"), tuple(range(8)), "layer", "m: layers 0-7")


@pytest.mark.parametrize("text", ["x", "", "1,,2", "1-", "3.5", "1 2"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a list"):
        parse(text, "layer")


def test_a_span_is_written_short_only_when_it_is_unbroken() -> None:
    assert (listed((0, 1, 2)), listed((4, 8)), listed((3,))) == ("0-2", "4, 8", "3")


class Heard:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def notice(self, text: str) -> None:
        self.told.append(text)


@pytest.mark.parametrize(
    ("layer", "head", "heads", "expected", "told"),
    [
        (None, None, dict.fromkeys(range(4), 12), (3, 11), ""),
        (None, None, {0: 4, 1: 4}, (1, 2), "no L3 H11 here: showing L1 H2, in the middle"),
        (None, None, dict.fromkeys(range(5), 4), (3, 2), "showing L3 H2, in the middle"),
        (None, None, {4: 12, 8: 12, 12: 12}, (8, 11), "showing L8 H11, in the middle"),
        ("1", None, {0: 12, 1: 12}, ("1", 11), ""),
        (None, "0", {0: 12, 1: 12}, (1, "0"), "showing L1 H0"),
        ("0", "1", {0: 4, 1: 4}, ("0", "1"), ""),
        ("7", "9", {0: 4}, ("7", "9"), ""),
    ],
)
def test_the_articles_head_is_shown_where_it_is_and_else_one_in_the_middle_which_is_told(
    layer, head, heads, expected, told
) -> None:
    heard = Heard()
    found = ArticleHead(layer=layer, head=head).among(heads, heard)  # type: ignore[arg-type]
    assert (found.layer, found.head) == expected
    assert told in "".join(heard.told)
    assert bool(heard.told) == bool(told)


def test_what_shows_all_heads_chooses_none() -> None:
    heard = Heard()
    assert Wanted().among({0: 4}, heard) == Wanted()  # type: ignore[arg-type]
    assert heard.told == []
