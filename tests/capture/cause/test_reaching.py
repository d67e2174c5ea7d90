"""What running the model again tells of an answer, what that costs, and by which rules rows are compared."""

from itertools import permutations

import pytest
import torch
from families import TOKENS, ids, sharp, twin
from torch import Tensor, nn

from attnscope.capture import Selection, record
from attnscope.capture.cause import outputs, rows
from attnscope.capture.cause.reaching import reaches_of
from attnscope.capture.cause.rerun import restored
from attnscope.capture.cause.rows import Change, Shape
from attnscope.model.anatomy.sites import find_sites
from attnscope.results import Reach, Verdict
from attnscope.verify import certify
from attnscope.vocabulary import Effect


def reached(model: nn.Module, *layers: int) -> dict[str, dict[int, Reach]]:
    found = reaches_of(model, ids(), find_sites(model), layers or None).found
    return {path: dict(each) for (path, _), each in found.items()}


@pytest.mark.parametrize("count", [1, 2, 6, 20, 21, 70, 253])
def test_no_word_contains_another_so_that_a_row_answers_to_one_alone(count: int) -> None:
    code = rows.words(count)
    assert code.shape[0] == count
    words = [frozenset(word.nonzero()[:, 0].tolist()) for word in code]
    assert not any(one <= other for one, other in permutations(words[:40], 2))
    assert len({*words}) == count
    assert torch.equal(rows.decoded(code, code), torch.arange(count))
    both = code[:1] | code[-1:]
    assert count < 2 or rows.decoded(both, code) is None


@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_a_head_whose_columns_of_the_output_projection_are_zero_has_no_effect(kernel: str) -> None:
    model = twin(sharp("llama"), kernel)
    projection = model.layers[1].self_attn.o_proj
    heads = len(reached(model, 1)["layers.1.self_attn"])
    with torch.no_grad():
        projection.weight.unflatten(1, (heads, -1))[:, 2] = 0
    effects = {head: reach.effect for head, reach in reached(model, 1)["layers.1.self_attn"].items()}
    assert effects == {head: Effect.NONE if head == 2 else Effect.OWN for head in range(heads)}
    verdicts = [certify(record(model, ids(), Selection([1])).calls[0], head).verdict for head in (2, 3)]
    assert verdicts == [Verdict.PARTIAL, Verdict.CERTIFIED]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("of_its_own", [0.0, 0.5])
def test_heads_that_are_averaged_before_they_go_on_are_not_their_own(
    of_its_own: float, dtype: torch.dtype
) -> None:
    model = twin(sharp("llama"), "eager").to(dtype)
    heads = model.config.num_attention_heads

    def averaged(_part: nn.Module, given: tuple[Tensor]) -> tuple[Tensor]:
        each = given[0].unflatten(-1, (heads, -1))
        together = each.mean(-2, keepdim=True).expand_as(each)
        return (torch.lerp(together, each, of_its_own).flatten(-2),)

    model.layers[1].self_attn.o_proj.register_forward_pre_hook(averaged)
    told = reached(model, 1)["layers.1.self_attn"]
    if of_its_own:  # heads that are mixed, and each of them most in its own place, are the model's business
        assert {each.effect for each in told.values()} == {Effect.OWN}
    else:
        assert {each.effect for each in told.values()} == {Effect.OTHER}
        assert told[3].reason == "what head 3 computes goes on in every head's place alike"


def test_a_layer_takes_five_runs_that_end_with_it_and_one_for_heads_that_had_no_row() -> None:
    model, ran = sharp("llama"), list[int]()
    handles = [
        layer.register_forward_hook(lambda *_, number=number: ran.append(number))
        for number, layer in enumerate(model.layers)
    ]
    found = reaches_of(model, ids(), find_sites(model), {1}, {("layers.1.self_attn", 0)}).found
    for handle in handles:
        handle.remove()
    assert found["layers.1.self_attn", 0][3] == Reach(Effect.OWN, "up to what comes next", 6)
    assert ran == 6 * [0, 1]


def test_two_rows_exchanged_within_the_half_that_a_block_is_tried_with_are_told_where_every_row_is() -> None:
    model, half = sharp("bert"), rows.halves(TOKENS, 13).nonzero()[:, 0].tolist()
    order = list(range(TOKENS))
    order[half[0]], order[half[1]] = half[1], half[0]
    watched, placed = find_sites(model), [(site.path, 0) for site in find_sites(model)]
    swap = lambda _part, _given, result: result[:, order]  # noqa: E731
    handle = model.encoder.layer[1].attention.output.register_forward_hook(swap)

    def effects(every_row: bool) -> list[set[Effect]]:
        found = reaches_of(model, ids(), watched, None, placed, every_row=every_row).found
        return [{reach.effect for reach in heads.values()} for heads in found.values()]

    assert effects(False) == [{Effect.OWN}, {Effect.OWN}, {Effect.OWN}]
    assert effects(True) == [{Effect.OWN}, {Effect.OTHER}, {Effect.OWN}]
    handle.remove()
    assert effects(True) == [{Effect.OWN}, {Effect.OWN}, {Effect.OWN}]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("features", ["one", "all"])
def test_a_row_with_large_features_is_silent_only_where_the_precision_could_show_a_change(
    dtype: torch.dtype, features: str
) -> None:
    model = twin(sharp("llama"), "eager").to(dtype)
    large = torch.zeros(TOKENS, model.config.hidden_size, dtype=dtype)
    large[0, 3 if features == "one" else slice(None)] = 3e4  # as trained models have it in their first token
    model.layers[1].register_forward_pre_hook(lambda _part, given: (given[0] + large, *given[1:]))

    def told() -> Reach:
        place = "layers.1.self_attn", 0
        return reaches_of(model, ids(), find_sites(model), {1}, {place}).found[place][2]

    coarse = dtype != torch.float32 and features == "all"
    assert told().effect is (Effect.UNKNOWN if coarse else Effect.OWN)
    assert ("too coarse for 1 of the" in told().reason) == coarse
    lost = torch.ones(TOKENS, 1, dtype=dtype)
    lost[4] = 0
    model.layers[1].self_attn.o_proj.register_forward_hook(lambda _part, _given, made: made * lost)
    assert told().effect is Effect.SOME


def test_a_model_that_does_not_run_again_is_certified_and_said_not_to_have_been_tried() -> None:
    model, seen = sharp("bert"), []

    def refuse(_part: nn.Module, args: tuple[torch.Tensor, ...]) -> None:
        seen.append(args[0].clone())
        if not torch.equal(args[0], seen[0]):
            raise RuntimeError("not with other answers")

    handle = model.encoder.layer[1].attention.output.dense.register_forward_pre_hook(refuse)
    certificate = certify(record(model, ids(), Selection([1])).calls[0], 4)
    handle.remove()
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.reach == Reach()


def test_what_goes_wrong_in_the_proof_itself_is_not_taken_for_the_model_s_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(outputs, "perturbed", broken)
    with pytest.raises(TypeError, match="a bug"):
        reached(sharp("bert"))
    monkeypatch.undo()
    monkeypatch.setattr(Change, "of", broken)
    with pytest.raises(TypeError, match="a bug"):
        record(sharp("bert"), ids(), Selection([1]))


BATCH, HEADS, QUERIES, DIM = 2, 3, 5, 4
SHAPE = Shape(BATCH, HEADS, QUERIES, DIM)
ANSWER = torch.arange(BATCH * HEADS * QUERIES * DIM, dtype=torch.float32).view(BATCH, HEADS, QUERIES, DIM)
ROWS = torch.stack([ANSWER[b, :, q].flatten() for b in range(BATCH) for q in range(QUERIES)])  # by hand


@pytest.mark.parametrize(
    ("arrangement", "result"),
    [
        ("rows", ROWS),
        ("batch query feature", ROWS.view(BATCH, QUERIES, -1)),
        ("query batch feature", ROWS.view(BATCH, QUERIES, -1).transpose(0, 1)),
        ("batch feature query", ROWS.view(BATCH, QUERIES, -1).transpose(1, 2)),
        ("batch head query dim", ANSWER),
        ("batch query head dim", ANSWER.transpose(1, 2)),
        ("batch feature height width", ROWS.view(BATCH, QUERIES, -1).transpose(1, 2).unflatten(2, (5, 1))),
        ("batch, all of it in one", ROWS.view(BATCH, -1)),
    ],
)
def test_a_result_is_read_as_rows_however_it_is_laid_out(arrangement: str, result: Tensor) -> None:
    found = list(rows.layouts(result, SHAPE, BATCH * QUERIES))
    assert any(each.shape == ROWS.shape and torch.equal(each, ROWS) for each in found), arrangement
    assert all(len(each) == BATCH * QUERIES for each in found)


def test_a_size_is_the_root_of_the_mean_square_of_what_is_finite() -> None:
    assert rows.size_of(torch.tensor([3.0, -4.0, float("inf"), float("nan")])) == pytest.approx(12.5**0.5)
    assert rows.size_of(torch.zeros(3)) == 1.0


def test_a_row_in_another_order_has_the_same_numbers_and_one_that_is_constant_gets_others() -> None:
    values = torch.stack([torch.tensor([1.0, -2, 3, 5, 8, 13]), torch.full((6,), 4.0)])
    new = rows.shuffled(values, 31)
    assert torch.equal(new[0].sort().values, values[0].sort().values)
    assert bool((new != values).any(1).all())
    few = torch.tensor([[1.0, 2, 3]])  # another order of three is too often nearly the same
    assert float((rows.shuffled(few, 31) - few).abs().max()) > 1


@pytest.mark.parametrize(("dtype", "steps"), [(torch.float32, 64), (torch.bfloat16, 4)])
def test_a_change_of_more_than_rounding_of_the_row_s_largest_number_counts(
    dtype: torch.dtype, steps: int
) -> None:
    epsilon = torch.finfo(dtype).eps
    before = torch.zeros(3, 6, dtype=dtype)
    before[:2, 0] = 8
    now = before.clone().double()
    now[0, 1] = 8 * epsilon * steps * 0.9
    now[1, 1] = 8 * epsilon * steps * 1.1
    assert rows.changed(now.to(dtype), before).tolist() == [False, True, False]
    assert rows.changed(now.to(dtype), before, epsilon=epsilon * steps).tolist() == [False, False, False]
    before[2, 0] = float("nan")
    assert rows.changed(before, before).tolist() == [False, False, False]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_in_half_precision_a_change_of_many_features_counts_beside_one_that_is_a_thousand_times_as_large(
    dtype: torch.dtype,
) -> None:
    epsilon = torch.finfo(dtype).eps
    before = torch.full((3, 8), 2.0, dtype=dtype)
    before[:, 5] = 4096
    now = before.clone()
    now[0, :3] += 10 * epsilon  # of three of eight features more than rounding
    now[1, :2] += 10 * epsilon
    now[2, :] += 4 * epsilon
    assert rows.changed(now, before).tolist() == [dtype != torch.float32, False, False]
    assert rows.changed(now, before, epsilon=1 / 64).tolist() == [False, False, False]


def test_the_share_of_a_change_that_stands_in_each_head_s_columns() -> None:
    found = rows.slices(torch.tensor([[1.0, -1, 0, 6, 0, 0], [0, 0, 0, 0, 0, 0]]), 3)
    assert torch.allclose(found, torch.tensor([[0.25, 0.75, 0], [0, 0, 0]]))


def test_what_was_returned_before_is_put_back_where_it_was_kept_and_fits() -> None:
    before, now = (
        [torch.ones(2, 3), torch.ones(0), torch.ones(4)],
        [torch.zeros(2, 3), torch.zeros(2), torch.zeros(5)],
    )
    back = restored(before, now)
    assert [each.tolist() for each in back] == [[[1.0] * 3] * 2, [0.0] * 2, [0.0] * 5]
    assert back[0] is not before[0]
    assert restored(before[:2], now) == now
