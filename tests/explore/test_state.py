"""Every key as a function from one state to the next; by hand on a grid of 3 layers by 5 heads."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from made_results import provenance

from attnscope.errors import InputError
from attnscope.explore import questions as ask
from attnscope.explore.grid import Places
from attnscope.explore.sentence import set_sentence
from attnscope.explore.state import Scene, State, Tower, View, start
from attnscope.explore.writing import command, file_name, unused
from attnscope.tokens import Token, Tokens
from attnscope.vocabulary import Kind, Special


def tokens(*names: str) -> Tokens:
    items = tuple(Token(i, name, name, None, None) for i, name in enumerate(names))
    return Tokens((" ".join(names),), items)


def scene(kind: Kind = Kind.ENCODER, towers: int = 1, text: str = "a b c d") -> Scene:
    """Layers 2, 4 and 7 have attention, as in a hybrid."""
    every = tuple(Tower(str(each), each, f"{each} x", (2, 4, 7), 5) for each in list(Kind)[:towers])
    mine = replace(every[0], kind=kind)
    keys = tokens("a", "b", "c", "d") if kind is not Kind.CROSS else tokens("x", "y")
    run = replace(provenance(demo=True), read=(text,))
    queries = tokens("a", "b", "c", "d")
    return Scene("m", text, (mine, *every[1:]), mine, queries, keys, run, first=1, place=(2, 0))


@pytest.fixture
def state() -> State:
    return start(replace(scene(), place=(4, 3)))


def test_one_begins_at_the_head_that_was_asked_for_and_at_the_first_query(state: State) -> None:
    assert (state.place, state.query, state.key) == ((4, 3), 1, None)
    assert start(scene()).place == (2, 0)


def test_heads_move_over_the_layers_that_there_are_and_stop_at_the_ends(state: State) -> None:
    assert state.by_heads(1, 0).place == (7, 3)
    assert state.by_heads(2, 0).place == (7, 3)
    assert state.by_heads(-1, 1).place == (2, 4)
    assert state.by_heads(0, 9).place == (4, 4)
    assert state.by_heads(0, -9).place == (4, 0)
    assert state.to_head(5, 1).place == (4, 1), "the nearest layer that has attention"


@pytest.mark.parametrize("where", ["7.1", "L7H1", "l7 h1", "7 1", "7,1", " 7.1 "])
def test_a_jump_is_written_in_many_ways(state: State, where: str) -> None:
    assert state.jumped(where).place == (7, 1)


@pytest.mark.parametrize("where", ["3.1", "7.5", "7", "x", "", "7.1.1", "-1.2", "[b]7[/b]"])
def test_a_jump_to_what_is_not_there_is_refused_with_what_there_is(state: State, where: str) -> None:
    with pytest.raises(InputError, match="layers 2-7, heads 0-4"):
        state.jumped(where)


def test_a_key_follows_its_query_until_it_is_chosen(state: State) -> None:
    chosen = state.to_key(3)
    assert chosen.key == 3
    assert chosen.to_key(8).key == 3, "the last"
    assert chosen.to_query(0).key is None
    assert state.to_query(9).query == 3


def test_taking_heads_out_and_putting_them_back(state: State) -> None:
    once = state.takes()
    twice = once.by_heads(0, 1).takes()
    assert twice.removed == ((4, 3), (4, 4))
    assert twice.view is View.WITHOUT
    back = twice.takes()
    assert back.removed == ((4, 3),)
    assert back.to_head(4, 3).takes().view is View.MATRIX


def test_another_text_keeps_the_head_and_what_was_taken_out_and_forgets_what_was_found(state: State) -> None:
    found = state.takes().seeks(2)
    moved = found.on(scene(text="e f g h"))
    assert (moved.place, moved.removed, moved.sought) == ((4, 3), ((4, 3),), None)
    assert moved.view is View.MATRIX
    other = replace(scene(), tower=replace(scene().tower, pattern="another"))
    assert found.on(other).removed == (), "its heads are others"


def test_special_tokens_are_treated_in_three_ways_in_turn(state: State) -> None:
    treated = [state.with_special(), state.with_special().with_special()]
    assert [each.special for each in treated] == [Special.HIDE, Special.RENORMALISE]
    assert treated[1].with_special() == state


def test_what_is_asked_first_is_the_head_then_its_own_layer_of_the_grid(state: State) -> None:
    asked = ask.needed(state)
    assert asked[0] == ask.OfHead("a b c d", "encoder x", 4, 3)
    layers = [each.layer for each in asked if isinstance(each, ask.OfLayer)]
    assert layers[0] == 4
    assert sorted(layers) == [2, 4, 7]
    assert len(asked) == len(set(asked))


def test_every_view_asks_its_own_question(state: State) -> None:
    kinds = {
        View.TERMS: ask.OfParts,
        View.MAP: ask.OfMap,
    }
    for view, kind in kinds.items():
        assert type(ask.view_of(state.shows(view))) is kind
    assert ask.view_of(state.seeks(3)) == ask.OfPair("a b c d", "encoder x", 1, 3)
    assert ask.view_of(state.takes()) == ask.OfAbsence("a b c d", "encoder x", ((4, 3),))
    assert ask.view_of(state.beside("z")) == ask.OfOther("a b c d", "encoder x", 4, 3, "z")
    assert state.shows(View.MAP).shows(View.MAP).view is View.MATRIX


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda s: s, "heads 'a b c d' -m demo --layer 4 --head 3 --query b"),
        (lambda s: s.to_key(2), "heads 'a b c d' -m demo --layer 4 --head 3 --query b --key c"),
        (lambda s: s.shows(View.TERMS), "heads 'a b c d' -m demo --layer 4 --head 3 --terms --query b"),
        (lambda s: s.shows(View.MAP), "tsne 'a b c d' -m demo --layer 4 --head 3 --query b"),
        (lambda s: s.seeks(3), "find 'a b c d' -m demo --from b --to d"),
        (lambda s: s.takes(), "ablate 'a b c d' -m demo --heads L4H3"),
        (
            lambda s: replace(s, words=True).with_special(),
            "heads 'a b c d' -m demo --layer 4 --head 3 --query b --by word --special hide",
        ),
    ],
)
def test_every_view_has_its_command(state: State, change, line: str) -> None:
    assert command(change(state)) == f"attnscope {line}"


def test_a_command_reads_and_runs_what_the_view_is_of_quoted_for_a_shell(state: State) -> None:
    read, ran = ("it's $HOME", "--pair", "b"), ("-m", "a b", "--kind", "cross")
    run = replace(state.scene.provenance, read=read, run=ran)
    told = command(replace(state, scene=replace(state.scene, provenance=run)))
    assert shlex.split(told)[:9] == ["attnscope", "heads", *read, *ran]


def test_what_the_model_wrote_is_part_of_the_text_where_heads_are_taken_away(state: State) -> None:
    run = replace(state.scene.provenance, read=("a b", "--generate", "2"))
    written = replace(tokens("a", "b", "c", "d"), written="likeliest", texts=("a b", " c d"))
    wrote = replace(state, scene=replace(state.scene, queries=written, provenance=run))
    assert command(wrote).startswith("attnscope heads 'a b' --generate 2 -m demo --layer 4")
    assert command(wrote.takes()) == "attnscope ablate 'a b c d' -m demo --heads L4H3"


def test_files_are_called_by_head_and_view(state: State) -> None:
    assert file_name(state, ".html") == "L4H3.html"
    assert file_name(state.shows(View.MAP), ".png") == "L4H3-map.png"


def test_a_name_that_a_file_has_is_never_proposed(tmp_path: Path) -> None:
    target = tmp_path / "L4H3.html"
    for name in ("L4H3.html", "L4H3-2.html", "L4H3-3.html"):
        assert unused(target) == tmp_path / name
        (tmp_path / name).touch()
    assert unused(tmp_path / "L4H4.html").name == "L4H4.html"


def test_a_place_in_the_grid_is_a_head_and_around_it_is_none() -> None:
    laid = Places((2, 4, 7), (0, 1, 2), margin=3, cells=2)
    assert laid.at(3, 1) == (2, 0)
    assert laid.at(8, 3) == (7, 2)
    assert [laid.at(*place) for place in ((2, 1), (3, 0), (9, 1), (3, 4))] == [None] * 4


def test_a_long_sentence_is_shown_around_the_cursor() -> None:
    many = tokens(*(f"w{i}" for i in range(100)))
    laid = set_sentence(many, 50, margin=4, width=24, lines=2, marks=False)
    assert laid.lines == 2
    assert 50 in [run.token for run in laid.runs]
    at = next(run for run in laid.runs if run.token == 50)
    assert laid.at(4 + at.start, at.line - laid.first) == 50
    assert laid.at(4 + at.start - 1, at.line - laid.first) is None


def test_words_of_several_tokens_are_joined_to_begin_with_and_only_these() -> None:
    pieces = zip(range(3), ("wat", "##ching", "doors"), (0, 0, 1), strict=True)
    both = Tokens(("watching doors",), tuple(Token(i, piece, piece, None, word) for i, piece, word in pieces))
    several = replace(scene(), queries=both, keys=both)
    assert several.in_pieces
    assert start(several).words
    assert not start(scene()).words
    assert not start(replace(several, medium="a picture")).words
    assert start(scene()).on(several).words
    assert not replace(start(several), words=False).on(replace(several, text="again")).words, "as it was left"
