"""What is proved by cause of one text is handed on to another one, as corpora do."""

import pytest

from attnscope.attention import AttentionCall
from attnscope.capture import Selection, record
from attnscope.capture.routes import NothingSeenError
from attnscope.capture.weights import OneText, Passed, Passing
from attnscope.results import Verdict
from attnscope.verify import certify_heads
from attnscope.vocabulary import Standing
from tests.capture.constructed.construction import Construction
from tests.capture.constructed.harmless import HARMLESS
from tests.capture.constructed.judged import GOOD
from tests.capture.constructed.misleading import MISLEADING

_EVERY = 11  # of the constructions, as they come
_FEW = [1, 3]  # queries in which a fault is looked for first


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
