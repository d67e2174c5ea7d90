"""What running the model again tells of an answer, what that costs, and that nothing of it stays behind."""

from itertools import permutations

import pytest
import torch
import transformers as hf
from families import TOKENS, ids, sharp, twin
from torch import Tensor, nn

from attnscope.capture import Selection, record
from attnscope.capture.cause import outputs, rows
from attnscope.capture.cause.exchange import Change
from attnscope.capture.cause.reaching import reaches_of
from attnscope.model.anatomy.sites import find_sites
from attnscope.results import Reach, Verdict
from attnscope.verify import certify
from attnscope.vocabulary import Effect

FAMILIES = ("bert", "gpt2", "llama", "gemma2", "modernbert")


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


@pytest.mark.parametrize("family", FAMILIES)
def test_every_head_of_a_sound_model_acts_on_its_own_rows(family: str) -> None:
    found = reached(sharp(family))
    assert len(found) == 3
    for each in found.values():
        assert {reach.effect for reach in each.values()} == {Effect.OWN}


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


@pytest.mark.parametrize("row", range(TOKENS - 1))
def test_any_two_rows_that_are_exchanged_are_seen(row: int) -> None:
    model = twin(sharp("bert"), "eager")

    def exchanged(_module: nn.Module, _inputs: object, result: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        order = [*range(row), row + 1, row, *range(row + 2, TOKENS)]
        return result[0][:, order], *result[1:]

    with_hook = model.encoder.layer[1].attention.self
    handle = with_hook.register_forward_hook(exchanged)
    (told,) = reached(model, 1).values()
    handle.remove()
    assert told[3].effect is Effect.OTHER
    assert reached(model, 1)["encoder.layer.1.attention.self"][3].effect is Effect.OWN


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


def test_attentions_that_share_a_block_are_tried_in_turn_and_leave_no_doubt_in_one_another() -> None:
    sizes = {
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 6,
        "encoder_ffn_dim": 30,
        "decoder_ffn_dim": 30,
    }
    torch.manual_seed(0)
    config = hf.BartConfig(vocab_size=97, d_model=24, encoder_layers=2, decoder_layers=3, **sizes)
    model = hf.BartModel._from_config(config, attn_implementation="eager").eval()
    inputs = {"input_ids": torch.randint(7, 90, (1, 11)), "decoder_input_ids": torch.randint(7, 90, (1, 7))}
    found = reaches_of(model, inputs, find_sites(model), None).found
    assert [len(heads) for heads in found.values()] == [4, 4] + 6 * [6]
    # clean, two with factors, queries of half the rows, one for each attention of a block, one for heads
    reached = [{*heads.values()} for heads in found.values()]
    assert reached == 6 * [{Reach(Effect.OWN, "", 7)}] + 2 * [
        {Reach(Effect.OWN, "up to the last layer's result", 7)}
    ]


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


def test_code_that_writes_over_an_answer_in_place_writes_over_nothing_that_is_kept_of_it() -> None:
    model = twin(sharp("llama"), "sdpa")
    for layer in model.layers:
        layer.self_attn.o_proj.register_forward_pre_hook(lambda _part, given: (given[0].mul_(1.5),))
    found = reaches_of(model, ids(), find_sites(model), None, every_row=True).found
    assert len(found) == 3
    assert {reach.effect for heads in found.values() for reach in heads.values()} == {Effect.OWN}


def test_the_model_its_hooks_and_the_random_numbers_are_as_they_were() -> None:
    model = sharp("gpt2").train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    hooks = [len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules()]
    state = torch.get_rng_state()
    reached(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert [len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules()] == hooks
    assert all(part.training for part in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    model.eval()


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
