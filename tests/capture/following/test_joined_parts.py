"""Steps of generating put together: cut out of one attention over the whole text, they must give it back."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from made_calls import STEP, call_of, tokens
from torch import Tensor

from attnscope.attention import AttentionCall, Term
from attnscope.capture.generated import JoinedCall
from attnscope.errors import InputError
from attnscope.results import Kind, Route

HEADS, KEY_HEADS, READ, DIM, VALUE_DIM = 4, 2, 7, 5, 3
STEPS = ((0, 4), (4, 5), (5, 7))  # the prompt, one token, two at once


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def whole(*, window: int = READ, **changes: Any) -> AttentionCall:
    """A causal attention over the whole text, each query seeing `window` keys at most."""
    far = torch.arange(READ)[:, None] - torch.arange(READ)[None, :]
    plain = {
        "terms": (Term("bias", drawn(1, READ, READ, seed=3)),),
        "allowed": ((far >= 0) & (far < window))[None],
        "unrotated_k": drawn(KEY_HEADS, READ, DIM, seed=4),
    }
    q, k = drawn(HEADS, READ, DIM), drawn(KEY_HEADS, READ, DIM, seed=1)
    return call_of(q, k, drawn(KEY_HEADS, READ, VALUE_DIM, seed=2), **{**plain, **changes})


def step(text: AttentionCall, begin: int, end: int, oldest: int = 0) -> AttentionCall:
    """What one step hands over: queries `begin` to `end`, keys from `oldest` on."""
    rows, keys = slice(begin, end), slice(oldest, end)
    allowed = text.allowed[:, rows, keys]
    sinks = text.sinks
    return replace(
        text,
        q=text.q[:, rows],
        k=text.k[:, keys],
        v=text.v[:, keys],
        query_tokens=tokens(end - begin),
        key_tokens=tokens(end - oldest),
        terms=tuple(Term(term.name, term.values[:, rows, keys]) for term in text.terms),
        allowed=None if allowed.all() else allowed,
        output=text.output[:, rows],
        weights={head: weights[rows, keys] for head, weights in text.weights.items()},
        unrotated_k=None if text.unrotated_k is None else text.unrotated_k[:, keys],
        remainder=None if text.remainder is None else text.remainder[:, rows, keys],
        sinks=sinks[:, rows] if sinks is not None and sinks.ndim > 1 else sinks,
    )


def joined(text: AttentionCall, *, kept: int = READ, last: int = len(STEPS)) -> JoinedCall:
    """The steps of a text put together; the cache keeps `kept` keys before the new ones."""
    put = None
    for begin, end in STEPS[:last]:
        here = step(text, begin, end, max(0, begin - kept))
        before = None if text.unrotated_k is None else flat(text.unrotated_k[:, begin:end])
        put = put or JoinedCall(here)
        put.add(here, before)
    return put


def flat(keys: Tensor) -> Tensor:
    """Keys as a projection returns them, `batch token head-and-dim`."""
    return keys.transpose(0, 1).reshape(1, keys.shape[1], -1)


def assert_is(found: AttentionCall, text: AttentionCall) -> None:
    assert found.k.shape[1] == found.q.shape[1] == READ
    for name in ("q", "k", "v", "output", "unrotated_k"):
        assert torch.equal(getattr(found, name), getattr(text, name)), name
    seen = text.allowed_matrix(0)
    assert torch.equal(found.allowed_matrix(0), seen)
    for head, weights in text.weights.items():
        assert torch.equal(found.weights[head], weights.masked_fill(~seen, 0))
        for name, values in text.added(head).items():
            assert torch.equal(found.added(head)[name][seen], values[seen])


def test_steps_of_a_text_give_the_text():
    assert_is(joined(whole()).call(), whole())


@pytest.mark.parametrize("kept", [2, 3])
def test_a_cache_that_slides_gives_the_same_rows_over_the_keys_that_it_had(kept):
    text = whole(window=3)
    assert_is(joined(text, kept=kept).call(), text)


def test_a_term_that_only_some_steps_have_is_nothing_in_the_others():
    text = whole()
    first = replace(step(text, 0, 4), terms=())
    put = JoinedCall(first)
    for each in (first, step(text, 4, 5), step(text, 5, 7)):
        put.add(each, None)
    bias = put.call().added(0)["bias"]
    assert not bias[:4].any()
    assert torch.equal(
        bias[4:].float()[text.allowed[0, 4:]], text.terms[0].values[0, 4:][text.allowed[0, 4:]]
    )


def test_a_term_of_each_head_is_joined_with_one_for_all():
    text = whole(terms=(Term("bias", drawn(HEADS, READ, READ, seed=5)),))
    assert_is(joined(text).call(), text)
    shared = step(text, 0, 4)
    shared = replace(shared, terms=(Term("bias", shared.terms[0].values[:1]),))
    put = JoinedCall(shared)
    for each in (shared, step(text, 4, 5), step(text, 5, 7)):
        put.add(each)
    found = put.call().terms[0].values
    assert found.shape == (HEADS, READ, READ)
    assert torch.equal(found[2, :4, :4], shared.terms[0].values[0])
    assert torch.equal(found[2, 5:], text.terms[0].values[2, 5:])


def test_sinks_by_query_are_joined_and_sinks_by_head_stay():
    by_head, by_query = drawn(HEADS), drawn(HEADS, READ, seed=8)
    assert torch.equal(joined(replace(whole(), sinks=by_head)).call().sinks, by_head)
    assert torch.equal(joined(replace(whole(), sinks=by_query)).call().sinks, by_query)
    assert joined(whole()).call().sinks is None


def test_the_last_step_can_be_taken_back_with_its_keys():
    text = whole()
    put = joined(text)
    put.take_back()
    assert put.read == 5
    found, shorter = put.call(), joined(text, last=2).call()
    for name in ("q", "k", "v", "output", "unrotated_k"):
        assert torch.equal(getattr(found, name), getattr(shorter, name)), name
    assert found.weights[1].shape == (5, 5)


def test_what_one_step_is_uncertain_about_the_text_is_too():
    text, told = whole(), ("", "the first", "the second")
    put = JoinedCall(step(text, 0, 4))
    for said, (begin, end) in zip(told, STEPS, strict=True):
        put.add(replace(step(text, begin, end), reservation=said))
    assert put.call().reservation == "the first"
    assert joined(text).call().reservation == ""


def test_the_most_that_could_not_be_read_in_one_step_is_what_could_not_be_read():
    text = whole()
    put = JoinedCall(step(text, 0, 4))
    for number, (begin, end) in zip((1, 3, 2), STEPS, strict=True):
        put.add(replace(step(text, begin, end), unread=number))
    assert put.call().unread == 3
    assert joined(text).call().unread == 0


@pytest.mark.parametrize(("seen", "known"), [([0, 1, 2], True), ([0, 2], False)])
def test_keys_before_their_rotation_are_known_where_every_step_showed_them(seen, known):
    text, put = whole(), None
    for number, (begin, end) in enumerate(STEPS):
        here = step(text, begin, end)
        put = put or JoinedCall(here)
        put.add(here, flat(text.unrotated_k[:, begin:end]) if number in seen else None)
    assert (put.call().unrotated_k is not None) is known
    silent = replace(whole(), unrotated_k=None)
    assert joined(silent).call().unrotated_k is None


# cross-attention ------------------------------------------------------------------------------------


def across(rows: slice, keys: int = 6, **changes: Any) -> AttentionCall:
    q, k, v = drawn(HEADS, READ, DIM), drawn(KEY_HEADS, keys, DIM, seed=1), drawn(KEY_HEADS, keys, 3, seed=2)
    return call_of(q[:, rows], k, v, kind=Kind.CROSS, **{"unrotated_k": k + 1, **changes})


def test_cross_attention_sees_the_same_keys_in_every_step_and_keeps_them():
    put = JoinedCall(across(slice(0, 4)))
    put.add(across(slice(0, 4)), flat(across(slice(0, 4)).unrotated_k))
    put.add(across(slice(4, 7)))
    found, plain = put.call(), across(slice(0, 7))
    for name in ("q", "k", "v", "unrotated_k"):
        assert torch.equal(getattr(found, name), getattr(plain, name)), name
    torch.testing.assert_close(found.weights[3], plain.weights[3])
    put.take_back()
    assert put.read == 4
    assert put.call().k.shape[1] == 6


def test_cross_attention_over_other_keys_than_before_is_refused():
    put = JoinedCall(across(slice(0, 4)))
    put.add(across(slice(0, 4)))
    with pytest.raises(InputError, match="made up looks at 6 keys first and at 5 later"):
        put.add(across(slice(4, 5), keys=5))


# what cannot be put together ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"), [("scale", 0.5), ("softcap", 3.0), ("window", 4), ("route", Route.TRACED)]
)
def test_a_call_that_changes_while_the_text_grows_is_refused(name, value):
    put = joined(whole(), last=1)
    with pytest.raises(InputError, match=f"^the {name} of made up changes while the text grows$"):
        put.add(replace(step(whole(), 4, 5), **{name: value}))


def test_weights_that_are_changed_after_the_softmax_are_refused():
    put = joined(whole(), last=1)
    later = step(whole(), 4, 5)
    with pytest.raises(InputError, match="read the text without generating"):
        put.add(replace(later, reweighted=later.weights))


def test_more_keys_than_tokens_are_refused_with_both_counts():
    text = whole()
    put = joined(text, last=1)
    with pytest.raises(InputError, match=r"^made up is handed 7 keys after 5 tokens: a cache of fixed size"):
        put.add(call_of(text.q[:, 4:5], text.k, text.v))


def test_keys_that_were_dropped_before_they_were_seen_are_refused():
    text = whole()
    first = call_of(text.q[:, :4], text.k[:, 1:4], text.v[:, 1:4])
    with pytest.raises(InputError, match=r"^made up has dropped keys that it never looked at$"):
        JoinedCall(first).add(first)


@pytest.mark.parametrize("which", ["k", "v"])
@pytest.mark.parametrize(("roundings", "refused"), [(32, False), (32.5, True)])
def test_keys_and_values_of_the_cache_may_change_by_rounding_alone(which, roundings, refused):
    text = whole()
    large = getattr(text, which).double().clone()
    large[1, 0, 0], large[0, 3, 2] = -64.0, 0  # the largest so far, and one whose change is exact
    text = replace(text, **{which: large})
    put = joined(text, last=1)
    later = step(text, 4, 5)
    changed = getattr(later, which).clone()
    changed[0, 3, 2] += roundings * STEP * 64
    later = replace(later, **{which: changed})
    if refused:
        with pytest.raises(InputError, match=r"does not keep its keys and values \(one changes by 0.00025\)"):
            put.add(later)
    else:
        put.add(later)


def test_a_number_of_the_cache_that_is_none_is_refused():
    text = whole()
    put = joined(text, last=1)
    later = step(text, 4, 5)
    spoilt = later.k.clone()
    spoilt[0, 0, 0] = torch.nan
    with pytest.raises(InputError, match="does not keep its keys"):
        put.add(replace(later, k=spoilt))
