"""Parts of layers changed at tokens, against the same done by hooks on modules that are named here."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest
import torch
from families import HEADS
from torch import Tensor, nn
from worded import worded

from attnscope.analysis.answers import replacing
from attnscope.analysis.answers.question import Question, word_at
from attnscope.capture import Selection
from attnscope.capture.intervening.changes import Tap, Write
from attnscope.capture.intervening.experiments import Experiments, experiments_on
from attnscope.capture.intervening.taps import find_taps
from attnscope.errors import InputError
from attnscope.results.claims.effect import Asks, Part, PlaceEffect
from attnscope.verbs.ablate import places
from attnscope.vocabulary import Kind

TOKENS, WRITTEN, AT = 11, 7, 1
# a layer, its MLP's last matrix, its attention's: of T5 of the decoder
MODULES = {
    "bert": ("bert.encoder.layer.1", ".output.dense", ".attention.output.dense"),
    "gpt2": ("transformer.h.1", ".mlp.c_proj", ".attn.c_proj"),
    "llama": ("model.layers.1", ".mlp.down_proj", ".self_attn.o_proj"),
    "t5": ("decoder.block.1", ".layer.2.DenseReluDense.wo", ".layer.0.SelfAttention.o"),
}
TABLES = {
    "bert": "bert.embeddings.position_embeddings",
    "gpt2": "transformer.wpe",
}


@cache
def model_of(family: str) -> nn.Module:
    model: nn.Module = worded(family, 0, 0.2)
    return model


def model_and_inputs(family: str, seed: int = 1) -> tuple[nn.Module, dict[str, Tensor]]:
    drawn = torch.Generator().manual_seed(seed)
    inputs = {"input_ids": torch.randint(3, 97, (1, TOKENS), generator=drawn)}
    if family == "t5":
        inputs["decoder_input_ids"] = torch.randint(3, 97, (1, WRITTEN), generator=drawn)
    return model_of(family), inputs


def length_of(family: str) -> int:
    return WRITTEN if family == "t5" else TOKENS


@cache
def asked(family: str) -> Question:
    return word_at(Asks.NEXT, length_of(family) - 2, length_of(family), (5,), str)


def experiments(family: str, part: Part, seed: int = 1) -> tuple[Experiments, dict[int, Tap]]:
    model, inputs = model_and_inputs(family, seed)
    kind = Kind.DECODER if family == "t5" else None
    made = experiments_on(model, inputs, Selection(kind=kind), asked(family).asked)
    if part is Part.ATTENTION:
        return made, {}
    taps = find_taps(model, made.inputs, made.sites, part)
    return Experiments(model, inputs, made.sites, asked(family).asked, tuple(taps.values())), taps


def effects(
    family: str, part: Part, instead: replacing.Replacement | None = None, tokens: Any = ((AT,),)
) -> tuple[tuple[PlaceEffect, ...], Experiments]:
    made, taps = experiments(family, part)
    layers = tuple(sorted(taps)) or tuple(sorted({layer for layer, _ in made.answers}))
    if part is Part.POSITION:
        instead = replacing.others(made.written)
    found = places.changed_in_turn(
        made,
        taps,
        places.Asked(part, layers, tokens),
        instead or replacing.zeros(tuple(taps.values())),
        asked(family).telling(made.untouched, (5,)),
        length=length_of(family),
        seed=0,
    )
    return found.effects, made


def by_hand(family: str, change: dict[str, tuple[str, Callable[[Tensor], Tensor]]]) -> float:
    """ln p of the answer with what modules are given, or make, replaced by what a function makes of it."""
    model, inputs = model_and_inputs(family)
    with ExitStack() as stack, torch.no_grad():
        for path, (side, new) in change.items():
            module = model.get_submodule(path)
            if side == "given":
                hook = module.register_forward_pre_hook(lambda _, given, new=new: (new(given[0]), *given[1:]))
            else:

                def after(_: Any, __: Any, made: Any, new: Any = new) -> Any:
                    return new(made) if isinstance(made, Tensor) else (new(made[0]), *made[1:])

                hook = module.register_forward_hook(after)
            stack.callback(hook.remove)
        logits = model(**inputs).logits[0, length_of(family) - 2].double()
    return float(logits.log_softmax(-1)[5])


def zeroed(tensor: Tensor, at: int = AT) -> Tensor:
    new = tensor.clone()
    new[:, at] = 0
    return new


def of_layer(found: tuple[PlaceEffect, ...], layer: int) -> PlaceEffect:
    (one,) = [each for each in found if each.layer == layer]
    return one


@pytest.mark.parametrize("family", MODULES)
@pytest.mark.parametrize("part", [Part.RESIDUAL, Part.MLP, Part.ATTENTION])
def test_a_part_without_what_it_hands_on_at_a_token_is_that_by_hooks(family: str, part: Part) -> None:
    layer, mlp, attention = MODULES[family]
    place = {
        Part.RESIDUAL: (layer, "made"),
        Part.MLP: (layer + mlp, "given"),
        Part.ATTENTION: (layer + attention, "given"),
    }
    path, side = place[part]
    found, made = effects(family, part)
    change = by_hand(family, {path: (side, zeroed)}) - by_hand(family, {})
    one = of_layer(found, 1)
    assert one.change == pytest.approx(change, abs=1e-5)
    assert abs(change) > 1e-3, "a change that could be missed"
    assert one.positions == (AT,)
    assert one.controls == length_of(family) - 1, "every other token of the layer"
    assert (made.tally.lost, made.tally.unseen, made.faithful) == (0, 0, True)
    assert made.tally.back > 0


def test_a_head_at_one_token_is_that_by_hooks() -> None:
    made, _ = experiments("llama", Part.ATTENTION)
    wanted = places.Asked(Part.HEAD, (1,), ((AT,), (5,)), ((1, 4),))
    telling = asked("llama").telling(made.untouched, (5,))
    found = places.changed_in_turn(made, {}, wanted, replacing.zeros(), telling, length=TOKENS, seed=0)

    def without(given: Tensor) -> Tensor:
        new = given.clone().unflatten(-1, (HEADS, -1))
        new[:, AT, 4] = 0
        return new.flatten(-2)

    change = by_hand("llama", {"model.layers.1.self_attn.o_proj": ("given", without)}) - by_hand("llama", {})
    assert found.effects[0].change == pytest.approx(change, abs=1e-5)
    assert (found.effects[0].head, found.effects[1].positions) == (4, (5,))


@pytest.mark.parametrize("family", TABLES)
def test_a_position_is_replaced_by_the_mean_of_the_others(family: str) -> None:
    def others(made: Tensor) -> Tensor:
        new = made.clone()
        rest = [i for i in range(made.shape[-2]) if i != AT]
        new[..., AT, :] = made[..., rest, :].mean(-2)
        return new

    found, made = effects(family, Part.POSITION, tokens=tuple((i,) for i in range(length_of(family))))
    change = by_hand(family, {TABLES[family]: ("made", others)}) - by_hand(family, {})
    assert found[AT].change == pytest.approx(change, abs=1e-5)
    assert abs(change) > 1e-4
    assert (made.tally.back, made.tally.lost, made.tally.unseen) == (1, 0, 0)


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_what_the_last_layer_hands_on_is_the_whole_way_in_both_directions(family: str) -> None:
    made, taps = experiments(family, Part.RESIDUAL)
    there, _ = experiments(family, Part.RESIDUAL, seed=2)
    question, last = asked(family), max(taps)
    at = length_of(family) - 2
    wanted = places.Asked(Part.RESIDUAL, (last,), ((at,), (0,)))
    other = replacing.of_text(made.model, there.inputs, made.sites, tuple(taps.values()))
    mine = replacing.Replacement(other.method, other.what, "", rows=made.written)
    tell = question.telling(made.untouched, (5,))
    whole = tell(there.untouched).change
    assert abs(whole) > 0.1
    needed = places.changed_in_turn(made, taps, wanted, other, tell, length=TOKENS, seed=0).effects
    assert needed[0].change == pytest.approx(whole, abs=1e-5)
    assert needed[1].change == pytest.approx(0, abs=1e-5), "nothing behind the last layer mixes tokens"
    enough = places.brought_back(there, taps, wanted, mine, question.telling(there.untouched, (5,)))
    assert enough[0] == pytest.approx(-whole, abs=1e-5)


def test_the_mean_over_control_runs_is_that_of_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = model_and_inputs("gpt2")
    made, taps = experiments("gpt2", Part.MLP)
    given: list[Tensor] = []
    others = torch.randint(3, 97, (5, TOKENS), generator=torch.Generator().manual_seed(9))
    hook = model.get_submodule("transformer.h.1.mlp.c_proj").register_forward_pre_hook(
        lambda _, args: given.append(args[0])
    )
    with torch.no_grad():
        model(input_ids=others)
    hook.remove()
    monkeypatch.setattr(
        replacing, "control_texts", lambda *a, **k: type("Drawn", (), {"ids": others.numpy(), "how": ""})
    )
    found = replacing.means(
        model,
        inputs,
        made.sites,
        {"input_ids": inputs["input_ids"][0]},
        mask_id=None,
        count=5,
        seed=0,
        taps=tuple(taps.values()),
    )
    torch.testing.assert_close(found.rows[taps[1]].float(), given[0].mean(0))


def test_layers_that_share_their_weights_are_changed_one_at_a_time() -> None:
    made, taps = experiments("albert", Part.MLP)
    changes = [
        float((one.scores - made.untouched).abs().max())
        for one in made.run([(Write(tap),) for tap in taps.values()])
    ]
    assert len({round(each, 4) for each in changes}) == 3
    assert min(changes) > 1e-3


@pytest.mark.parametrize(
    ("family", "part", "why"),
    [
        ("llama", Part.POSITION, "turned by their positions"),
        ("t5", Part.POSITION, "told in another way"),
        ("gpt_oss", Part.MLP, "the MLP of layer 0 cannot be told apart"),
    ],
)
def test_what_a_model_has_not_got_is_refused_with_the_reason(family: str, part: Part, why: str) -> None:
    with pytest.raises(InputError, match=why):
        experiments(family, part)


def test_a_matrix_that_does_not_read_what_was_put_in_is_seen() -> None:
    made, taps = experiments("gpt2", Part.MLP)
    module = taps[1].module
    kept: list[Tensor] = []
    own = module.forward

    def stale(rows: Tensor) -> Tensor:
        kept.append(own(rows))
        return kept[0][:1].expand(rows.shape[0], -1, -1)

    try:
        module.forward = stale  # type: ignore[method-assign]
        with torch.no_grad():
            made.model(**made.inputs)
        made.run([(Write(taps[1], at=(AT,)),)])
    finally:
        del module.forward
    assert made.tally.lost == 1


def test_a_layer_whose_result_is_not_read_is_seen() -> None:
    made, taps = experiments("bert", Part.RESIDUAL)
    model, number = made.model, taps[1]
    after = model.get_submodule("bert.encoder.layer.2")
    hook = after.register_forward_pre_hook(
        lambda _, given: (given[0][:1].expand(*given[0].shape), *given[1:])
    )
    try:
        made.run([(Write(number, at=(AT,)),)])
    finally:
        hook.remove()
    assert made.tally.lost == 1


@pytest.mark.parametrize(("family", "part"), [("gpt2", Part.MLP), ("t5", Part.ATTENTION)])
def test_patching_a_text_from_itself_changes_nothing(family: str, part: Part) -> None:
    made, taps = experiments(family, part)
    own = replacing.of_text(made.model, made.inputs, made.sites, tuple(taps.values()))
    found, _ = effects(family, part, own, tokens=tuple((i,) for i in range(length_of(family))))
    assert max(abs(each.change) for each in found) < 1e-5
