"""Nothing that misleads is certified, and everything that is right is: on every route, at every place.

What is proved by cause of one text is handed on to another one, as corpora do.
"""

from collections import Counter

import pytest

from attnscope.attention import AttentionCall
from attnscope.capture import Selection, record
from attnscope.capture.run import NothingSeenError
from attnscope.capture.weights import OneText, Passed, Passing
from attnscope.results import Verdict
from attnscope.verify import certify_heads
from attnscope.vocabulary import Standing
from tests.capture.constructed.construction import EVERY, Construction
from tests.capture.constructed.harmless import HARMLESS
from tests.capture.constructed.misleading import LONG, MISLEADING
from tests.capture.constructed.model import Place
from tests.capture.constructed.truth import GOOD, faults_in, truth

_EVERY = 37  # of the constructions, as they come
_FEW = [1, 3]  # queries in which a fault is looked for first


@pytest.mark.parametrize("name", MISLEADING)
def test_what_misleads_is_not_certified(name: str) -> None:
    assert faults_in(MISLEADING[name], misleads=True) == []


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_odd_and_right_is_certified(name: str) -> None:
    assert faults_in(HARMLESS[name], misleads=False) == []


@pytest.mark.parametrize("name", LONG)
def test_what_misleads_beyond_the_beginning_is_not_certified_without_saying_what_was_tried(name: str) -> None:
    assert truth(LONG[name]).misleading
    for head, told in LONG[name].certificates():
        assert told.verdict not in GOOD or "512" in told.positions_tried, head


def test_there_are_enough_of_every_route() -> None:
    for made in (MISLEADING, HARMLESS):
        routes = Counter(each.route for each in made.values())
        assert {*routes} == {*EVERY}
        assert min(routes.values()) >= 15


@pytest.mark.parametrize(
    ("name", "heads", "reason"),
    [
        ("eager: rows of head 1 flipped", [1], "rows moved"),
        ("fused: rows averaged after the kernel", [0, 1, 2], "rows mixed"),
        ("fused: rows leaking a little after the kernel", [0, 1, 2], "rows mixed"),
        ("fused: values of head 1 flipped", [1], "keys and values of different rows"),
        ("fused: rows flipped on keys and values", [0, 1, 2], "keys of other rows"),
        ("fused: first two heads swapped after the kernel", [0, 1], "another head's columns"),
        ("fused: head 2 zeroed after the kernel", [2], "no effect"),
        ("fused: rows first row zeroed in the block after the module", [0, 1, 2], "no effect of 1 rows"),
        ("eager: of the next head in the kernel, on the weights", [0, 1, 2], "other weights"),
    ],
)
def test_the_truth_is_told_of_the_heads_that_it_is_true_of(name: str, heads: list[int], reason: str) -> None:
    assert truth(MISLEADING[name]).misleading == {(1, head, 0): reason for head in heads}
    assert truth(HARMLESS["fused: plain"]).misleading == {}


def test_the_truth_knows_the_layer_the_call_and_the_place() -> None:
    first = truth(MISLEADING["fused: rows averaged in the first layer"]).misleading
    assert first == {(0, head, 0): "rows mixed" for head in range(3)}
    second = truth(MISLEADING["fused: a second attention, rolled"]).misleading
    assert second == {(1, head, 1): "rows moved" for head in range(3)}
    assert truth(HARMLESS["fused: plain"]).in_place == {0, 1}
    assert truth(HARMLESS[f"fused: rows shuffled {Place.GIVEN} and put back {Place.RESULT}"]).in_place == {0}


def short(made: dict[str, Construction]) -> list[str]:
    names = [name for name, each in made.items() if each.route != "tiled" and not each.texts > 1]
    return [name for name in names if not made[name].padded and not made[name].weak]


def verdicts(construction: Construction) -> dict[tuple[int, int], tuple[Verdict, Standing]]:
    """By layer and head, of a text by what was tried on its tokens in another order.

    With each what its positions were found to be; nothing where a layer attends in blocks.
    """
    model, inputs = construction.built()
    other = {name: ids.flip(1) for name, ids in inputs.items()}
    tried = record(model, other, Selection()).calls
    like = {call.layer: call for call in tried}
    found = dict[tuple[int, int], tuple[Verdict, Standing]]()
    if len(like) < len(tried):
        return found
    first: AttentionCall = tried[0]
    heads = tuple(first.weights)

    def see(layer: int, passed: Passed) -> None:
        assert passed.call is not None
        for head, certificate in zip(heads, certify_heads(passed.call, heads, _FEW), strict=True):
            found[layer, head] = certificate.verdict, certificate.positions

    text = OneText(0, first.query_tokens, like, heads, first.key_tokens)
    Passing(model, Selection()).read(inputs, see, text)
    return found


@pytest.mark.parametrize("name", short(MISLEADING)[::_EVERY])
def test_what_misleads_in_the_text_on_which_it_was_tried_is_certified_in_no_other(name: str) -> None:
    construction = MISLEADING[name]
    try:
        found = verdicts(construction)
    except NothingSeenError:  # it is refused where layers are read as they pass by
        return
    wrong = [head[:2] for head, each in construction.certificates() if each.verdict not in GOOD]
    assert wrong
    assert not found or all(found[head][0] not in GOOD for head in wrong)


@pytest.mark.parametrize("name", short(HARMLESS)[:: 4 * _EVERY])
def test_what_is_right_is_certified_in_other_texts_but_where_rows_are_not_the_tokens(name: str) -> None:
    for verdict, positions in verdicts(HARMLESS[name]).values():
        assert verdict in GOOD or (verdict, positions) == (Verdict.PARTIAL, Standing.OTHER)
