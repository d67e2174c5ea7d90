"""Lists of layers and heads as they are typed."""

import pytest

from attnscope.errors import InputError, listed
from attnscope.session.selection import choose, parse


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
