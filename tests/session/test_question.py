"""A question is data: its fields are the options of a command and the parameters of a method.

Beside it the lists of layers and heads as they are typed, and heads that are named with their layer.
"""

import inspect
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from corpus_of_demo import Hearing
from typer.testing import CliRunner

import attnscope as at
from attnscope.cli.panels import Panelled, grouped
from attnscope.errors import InputError, listed
from attnscope.register import registered
from attnscope.session.option import option, slots, spoken, words
from attnscope.session.question import Files, asks, form_of, question_of
from attnscope.session.selection import Named, choose, named_heads, parse
from attnscope.session.wanted import APART, OneWanted, Wanted
from attnscope.verbs.find.question import FORMS, Find, FindLinks, Retrieve
from attnscope.verbs.heads.question import ShowHeads
from attnscope.verbs.tsne.question import Map


@dataclass(frozen=True)
class FindFew(Find):
    """The same with one option more: at most so many, `most`."""

    _: KW_ONLY
    most: Annotated[int, option("--most", metavar="N", help="So many at most.", brief="so many")] = 7


class Asked:
    few = asks(FindFew)


def typed(*words: str, forms: Any = FindFew) -> tuple[Any, str]:
    """The question that a command of these forms is given, and what it prints."""
    got = []

    def find(asked: forms) -> None:
        got.append(asked)

    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command("find", cls=Panelled)(grouped(find))
    ran = CliRunner().invoke(app, words)
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return (got[0] if got else None), ran.output


def test_a_field_is_an_option_in_both_helps_a_parameter_and_a_value() -> None:
    brief = typed("--help")[1]
    assert "--most N" in brief
    assert "so many" in brief
    assert "So many at most." in typed("--help-all")[1]
    assert typed("--from", "it", "--to", "door")[0] == FindFew("it", "door")
    asked = typed("--query", "it", "--to", "door", "--most", "3", "--layer", "1", "--by", "word")[0]
    assert asked == FindFew("it", "door", most=3, layers="1", by="word")
    assert (asked.wanted.layer, asked.looking.unit) == ("1", "word")
    said = ["--to", "door", "--most", "3", "--from", "it", "--layer", "1", "--by", "word"]
    assert sorted(words(asked)) == sorted(said), "what is stored, and what a command says again"
    assert FindFew(**spoken([FindFew], words(asked))) == asked
    assert words(Find(2, "2"))[:4] == ("--from", "@2", "--to", "2"), "a position is no token of that name"
    told = inspect.signature(Asked.few)
    assert (told.parameters["most"].default, told.return_annotation) == (7, "Finding")
    assert [*told.parameters][:3] == ["self", "query", "key"]
    assert Asked.few.__qualname__ == "Asked.few"


def test_no_two_options_of_a_question_share_a_name() -> None:
    for form in (form for verb in registered().values() for form in verb.forms):
        names = [name for slot in slots(form).values() for name in slot.option.names]
        assert len(names) == len({*names})


def test_options_say_which_form_of_a_verb_is_meant_and_those_of_others_are_refused() -> None:
    assert form_of(FORMS, {"pattern": "retrieval", "needles": 3}) is Retrieve
    assert form_of(FORMS, {"controls": 3}) is FindLinks
    assert form_of(FORMS, {"pattern": "previous"}) is Find
    for given, says in (
        ({"query": "it", "key": "door", "needles": 3}, "--needles goes with --pattern retrieval"),
        ({"pattern": "retrieval", "query": "it"}, "leave --from out"),
        ({"by": "word"}, "leave --by, --words and --special out"),
    ):
        with pytest.raises(InputError, match=says):
            form_of(FORMS, given)
    assert question_of(FORMS, {"pattern": "retrieval", "lengths": "8,16"}).counts == (8, 16)


def test_a_question_is_checked_where_it_is_made(reading: at.Reading) -> None:
    for wrong, says in (
        ({"query": "it"}, "go together"),
        ({}, "say what to find"),
        ({"pattern": "previus"}, "did you mean previous"),
        ({"like": "3.11"}, "names no head"),
        ({"pattern": "self", "heads": "L1H2,L3", "layers": None}, "name whole layers"),
        ({"pattern": "self", "by": "line"}, "--by is 'line'"),
        ({"pattern": "self", "controls": 0}, "--controls 0"),
    ):
        with pytest.raises(InputError, match=says):
            Find(**wrong)
    for call, wrong, meant in ((reading.find, "contrls", "controls"), (at.load, "revison", "revision")):
        with pytest.raises(TypeError, match=rf"{call.__name__}\(\) has no '{wrong}': did you mean {meant}"):
            call("A", **{wrong: 3})
    with pytest.raises(TypeError, match=r"why\(\): missing a required argument: 'key'"):
        reading.why(3, 11, "opened")  # type: ignore[call-overload]


def test_a_question_that_is_asked_and_its_method_have_one_answer(reading: at.Reading) -> None:
    asked, called = reading.ask(Find(2, 1, controls=5)), reading.find(2, 1, controls=5)
    assert asked.ranking == called.ranking
    assert (asked.weights == called.weights).all()
    assert inspect.signature(at.Reading.cite).return_annotation == "Citation"


def test_an_answer_says_what_of_it_is_looked_at_and_a_page_what_stands_beside_it(reading: at.Reading) -> None:
    seen = reading._answered(Map(3, 11, query="it", key="the [MASK]", max_iter=250))
    assert seen.focus == {"queries": (6,), "key": 4}  # the two before are one point
    assert [each.head.name for each in seen.every_head()] == ["L3 H11"]
    paged = ShowHeads(layers=3, heads=[1, 2]).into(Files((Path("a.html"),)))
    assert [head.name for head in reading._answered(paged).beside()["full"]] == ["L3 H1", "L3 H2"]


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
    heard = Hearing()
    found = OneWanted(layer=layer, head=head).among(heads, heard)
    assert (found.layer, found.head) == expected
    assert told in "".join(heard.told)
    assert bool(heard.told) == bool(told)


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
