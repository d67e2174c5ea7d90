"""Heads that are named with their layer, and what that means as lists of layers and heads."""

import pytest

from attnscope.errors import InputError
from attnscope.session.selection import Named, named_heads
from attnscope.session.wanted import APART, Wanted


@pytest.mark.parametrize(
    ("text", "layers", "heads"),
    [
        ("L3H11", "3", "11"),
        ("l3 h4", "3", "4"),
        ("L3", "3", None),
        ("L3-5", "3-5", None),
        ("L3,L5", "3,5", None),
        ("L3H-1", "3", "-1"),
        ("L3H0-5", "3", "0-5"),
        ("L3H1,L3H2", "3", "1,2"),
        ("L2H1,L3H1", "2,3", "1"),
        ("L2H1,L2H4,L3H1,L3H4", "2,3", "1,4"),
    ],
)
def test_heads_named_with_their_layer_are_lists_of_layers_and_heads(text, layers, heads):
    assert named_heads(text) == Named(layers, heads)
    wanted = Wanted(head=text)
    assert (wanted.layer, wanted.head, wanted.apart) == (layers, heads, ())


@pytest.mark.parametrize("text", ["11", "3,7", "4-8", "all", "-1"])
def test_numbers_alone_are_heads_of_any_layer(text):
    assert named_heads(text) is None
    assert Wanted(layer=2, head=text).layer == 2


def test_heads_of_several_layers_one_by_one_are_kept_in_their_order_where_that_is_possible():
    wanted = Wanted(takes=APART, head="L3H7, l2 h4")
    assert wanted.apart == ((3, 7), (2, 4))
    assert (wanted.layer, wanted.head) == ("3,2", "7,4")
    with pytest.raises(
        InputError,
        match=r"here the same heads of every layer are meant, --layer 3,2 --head 7,4; find, ablate",
    ):
        Wanted(head="L3H7, l2 h4")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("L3H1,4", "no list of heads: write them as L3H11, L3 or L3-5"),
        ("L3H", "no list of heads"),
        ("L3,L2H1", r"name whole layers \(L3-5\) or heads one by one"),
        ("L3H1-4,L2H1", "name whole layers"),
        ("H4", "is not a list: use 3, -1, 0,3,7, 4-8 or all; L3H11 and L3 name layers as well"),
    ],
)
def test_what_is_no_list_of_heads_is_refused(text, why):
    with pytest.raises(InputError, match=why):
        Wanted(takes=APART, head=text)


def test_a_layer_is_not_given_twice():
    with pytest.raises(InputError, match="--head L3H1 names its layer: leave --layer out"):
        Wanted(layer="3", head="L3H1")
