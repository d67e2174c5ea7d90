"""From what a kernel was handed to a call, one part at a time: precision, masks, sinks, heads, keys."""

import types
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask

from attnscope.capture.following.recorder import (
    IN_THE_MASK,
    RELATIVE_POSITION,
    KernelCall,
    as_keys,
    of_kernel,
    of_trace,
    terms_and_allowed,
)
from attnscope.capture.following.takeover import KernelInputs
from attnscope.capture.trace.fused import TracedAttention
from attnscope.results import Kind, Route
from attnscope.tokens import Token, Tokens

BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, DIM, VALUE_DIM = 3, 6, 2, 4, 5, 8, 7


class Asking(nn.Module):
    """A module that asks for a kernel by name."""

    def __init__(self, kernel: str, **more: object) -> None:
        super().__init__()
        self.config = types.SimpleNamespace(_attn_implementation=kernel)
        for name, value in more.items():
            setattr(self, name, value)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def handed(kernel: str = "eager", mask: object = None, **options: Any) -> KernelInputs:
    """What a kernel is handed, no two axes of the same length; the kernel itself is never called."""
    return KernelInputs(
        module=options.pop("module", None) or Asking(kernel),
        kernel=lambda *_: 1 / 0,
        query=drawn(BATCH, HEADS, QUERIES, DIM),
        key=drawn(BATCH, KEY_HEADS, KEYS, DIM, seed=1),
        value=drawn(BATCH, KEY_HEADS, KEYS, VALUE_DIM, seed=2),
        mask=mask,
        options=options,
    )


def tokens(count: int) -> Tokens:
    return Tokens((), tuple(Token(i, str(i), str(i), None, None) for i in range(count)))


def call_of(given: KernelInputs, entry: int = 1, weights: Tensor | None = None, **changes: Any) -> Any:
    made = torch.rand(BATCH, HEADS, QUERIES, KEYS) if weights is None else weights
    seen = KernelCall(
        given, drawn(BATCH, QUERIES, HEADS, VALUE_DIM, seed=3), made, changes.pop("before", None)
    )
    place = {
        "module": "here", "call": 0, "layer": 0, "kind": Kind.ENCODER,
        "query_tokens": tokens(QUERIES), "key_tokens": tokens(KEYS),
    }  # fmt: skip
    return of_kernel(seen, entry, heads=changes.pop("heads", None), **place)


def traced(entry: int = 1, heads: list[int] | None = None, **changes: Any) -> Any:
    """A call of an attention that was traced, all of its axes of different lengths."""
    made = {
        "module": nn.Identity(),
        "query": drawn(BATCH, HEADS, QUERIES, DIM), "key": drawn(BATCH, KEY_HEADS, KEYS, DIM),
        "value": drawn(BATCH, KEY_HEADS, KEYS, VALUE_DIM), "scale": 0.5, "softcap": None, "terms": (),
        "remainder": None, "allowed": None, "weights": drawn(BATCH, HEADS, QUERIES, KEYS, seed=4),
        "output": drawn(BATCH, HEADS, QUERIES, VALUE_DIM),
    }  # fmt: skip
    sides = {"query_tokens": tokens(QUERIES), "key_tokens": tokens(KEYS)}
    place = {"module": "here", "call": 0, "layer": 0, "kind": Kind.ENCODER, "route": Route.TAKEOVER}
    return of_trace(TracedAttention(**{**made, **changes}), entry, heads=heads, **sides, **place)


# what was traced ------------------------------------------------------------------------------------


def test_what_was_traced_is_cut_to_the_entry_and_written_out():
    shared, own = drawn(KEYS), drawn(BATCH, 1, QUERIES, 1, seed=5)
    call = traced(2, terms=(("bias", shared), ("mask", own)), softcap=9.0)
    assert [term.name for term in call.terms] == ["bias", "mask"]
    assert torch.equal(call.terms[0].values, shared.expand(1, QUERIES, KEYS))
    assert torch.equal(call.terms[1].values, own[2].expand(1, QUERIES, KEYS))
    assert torch.equal(call.q, drawn(BATCH, HEADS, QUERIES, DIM)[2])
    assert torch.equal(call.weights[5], drawn(BATCH, HEADS, QUERIES, KEYS, seed=4)[2, 5])
    assert (call.scale, call.softcap, call.sinks, call.window) == (0.5, 9.0, None, None)
    assert (call.remainder, call.allowed, call.reweighted, call.reservation) == (None, None, None, "")
    assert call.route is Route.TRACED


def test_a_mask_that_was_traced_is_kept_where_it_forbids_something_to_the_entry():
    allowed = torch.ones(BATCH, 1, 1, KEYS, dtype=torch.bool)
    allowed[2, ..., 3] = False
    assert traced(1, allowed=allowed).allowed is None
    assert torch.equal(traced(2, allowed=allowed).allowed, allowed[2].expand(1, QUERIES, KEYS))


# one entry of the batch -----------------------------------------------------------------------------


def test_a_call_holds_its_own_entry_and_copies_of_it():
    given = handed(scaling=0.25, softcap=30.0, sliding_window=3)
    weights = torch.rand(BATCH, HEADS, QUERIES, KEYS)
    call = call_of(given, 2, weights)
    assert torch.equal(call.q, given.query[2])
    assert torch.equal(call.k, given.key[2])
    assert torch.equal(call.v, given.value[2])
    assert torch.equal(call.output, drawn(BATCH, QUERIES, HEADS, VALUE_DIM, seed=3)[2].transpose(0, 1))
    assert (call.scale, call.softcap, call.window) == (0.25, 30.0, 3)
    assert torch.equal(call.weights[4], weights[2, 4])
    before = call.q.clone()
    given.query.zero_()
    assert torch.equal(call.q, before)


def test_sinks_are_by_head_or_by_head_and_query_of_the_entry():
    def told(**sinks: Tensor) -> KernelInputs:
        answer = drawn(
            BATCH, QUERIES, HEADS, KEYS
        )  # for the weights, which a sink takes out of what is returned
        return replace(handed(**sinks), kernel=lambda *_, **__: (answer, None))

    by_head = torch.linspace(-1, 1, HEADS)
    assert torch.equal(call_of(told(s_aux=by_head[None])).sinks, by_head)
    for entries, entry in ((1, 2), (2, 1), (BATCH, 2)):
        by_query = drawn(entries, HEADS, QUERIES, 2)
        assert torch.equal(call_of(told(sinks=by_query), entry).sinks, by_query[-1, :, :, 0])


# heads ----------------------------------------------------------------------------------------------


# keys before their rotation -------------------------------------------------------------------------


def test_keys_of_a_projection_are_brought_into_the_shape_of_the_keys():
    keys = drawn(KEY_HEADS, KEYS, DIM)
    flat = keys.transpose(0, 1).reshape(KEYS, KEY_HEADS * DIM)
    for projected in (keys, flat, keys.transpose(0, 1)):
        found = as_keys(projected, keys)
        assert torch.equal(found, keys)
        assert found.data_ptr() != projected.data_ptr()


@pytest.mark.parametrize("told", ["by head", "by token"])
def test_as_many_tokens_as_key_heads_are_told_apart_by_the_lengths_that_a_rotation_keeps(told):
    keys = drawn(3, 3, 4)
    turned = keys.flip(-1)  # another direction, the same length
    projected = keys if told == "by head" else keys.transpose(0, 1)
    assert torch.equal(as_keys(projected.clone(), turned), keys)


# weights that a kernel prints -----------------------------------------------------------------------


# what a kernel was told to add and to forbid --------------------------------------------------------


def read(given: KernelInputs, row: int = 1) -> tuple[dict[str, Tensor], Tensor | None]:
    terms, allowed = terms_and_allowed(given, row)
    return {term.name: term.values for term in terms}, allowed


def test_a_mask_of_numbers_forbids_below_half_the_lowest_number_and_adds_the_rest():
    lowest = torch.finfo(torch.float32).min
    mask = torch.zeros(BATCH, 1, QUERIES, KEYS + 2)  # longer than the keys, as a cache of fixed size makes it
    mask[1, 0, 0] = torch.tensor([0, -3.0, lowest, lowest / 2, lowest / 2 * 0.99, 7, 7])
    added, allowed = read(handed(mask=mask))
    assert allowed.tolist()[0][0] == [True, True, False, False, True]
    assert allowed[0, 1:].all()
    expected = torch.tensor([0, -3.0, 0, 0, lowest / 2 * 0.99])
    assert list(added) == [IN_THE_MASK]
    assert torch.equal(added[IN_THE_MASK][0, 0], expected)
    assert not added[IN_THE_MASK][0, 1:].any()
    assert read(handed(mask=mask), 2) == ({}, None)


def test_a_mask_of_truth_values_forbids_under_sdpa_and_is_added_as_0_and_1_under_eager():
    mask = torch.ones(1, HEADS, 1, KEYS, dtype=torch.bool)
    mask[0, 2, 0, 3] = False
    added, allowed = read(handed("sdpa", mask=mask))
    assert added == {}
    assert torch.equal(allowed, mask[0].expand(-1, QUERIES, -1))
    added, allowed = read(handed(mask=mask))
    assert allowed is None
    assert torch.equal(added[IN_THE_MASK], mask[0].float().expand(-1, QUERIES, -1))


@pytest.mark.parametrize(
    ("kernel", "flag", "attribute", "causal"),
    [
        ("sdpa", True, False, True),
        ("sdpa", False, True, False),
        ("sdpa", None, True, True),
        ("sdpa", None, False, False),
        ("sdpa", None, None, True),  # a module that does not say
        ("eager", True, True, False),
    ],
)
def test_without_a_mask_only_a_fused_kernel_is_causal_by_its_flag(kernel, flag, attribute, causal):
    module = Asking(kernel) if attribute is None else Asking(kernel, is_causal=attribute)
    _, allowed = read(handed(module=module, **({} if flag is None else {"is_causal": flag})))
    if causal:
        assert torch.equal(allowed, torch.ones(1, QUERIES, KEYS, dtype=torch.bool).tril())
    else:
        assert allowed is None


def test_one_query_of_a_fused_kernel_looks_at_all_keys_of_the_cache():
    for kernel in ("sdpa", "flash_attention_2"):
        given = handed(kernel, is_causal=True)
        one = replace(given, query=given.query[:, :, :1])
        assert read(one) == ({}, None)


@pytest.mark.parametrize("kernel", ["sdpa", "flash_attention_2"])
def test_two_queries_are_causal_already_the_second_sees_one_key_more(kernel):
    given = handed(kernel, is_causal=True)
    _, allowed = read(replace(given, query=given.query[:, :, :2]))
    first = (
        1 if kernel == "sdpa" else KEYS - 1
    )  # sdpa counts from the first key, flash attention from the last
    assert allowed[0].sum(-1).tolist() == [first, first + 1]


def test_of_two_entries_each_has_its_own_mask_bias_and_sinks():
    mask, bias = torch.zeros(2, 1, QUERIES, KEYS), drawn(2, HEADS, QUERIES, KEYS)
    mask[0, ..., 1] = mask[1, ..., 2] = -torch.inf
    padding = torch.tensor([[0, 1, 1, 1, 1], [1, 1, 1, 1, 0]])
    for row in (0, 1):
        added, allowed = read(handed(mask=mask, position_bias=bias), row)
        assert torch.equal(allowed, mask[row].isfinite())
        assert torch.equal(added[RELATIVE_POSITION], bias[row])
        _, allowed = read(handed("flash_attention_3", mask=padding, is_causal=False), row)
        assert torch.equal(allowed[0], padding[row].bool().expand(QUERIES, KEYS))


def test_the_rule_of_a_block_mask_is_asked_for_every_pair_of_the_entry():
    table = torch.arange(2 * 3 * QUERIES * KEYS).reshape(2, 3, QUERIES, KEYS) % 4 > 0

    def rule(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return table[batch, head, query, key]

    mask = create_block_mask(rule, 2, 3, QUERIES, KEYS, device="cpu")
    for row in (0, 1):
        assert torch.equal(read(handed("flex_attention", mask=mask), row)[1], table[row])


def test_a_bias_of_positions_is_cut_to_the_last_keys_and_added_to_every_row():
    bias = drawn(1, HEADS, 1, KEYS + 3)
    added, allowed = read(handed(position_bias=bias))
    assert list(added) == [RELATIVE_POSITION]
    assert torch.equal(added[RELATIVE_POSITION], bias[0, :, :, -KEYS:].expand(-1, QUERIES, -1))
    assert allowed is None
    by_entry = drawn(BATCH, HEADS, QUERIES, KEYS)
    assert torch.equal(read(handed(position_bias=by_entry), 2)[0][RELATIVE_POSITION], by_entry[2])
    assert read(handed(position_bias=torch.zeros(1, HEADS, QUERIES, KEYS))) == ({}, None)


@pytest.mark.parametrize("entries", [1, BATCH])
@pytest.mark.parametrize(
    ("causal", "window"), [(True, None), (True, 2), (False, 2), (False, 5), (False, None)]
)
def test_flash_attention_aligns_its_window_and_causality_to_the_last_query_and_key(causal, window, entries):
    mask = torch.ones(entries, KEYS + 1, dtype=torch.long)  # its last entries count
    mask[-1, 1] = 0  # the first key of the last entry is padding
    given = handed("flash_attention_2", mask=mask, is_causal=causal, sliding_window=window)
    _, allowed = read(given, 2)
    for i in range(QUERIES):
        place = i + KEYS - QUERIES
        seen = [
            j
            for j in range(1, KEYS)
            if not (causal and j > place) and (window is None or window >= KEYS or abs(place - j) < window)
        ]
        assert [j for j in range(KEYS) if allowed[0, i, j]] == seen
