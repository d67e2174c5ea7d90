"""What heads write straight to the answer, against the same made by hand on the model's own weights."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import pytest
import torch
import transformers as hf
from families import CONFIGS, DIM, HEADS, HIDDEN, KEY_HEADS, LAYERS
from torch import Tensor, nn

from attnscope.capture import Selection
from attnscope.capture.intervening import gradients as asked_of_it
from attnscope.capture.intervening.changes import AnswerRows
from attnscope.capture.intervening.direct_rules import RULES
from attnscope.capture.intervening.experiments import Experiments, carried, experiments_on
from attnscope.capture.intervening.gradients import Direct, direct_gradients
from attnscope.vocabulary import Kind

WORD, OTHER = 5, 9
_SMALL = {"vocab_size": 97, "hidden_size": HIDDEN, "num_attention_heads": HEADS}
_BART = hf.BartConfig(
    vocab_size=97,
    d_model=HIDDEN,
    encoder_layers=1,
    decoder_layers=2,
    encoder_attention_heads=HEADS,
    decoder_attention_heads=HEADS,
    encoder_ffn_dim=40,
    decoder_ffn_dim=40,
    max_position_embeddings=64,
    pad_token_id=0,
)
MODELS: dict[str, tuple[Any, Callable[[], Any]]] = {
    "gpt2": (hf.GPT2LMHeadModel, CONFIGS["gpt2"]),
    "llama": (hf.LlamaForCausalLM, CONFIGS["llama"]),
    "gemma2": (hf.Gemma2ForCausalLM, CONFIGS["gemma2"]),
    "gemma3": (hf.Gemma3ForCausalLM, CONFIGS["gemma3"]),
    "bert": (hf.BertForMaskedLM, CONFIGS["bert"]),
    "t5": (hf.T5ForConditionalGeneration, CONFIGS["t5"]),
    "bart": (hf.BartForConditionalGeneration, lambda: _BART),
    "falcon": (hf.FalconForCausalLM, lambda: hf.FalconConfig(**_SMALL, num_hidden_layers=LAYERS)),
}
# by the paths of their modules: output projections, what later layers add, the norms on the way
HELD = {
    "gpt2": ("transformer.h.{}.attn.c_proj", "transformer.h.{}.mlp", ("transformer.ln_f",)),
    "llama": ("model.layers.{}.self_attn.o_proj", "model.layers.{}.mlp", ("model.norm",)),
    "t5": (
        "decoder.block.{}.layer.0.SelfAttention.o",
        "decoder.block.{}.layer.2.DenseReluDense",
        ("decoder.final_layer_norm",),
    ),
    "bart": (
        "model.decoder.layers.{}.self_attn.out_proj",
        "model.decoder.layers.{}.fc2",
        tuple(
            f"model.decoder.layers.{layer}.{name}_layer_norm"
            for layer in range(2)
            for name in ("self_attn", "encoder_attn", "final")
        ),
    ),
}
CROSS = {
    "t5": "decoder.block.{}.layer.1.EncDecAttention.o",
    "bart": "model.decoder.layers.{}.encoder_attn.out_proj",
}


@cache
def model_and_inputs(family: str) -> tuple[nn.Module, dict[str, Tensor]]:
    cls, config = MODELS[family]
    torch.manual_seed(0)
    model = cls._from_config(config(), attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    drawn = torch.Generator().manual_seed(1)
    inputs = {"input_ids": torch.randint(3, 97, (1, 11), generator=drawn)}
    if family in CROSS:
        inputs["decoder_input_ids"] = torch.randint(3, 97, (1, 7), generator=drawn)
    return model, inputs


def scores(of: Tensor) -> Tensor:
    row = of[0, 0]
    return torch.stack([row[WORD] - row.mean(), row[OTHER] - row.mean()])


@cache
def experiments(family: str, kind: Kind | None = None) -> Experiments:
    model, inputs = model_and_inputs(family)
    length = inputs.get("decoder_input_ids", inputs["input_ids"]).shape[1]
    asked = AnswerRows(lambda output: output["logits"], (length - 2,), length)
    if kind is None and family in CROSS:
        kind = Kind.DECODER
    return experiments_on(model, inputs, Selection(kind=kind), asked)


def straight(family: str, kind: Kind | None = None) -> Direct | str:
    made = experiments(family, kind)
    return direct_gradients(made.model, made.inputs, made.sites, made.asked, made.untouched, scores)


def of_heads(found: Direct, made: Experiments, score: int = 0) -> Tensor:
    """What every head writes: layer head."""
    slopes = found.slopes[score]
    return torch.stack([(slopes[place] * made.answers[place]).sum((0, 2, 3)) for place in sorted(slopes)])


@contextmanager
def hooks(model: nn.Module, changes: dict[str, Callable[[Any, Any], Any]]) -> Iterator[None]:
    """While open, the module at each path returns what its change makes of what it was given and has made."""
    with ExitStack() as stack:
        for path, change in changes.items():
            module = model.get_submodule(path)
            stack.callback(
                module.register_forward_hook(lambda _, given, made, change=change: change(given, made)).remove
            )
        yield


def norm_held(model: nn.Module, path: str, before: Tensor) -> Callable[[Any, Any], Tensor]:
    """The norm at `path` with the divisor that it had for what it was given `before`."""
    norm = model.get_submodule(path)
    centred = isinstance(norm, nn.LayerNorm)
    eps = norm.eps if centred else norm.variance_epsilon
    shifted = before - before.mean(-1, keepdim=True) if centred else before
    divisor = (shifted.square().mean(-1, keepdim=True) + eps).sqrt()

    def change(given: Any, _made: Any) -> Tensor:
        now = given[0] - given[0].mean(-1, keepdim=True) if centred else given[0]
        return now / divisor * norm.weight + (norm.bias if centred else 0)

    return change


def without_head_all_else_held(family: str, kind: Kind, layer: int, head: int) -> Tensor:
    """The scores of a run without the head, all later attention, feed-forward and divisors as they were."""
    model, inputs = model_and_inputs(family)
    projection, forward, norms = HELD[family]
    added = [projection, forward, *([CROSS[family]] if family in CROSS else [])]
    mine = (CROSS[family] if kind is Kind.CROSS else projection).format(layer)
    paths = {path for path, _ in model.named_modules()}
    count = sum(forward.format(number) in paths for number in range(9))
    places = [each.format(number) for each in added for number in range(count)]
    made: dict[str, Any] = {}
    given: dict[str, Tensor] = {}
    asked = experiments(family, kind).asked
    with torch.no_grad():
        look = {path: lambda _, out, path=path: made.update({path: out}) for path in places}
        look |= {path: lambda into, _, path=path: given.update({path: into[0]}) for path in norms}
        with hooks(model, look):
            model(**inputs)
        held = {path: lambda _, __, path=path: made[path] for path in places if path != mine}
        held |= {path: norm_held(model, path, given[path]) for path in norms}

        def without(_: nn.Module, into: Any) -> Any:
            cut = into[0].clone()
            cut[..., head * DIM : head * DIM + DIM] = 0
            return (cut,)

        handle = model.get_submodule(mine).register_forward_pre_hook(without)
        try:
            with hooks(model, held):
                return scores(asked.of(model(**inputs)))
        finally:
            handle.remove()


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        ("gpt2", Kind.DECODER),
        ("llama", Kind.DECODER),
        ("t5", Kind.DECODER),
        ("t5", Kind.CROSS),
        ("bart", Kind.DECODER),
        ("bart", Kind.CROSS),
    ],
)
def test_what_a_head_writes_is_what_is_gone_without_it_where_all_else_is_held(
    family: str, kind: Kind
) -> None:
    found, made = straight(family, kind), experiments(family, kind)
    assert isinstance(found, Direct)
    whole = scores(made.untouched)
    for score in (0, 1):
        parts = of_heads(found, made, score)
        for layer, head in ((0, 3), (len(parts) - 1, 0), (0, HEADS - 1)):
            gone = whole[score] - without_head_all_else_held(family, kind, layer, head)[score]
            assert abs(gone) > 1e-4, "the head writes nothing: nothing is compared"
            assert float(parts[layer, head]) == pytest.approx(float(gone), abs=3e-5, rel=1e-3)


def test_for_grouped_heads_it_is_output_times_projection_times_norm_times_embedding() -> None:
    made, (model, _) = experiments("llama"), model_and_inputs("llama")
    found = straight("llama")
    assert isinstance(found, Direct)
    last: dict[str, Tensor] = {}
    with hooks(model, {"model.norm": lambda given, _: last.update(stream=given[0][0, 9])}), torch.no_grad():
        model(**made.inputs)
    norm = model.model.norm
    divisor = (last["stream"].square().mean() + norm.variance_epsilon).sqrt()
    unembedding = model.lm_head.weight[WORD] - model.lm_head.weight.mean(0)
    for layer in range(LAYERS):
        projection = model.model.layers[layer].self_attn.o_proj.weight
        for head in range(HEADS):
            output = made.answers[layer, 0][0, head, 9]
            written = projection[:, head * DIM : head * DIM + DIM] @ output
            by_hand = float(((written / divisor * norm.weight) @ unembedding).detach())
            assert float(of_heads(found, made)[layer, head]) == pytest.approx(by_hand, abs=1e-5)
    assert HEADS != KEY_HEADS


def test_only_the_row_that_answers_counts_where_nothing_else_can_reach_it() -> None:
    found = straight("gpt2")
    assert isinstance(found, Direct)
    for slope in found.slopes[0].values():
        assert slope[0, :, 9].abs().max() > 0
        assert slope[0, :, :9].abs().max() == slope[0, :, 10:].abs().max() == 0


@pytest.mark.parametrize(
    ("family", "kind", "norms"),
    [("gpt2", None, 1), ("falcon", None, 1), ("gemma3", None, 2), ("t5", None, 1), ("bart", None, 6)],
)
def test_norms_on_the_longest_way_are_counted(family: str, kind: Kind | None, norms: int) -> None:
    found = straight(family, kind)
    assert isinstance(found, Direct)
    assert found.norms == norms


@pytest.mark.parametrize(
    ("family", "kind", "between"),
    [("bert", None, "gelu"), ("gemma2", None, "tanh"), ("t5", Kind.ENCODER, "softmax")],
)
def test_where_something_else_stands_between_there_is_no_number(
    family: str, kind: Kind | None, between: str
) -> None:
    expected = f"between its heads and its answer stands {between}, no sum, matrix or norm"
    assert straight(family, kind) == expected


def test_what_is_taken_for_linear_and_is_not_does_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_of_it, "RULES", {**RULES, "gelu": RULES["to"], "tanh": RULES["to"]})
    for family in ("bert", "gemma2"):
        found = straight(family)
        assert isinstance(found, str)
        assert found.startswith("the parts of its answer's score do not add up to it")


def test_a_sum_that_no_rule_knows_loses_the_way_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {name: rule for name, rule in RULES.items() if name != "add"}
    monkeypatch.setattr(asked_of_it, "RULES", rules)
    assert straight("gpt2") == "between its heads and its answer stands add, no sum, matrix or norm"


def test_a_layer_that_hands_on_something_else_is_told() -> None:
    (model, inputs), asked = model_and_inputs("gpt2"), experiments("gpt2").asked
    with hooks(model, {"transformer.h.1": lambda _, made: made.tanh()}):
        made = experiments_on(model, inputs, Selection(), asked)
        found = direct_gradients(made.model, made.inputs, made.sites, made.asked, made.untouched, scores)
    assert found == "what a layer hands on is made by tanh, no sum, matrix or norm"


@pytest.mark.parametrize("times", [0.5, -0.5, 10, -10])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_an_answer_that_is_off_by_more_than_rounding_carries_is_told(family: str, times: float) -> None:
    made = experiments(family)
    moved = made.untouched.clone()
    moved[0, 0, WORD] += times * carried(made.untouched)
    found = direct_gradients(made.model, made.inputs, made.sites, made.asked, moved, scores)
    if abs(times) < 1:
        assert isinstance(found, Direct)
    else:
        assert found == "following what it computes changed the model's answer"


def test_the_model_is_as_it_was() -> None:
    model, inputs = model_and_inputs("llama")
    before = {name: each.clone() for name, each in model.state_dict().items()}
    model.lm_head.weight.requires_grad_(True)
    straight("llama")
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert all(parameter.grad is None for parameter in model.parameters())
    with torch.no_grad():
        assert torch.equal(model(**inputs).logits[:, 9:10], experiments("llama").untouched)
