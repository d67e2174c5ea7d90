"""The tracer's parts one by one: operations brought to one form, sums of parts, layouts, what adds up."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from families import ids
from own_attention import with_own_attention
from torch import Tensor

from attnscope.capture import Labels, Selection, record
from attnscope.capture.returned import read
from attnscope.capture.run import NothingSeenError
from attnscope.capture.trace import layout
from attnscope.capture.trace.layout import Layout, Logits, completed, layout_of, query_axis, varying
from attnscope.capture.trace.operations import axes_mixed, multiplication
from attnscope.capture.trace.scores import (
    Origin,
    Part,
    Scores,
    added,
    capped,
    forbidding,
    moved,
    origin_of,
    places_of,
    product_scores,
    scaled,
    version,
)
from attnscope.errors import InputError
from attnscope.results import Verdict
from attnscope.verify import certify

BATCH, HEADS, QUERIES, KEYS, DIM = 3, 4, 5, 7, 2


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# operations -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "equation",
    [
        "bhqd,bhkd->bhqk", "bqhd,bkhd->bhqk", "bqhd,bkhd->bqhk", "b h q d, b h d k -> b h k q",
        "hbqd,bkhd->qbkh", "qd,kd->qk", "bqd,kbd->bqk",
    ],
)  # fmt: skip
def test_an_einsum_of_two_stacks_is_the_product_of_what_it_is_brought_to(equation):
    sizes = {"b": BATCH, "h": HEADS, "q": QUERIES, "k": KEYS, "d": DIM}
    inputs = equation.replace(" ", "").split("->")[0].split(",")
    operands = [drawn(*(sizes[axis] for axis in each), seed=i) for i, each in enumerate(inputs)]
    result = torch.einsum(equation, *operands)
    for args in ((equation, *operands), (equation, operands)):
        made = multiplication("einsum", args, {})
        assert torch.equal(made.back(made.result(result)), result)
        product = made.left(made.operands[0]) @ made.right(made.operands[1]).mT
        torch.testing.assert_close(product, made.result(result))
        assert (made.factor, made.added) == (1, None)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("...qd,...kd->...qk", [(3, 5, 2), (3, 7, 2)]),
        ("bqd,bkd", [(3, 5, 2), (3, 7, 2)]),
        ("bqd,bkd->bqkd", [(3, 5, 2), (3, 7, 2)]),
        ("bqde,bkde->bqk", [(3, 5, 2, 4), (3, 7, 2, 4)]),
        ("bqd,bd->bq", [(3, 5, 2), (3, 2)]),
        ("bqd,bkdx->bqk", [(3, 5, 2), (3, 7, 2, 6)]),
        ("bqdx,bkd->bqk", [(3, 5, 2, 6), (3, 7, 2)]),
        ("bqd,brd,bkd->bqk", [(3, 5, 2), (3, 5, 2), (3, 7, 2)]),
    ],
)
def test_an_einsum_of_another_kind_is_no_product_of_two_stacks(equation, shapes):
    assert multiplication("einsum", (equation, *(drawn(*shape) for shape in shapes)), {}) is None


def test_an_einsum_of_one_operand_is_no_product_and_mixes_nothing():
    for one in (drawn(2, 3), drawn(5, 3)):
        assert multiplication("einsum", ("ij->ji", one), {}) is None
        assert axes_mixed(("ij->ji", one), 0) is None


def test_products_are_told_with_what_they_add_and_scale():
    one, other, bias = (
        drawn(BATCH, QUERIES, DIM),
        drawn(BATCH, DIM, KEYS),
        drawn(BATCH, QUERIES, KEYS, seed=3),
    )
    plain = multiplication("bmm", (one,), {"mat2": other})
    assert plain.operands[0] is one
    assert plain.operands[1] is other
    assert torch.equal(plain.right(other), other.mT)
    assert (plain.factor, plain.added) == (1, None)
    made = multiplication("baddbmm", (bias, one, other), {"beta": 0.5, "alpha": 3})
    assert (made.factor, made.added) == (3, (bias, 0.5))
    by_name = multiplication("baddbmm", (), {"input": bias, "batch1": one, "batch2": other})
    assert (by_name.factor, by_name.added[0] is bias, by_name.added[1]) == (1, True, 1)
    assert multiplication("baddbmm", (bias, one, other), {"beta": 0}).added is None
    flat = multiplication("addmm", (bias[0],), {"mat1": one[0], "mat2": other[0]})
    assert [each.shape for each in flat.operands] == [(QUERIES, DIM), (DIM, KEYS)]
    assert multiplication("addmm", (bias[0], one[0]), {}) is None


def test_a_product_with_a_vector_is_none_of_two_stacks():
    assert multiplication("matmul", (drawn(3, 4), drawn(4)), {}) is None
    assert multiplication("matmul", (drawn(4), drawn(4, 3)), {}) is None
    assert multiplication("matmul", (drawn(3, 4),), {}) is None
    assert multiplication("matmul", (drawn(3, 4),), {"other": drawn(4, 2)}) is not None


@pytest.mark.parametrize(
    ("equation", "side", "shapes", "order", "axis"),
    [
        ("bhqk,kj->bhqj", 0, [(3, 4, 5, 7), (7, 7)], [0, 1, 2, 3], 3),
        ("ij,bhjk->bhik", 1, [(5, 5), (3, 4, 5, 7)], [0, 1, 2, 3], 2),
        ("bhqk,hg->bgqk", 0, [(3, 4, 5, 7), (4, 4)], [0, 1, 2, 3], 1),
        ("bhqk,hg->bqkg", 0, [(3, 4, 5, 7), (4, 4)], [0, 2, 3, 1], 3),
        ("...hqk,hg->...gqk", 0, [(3, 4, 5, 7), (4, 4)], [0, 1, 2, 3], 1),
        ("hg,...hqk->...gqk", 1, [(4, 4), (2, 3, 4, 5, 7)], [0, 1, 2, 3, 4], 2),
        ("...hqk,...hg->...gqk", 0, [(3, 4, 5, 7), (4, 4)], [0, 1, 2, 3], 1),
    ],
)
def test_an_einsum_that_mixes_one_axis_by_a_square_matrix_tells_which(equation, side, shapes, order, axis):
    operands = [drawn(*shape) for shape in shapes]
    for args in ((equation, *operands), (equation, operands)):
        assert axes_mixed(args, side) == (order, axis)


@pytest.mark.parametrize(
    ("equation", "side", "shapes"),
    [
        ("bhqk,kj->bhqj", 0, [(3, 4, 5, 7), (7, 6)]),  # not square
        ("bhqk,bhkd->bhq", 0, [(3, 4, 5, 7), (3, 4, 7, 7)]),  # nothing comes for what goes
        ("bhqk,kjl->bhqjl", 0, [(3, 4, 5, 7), (7, 7, 7)]),  # two come
        ("bhqk,qkj->bhj", 0, [(3, 4, 5, 7), (5, 7, 7)]),  # two go
        ("bhqk,bhqk->bhqk", 0, [(3, 4, 5, 7), (3, 4, 5, 7)]),
        ("bhqk,kj", 0, [(3, 4, 5, 7), (7, 7)]),
        ("bhqk,kj,jl->bhql", 0, [(3, 4, 5, 7), (7, 7), (7, 7)]),
    ],
)
def test_an_einsum_that_mixes_otherwise_tells_nothing(equation, side, shapes):
    assert axes_mixed((equation, *(drawn(*shape) for shape in shapes)), side) is None


# where tensors come from ----------------------------------------------------------------------------


def test_origins_go_along_with_moves_and_scalings_and_are_joined_by_all_else():
    given, learned = Origin(given=True, shapes=(torch.Size((4, 9)),)), Origin(learned=True, looked_up=True)
    result = drawn(2, 3)
    for name, args in (("view", (result, 2, 3)), ("mul", (result, 2.0)), ("div", (result, torch.ones(1)))):
        along = origin_of(name, args, result, [given])
        assert along.root is given.root
        assert along.shapes == ((4, 9), (2, 3))
    sum_ = origin_of("add", (result, result), result, [given, learned])
    assert (sum_.given, sum_.learned, sum_.looked_up, sum_.activation) == (True, True, True, True)
    assert sum_.root not in (given.root, learned.root)
    assert origin_of("mul", (result, drawn(3)), result, [given, learned]).root is not given.root
    assert origin_of("mul", (result,), result, [given]).root is not given.root


# sums of parts --------------------------------------------------------------------------------------


def evaluated(scores: Scores) -> Tensor:
    """What a sum of parts stands for."""
    inside, outside = (
        torch.zeros(scores.shape, dtype=torch.float64),
        torch.zeros(scores.shape, dtype=torch.float64),
    )
    for part in scores.parts:
        value = part.tensor.double() * part.factor
        for factor in part.factors:
            value = value * factor
        if part.product is not None and scores.cap is not None:
            inside = inside + value
        else:
            outside = outside + value
    total = outside if scores.cap is None else outside + scores.cap * torch.tanh(inside)
    for mask in scores.forbidden:
        total = total.masked_fill(mask, -math.inf)
    return total


def scores_of(seed: int = 0) -> Scores:
    """Scores of a product, with something added."""
    left, right = drawn(BATCH, HEADS, QUERIES, DIM, seed=seed), drawn(BATCH, HEADS, DIM, KEYS, seed=seed + 1)
    made = multiplication("matmul", (left, right), {})
    product = product_scores(made, left @ right, Origin(), (Origin(), Origin()))
    bias = drawn(1, HEADS, 1, KEYS, seed=seed + 2)
    term = Scores(bias.shape, (Part(bias, version(bias), Origin()),))
    return added(product, term, product.shape)


def bent(seed: int = 0) -> Scores:
    """The same scores under a cap, with something added after it."""
    bias = drawn(1, HEADS, 1, KEYS, seed=seed + 3)
    return added(
        capped(scores_of(seed)), Scores(bias.shape, (Part(bias, version(bias), Origin()),)), scores_of().shape
    )


BY_HEAD = drawn(HEADS, 1, 1, seed=9)
CHANGES: dict[str, tuple[Callable[[Scores], Scores | None], Callable[[Tensor], Tensor]]] = {
    "times a number": (lambda s: scaled(s, 3), lambda x: x * 3),
    "over a number": (lambda s: scaled(s, 4, divide=True), lambda x: x / 4),
    "over a tensor of one number": (lambda s: scaled(s, torch.tensor([4.0]), divide=True), lambda x: x / 4),
    "transposed": (lambda s: moved(s, lambda t: t.mT), lambda x: x.mT),
    "one head": (lambda s: moved(s, lambda t: t[:, 2]), lambda x: x[:, 2]),
    "folded": (
        lambda s: moved(s, lambda t: t.view(-1, QUERIES, KEYS)),
        lambda x: x.reshape(-1, QUERIES, KEYS),
    ),
    "itself added": (lambda s: added(s, scores_of(5), s.shape), lambda x: x + evaluated(scores_of(5))),
    "to itself added": (lambda s: added(scores_of(5), s, s.shape), lambda x: x + evaluated(scores_of(5))),
    "forbidden": (
        lambda s: forbidding(s, torch.eye(QUERIES, KEYS).bool()),
        lambda x: x.masked_fill(torch.eye(QUERIES, KEYS).bool(), -math.inf),
    ),
}


@pytest.mark.parametrize("start", [scores_of, bent])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_made_of_a_sum_of_parts_is_what_is_made_of_its_value(start, change):
    parts, plain = CHANGES[change]
    torch.testing.assert_close(evaluated(parts(start())), plain(evaluated(start())))


def test_a_factor_for_each_head_is_kept_with_the_parts_unless_they_are_capped_or_smaller():
    for divide, plain in (
        (False, evaluated(scores_of()) * BY_HEAD),
        (True, evaluated(scores_of()) / BY_HEAD),
    ):
        torch.testing.assert_close(evaluated(scaled(scores_of(), BY_HEAD, divide=divide)), plain)
    assert scaled(bent(), BY_HEAD) is None
    one_row = moved(scores_of(), lambda tensor: tensor[:, :, :1])
    assert scaled(one_row, drawn(QUERIES, 1)) is None


def test_only_products_stand_inside_of_a_cap_and_no_second_cap():
    left, right = drawn(BATCH, HEADS, QUERIES, DIM), drawn(BATCH, HEADS, DIM, KEYS, seed=1)
    torch.testing.assert_close(evaluated(capped(scores_of())), torch.tanh(left @ right))
    assert capped(forbidding(scores_of(), torch.ones(QUERIES, KEYS).bool())).forbidden == ()
    assert added(bent(), bent(3), scores_of().shape) is None


# layouts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 0, 2, 3), (2, 0, 1, 3), (0, 3, 2, 1), (3, 2, 1, 0)])
def test_a_layout_spreads_what_it_arranges(order):
    sizes = (BATCH, HEADS, QUERIES, KEYS)
    plain = drawn(*sizes)
    model = plain.permute(*order)  # axis i of the model's is axis order[i] of ours
    where = [order.index(axis) for axis in range(4)]
    layout = layout_of(model.shape, where[2], where[3], HEADS, [])
    found = layout.arrange(model)
    assert found.shape == (BATCH, HEADS, QUERIES, KEYS)
    assert torch.equal(found, plain)
    assert torch.equal(layout.spread(found), model)
    places = layout.places(QUERIES, KEYS, torch.device("cpu"))
    assert (varying(places.row), varying(places.column)) == ({where[2]}, {where[3]})
    assert varying(places.lead) == {where[0], where[1]}


@pytest.mark.parametrize(
    ("folded", "heads", "shapes", "expected"),
    [
        (12, 4, [], (3, 4)),
        (12, None, [], (12, 1)),
        (12, 5, [], (12, 1)),
        (12, None, [(2, 6, 5, 8)], (2, 6)),
        (12, 4, [(12, 5, 8), (2, 6, 9, 8), (6, 2, 5, 8)], (6, 2)),
        (12, 4, [(2, 5, 6, 8)], (3, 4)),
    ],
)
def test_batch_and_heads_on_one_axis_are_told_by_shapes_of_before_or_by_the_heads(
    folded, heads, shapes, expected
):
    layout = layout_of(torch.Size((folded, 5, 7)), 1, 2, heads, map(torch.Size, shapes))
    assert (layout.batch, layout.heads) == expected


def test_scores_without_a_leading_axis_are_of_one_head():
    assert layout_of(torch.Size((5, 7)), 0, 1, None, []) == Layout((0, 1), (), 1, 1)
    windows = layout_of(torch.Size((2, 6, 3, 5, 7)), 3, 4, 3, [])
    assert (windows.batch, windows.heads) == (12, 3)
    early = layout_of(torch.Size((2, 3, 6, 5, 7)), 3, 4, 3, [])
    assert (early.batch, early.heads, early.order) == (12, 3, (0, 2, 1, 3, 4))


def test_the_axis_of_the_queries_is_that_of_the_rows_and_roles_may_be_exchanged():
    places = places_of(torch.Size((2,)), 4, 5, torch.device("cpu"))
    assert query_axis(places, 2) == (1, False)
    assert query_axis(places, 1) == (2, True)
    assert query_axis(places, 0) is None
    turned = places.moved(lambda tensor: tensor.permute(2, 0, 1))
    assert query_axis(turned, 0) == (2, False)
    one_row = places_of(torch.Size((2,)), 1, 5, torch.device("cpu"))
    assert query_axis(one_row, 2) == (1, False)
    windows = places.moved(lambda tensor: tensor.reshape(2, 2, 2, 5))
    assert query_axis(windows, 3) is None
    folded = places.moved(lambda tensor: tensor.reshape(8, 5))
    assert query_axis(folded, 1) is None


# does it add up? ------------------------------------------------------------------------------------


def logits_of(**changes: Any) -> tuple[Logits, Tensor]:
    """Parts, and the logits that they add up to, all `batch head query key` in float32."""
    parts = {
        "layout": Layout((0, 1, 2, 3), (BATCH, HEADS), BATCH, HEADS),
        "query": drawn(BATCH, HEADS, QUERIES, DIM).float(),
        "key": drawn(BATCH, HEADS, KEYS, DIM, seed=1).float(),
        "scale": 0.5,
        "softcap": 2.0,
        "terms": (("bias", drawn(1, HEADS, 1, KEYS, seed=2).float()),),
        "allowed": None,
        "shifts": (drawn(BATCH, 1, QUERIES, 1, seed=3).float(),),
    } | changes
    made = Logits(**parts)
    bare = made.query.double() @ made.key.double().mT * made.scale
    total = 2.0 * torch.tanh(bare / 2.0) if made.softcap else bare
    return made, (total + made.terms[0][1] + made.shifts[0]).float()


@pytest.mark.parametrize("cells", [1, 40, 1 << 22])
def test_parts_that_add_up_are_left_as_they_are(monkeypatch, cells):
    monkeypatch.setattr(layout, "_CELLS_AT_ONCE", cells)
    for changes in ({}, {"softcap": None}, {"allowed": torch.eye(QUERIES, KEYS).bool()[None, None]}):
        parts, logits = logits_of(**changes)
        if parts.allowed is not None:
            logits = logits.masked_fill(~parts.allowed, -1e9)
        assert completed(parts, logits) is parts


@pytest.mark.parametrize("cells", [1, 40, 150, 1 << 22])
@pytest.mark.parametrize("cell", [(0, 0, 0, 0), (2, 3, 4, 6), (1, 2, 3, 4)])
def test_one_cell_that_is_off_makes_a_remainder_of_just_that(monkeypatch, cells, cell):
    monkeypatch.setattr(layout, "_CELLS_AT_ONCE", cells)
    parts, logits = logits_of()
    logits[cell] += 0.01
    rest = completed(parts, logits).remainder
    assert rest[cell] == pytest.approx(0.01, rel=1e-3)
    rest[cell] = 0
    assert rest.abs().max() < 1e-6


@pytest.mark.parametrize(("off", "kept"), [(0.97, True), (1.01, False)])
def test_what_is_rounding_is_told_by_the_size_of_what_adds_up(off, kept):
    query, key = torch.full((1, 1, 1, 4), 3.0), torch.full((1, 1, 2, 4), -5.0)
    key[0, 0, 1] = -2.5
    bias, shift = torch.tensor([[[[7.0, -11.0]]]]), torch.tensor([[[[-13.0]]]])
    plain = {"query": query, "key": key, "scale": -0.5, "softcap": None, "shifts": (shift,)}
    parts, _ = logits_of(**plain, terms=(("bias", bias),))
    exact = torch.tensor([[[[30.0 + 7 - 13, 15 - 11 - 13]]]], dtype=torch.float64)
    size = 6 * 10 * 0.5 + 11 + 13  # |q| |k| |scale|, the largest of each term
    exact[..., 1] += off * 2 * 2**-23 * (1 + size)
    epsilon_of_query = completed(parts, exact)
    assert (epsilon_of_query.remainder is None) is kept


def test_a_pair_that_counts_as_forbidden_and_has_weight_is_in_the_remainder():
    allowed = ~torch.eye(QUERIES, KEYS).bool()[None, None]
    parts, logits = logits_of(allowed=allowed)
    heavy = completed(parts, logits)  # the model has forbidden nothing
    assert heavy.remainder is not None
    assert heavy.allowed is None
    low = logits.masked_fill(~allowed, -1000.0)
    assert completed(parts, low) is parts
    not_low_enough = logits.masked_fill(~allowed, -999.0)
    assert completed(parts, not_low_enough).remainder is not None


def test_what_was_forbidden_stays_so_beside_a_remainder_and_a_score_at_the_bound_is_forbidden():
    allowed = ~torch.eye(QUERIES, KEYS).bool()[None, None]
    parts, logits = logits_of(allowed=allowed)
    logits = logits.masked_fill(~allowed, -2000.0)
    logits[0, 0, 0, 1] += 1
    logits[0, 0, 0, 2] = -1e4
    found = completed(parts, logits)
    expected = allowed.expand(BATCH, HEADS, -1, -1).clone()
    expected[0, 0, 0, 2] = False
    assert torch.equal(found.allowed.expand(BATCH, HEADS, -1, -1), expected)
    assert found.remainder[0, 0, 0, 1] == pytest.approx(1, rel=1e-5)


def test_what_is_no_number_in_the_logits_is_never_forbidden():
    parts, logits = logits_of()
    logits[1, 2, 3, 4] = torch.nan
    logits[1, 2, 3, 5] = -1e9
    found = completed(parts, logits)
    assert found.remainder[1, 2, 3, 4].isnan()
    assert found.remainder[1, 2, 3, 5] == 0
    assert found.allowed[1, 2, 3, 4]
    assert not found.allowed[1, 2, 3, 5]
    assert int((~found.allowed).sum()) == 1


# repeated heads -------------------------------------------------------------------------------------


UNREAD: dict[str, Callable[[Tensor], Tensor]] = {
    "a column of zeros behind the scores": lambda scores: torch.softmax(
        torch.cat([scores, torch.zeros_like(scores[..., :1])], -1), -1
    )[..., :-1],
    "a column of zeros before the scores": lambda scores: torch.softmax(
        torch.cat([scores.new_zeros(*scores.shape[:-1], 1), scores], -1), -1
    )[..., 1:],
    "a padded column": lambda scores: F.softmax(F.pad(scores, (0, 1)), -1)[..., :-1],
    "two halves of the scores with a column between": lambda scores: torch.softmax(
        torch.cat([scores[..., :4], 0 * scores[..., :1], scores[..., 4:]], -1), -1
    )[..., [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]],
    "exponentials": lambda scores: scores.exp() / (1 + scores.exp().sum(-1, keepdim=True)),
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_softmax_with_one_added_is_no_attention_that_we_read_and_no_traceback(name):
    model = with_own_attention(normalise=UNREAD[name])
    with pytest.raises(NothingSeenError, match="made no dense softmax attention in layer 0-2"):
        record(model, ids())
    told: list[str] = []
    with pytest.raises(InputError, match="returns no attention that was made in layer 0"):
        read(model, ids(), Selection(), Labels(), told.append)


def test_weights_that_are_scaled_to_sum_to_less_than_one_are_partial():
    def softmax_one(scores: Tensor) -> Tensor:
        return scores.softmax(-1) * torch.sigmoid(scores.logsumexp(-1, keepdim=True))

    for call in record(with_own_attention(normalise=softmax_one), ids()).calls:
        assert certify(call, 4).verdict is Verdict.PARTIAL
        assert (call.reweighted[4].sum(-1) < 1).all()


def test_a_part_that_was_written_over_or_a_product_that_added_or_scaled_is_not_intact() -> None:
    scores = scores_of()
    for written in (False, True):
        for each in (scores, moved(scores, lambda tensor: tensor.mT)):
            assert [part.intact for part in each.parts] == [True, not written]
        scores.parts[1].tensor.add_(1)
    one, other, bias = drawn(BATCH, QUERIES, DIM), drawn(BATCH, DIM, KEYS), drawn(BATCH, QUERIES, KEYS)
    for options, bare in (({"beta": 0}, True), ({"beta": 0, "alpha": 2}, False), ({}, False)):
        made = multiplication("baddbmm", (bias, one, other), options)
        whole = torch.baddbmm(bias, one, other, **options)
        (part,) = product_scores(made, whole, Origin(), (Origin(),) * 2).parts
        assert (part.intact, part.factor) == (bare, options.get("alpha", 1))
