"""Changes let along one path, and what heads write straight to the answer, against hooks on named modules."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import pytest
import torch
import transformers as hf
from families import CONFIGS, DIM, HEADS, HIDDEN, LAYERS
from torch import Tensor, nn

from attnscope.capture import Selection
from attnscope.capture.intervening import gradients as asked_of_it
from attnscope.capture.intervening.changes import AnswerRows, Change, Put, Tap, Variant, Via, Write, Zero
from attnscope.capture.intervening.direct_path import RULES
from attnscope.capture.intervening.experiments import Experiments, carried, experiments_on
from attnscope.capture.intervening.gradients import Direct, direct_gradients
from attnscope.capture.intervening.passing import answers_to
from attnscope.capture.intervening.taps import find_taps
from attnscope.errors import InputError
from attnscope.results.claims.effect import Part, Receiver
from attnscope.vocabulary import Kind

TOKENS, WRITTEN = 11, 7
_BART = hf.BartConfig(
    vocab_size=97,
    d_model=HIDDEN,
    encoder_layers=2,
    decoder_layers=3,
    encoder_attention_heads=HEADS,
    decoder_attention_heads=HEADS,
    encoder_ffn_dim=40,
    decoder_ffn_dim=40,
    max_position_embeddings=64,
    pad_token_id=0,
)
_SMALL = {"vocab_size": 97, "hidden_size": HIDDEN, "num_attention_heads": HEADS}
FAMILIES = ("bert", "gpt2", "llama", "bart")
MODELS: dict[str, tuple[Any, Callable[[], Any]]] = {
    "bert": (hf.BertForMaskedLM, CONFIGS["bert"]),
    "gpt2": (hf.GPT2LMHeadModel, CONFIGS["gpt2"]),
    "llama": (hf.LlamaForCausalLM, CONFIGS["llama"]),
    "bart": (hf.BartForConditionalGeneration, lambda: _BART),
    "gemma2": (hf.Gemma2ForCausalLM, CONFIGS["gemma2"]),
    "gemma3": (hf.Gemma3ForCausalLM, CONFIGS["gemma3"]),
    "t5": (hf.T5ForConditionalGeneration, CONFIGS["t5"]),
    "falcon": (hf.FalconForCausalLM, lambda: hf.FalconConfig(**_SMALL, num_hidden_layers=LAYERS)),
}
CROSS = {
    "t5": "decoder.block.{}.layer.1.EncDecAttention.o",
    "bart": "model.decoder.layers.{}.encoder_attn.out_proj",
}
# a layer; what makes its queries, keys and values; what reads its heads; what reads those of other attentions
PATHS = {
    "bert": ("bert.encoder.layer.{}.attention", ("self.query", "self.key", "self.value"), "output.dense", ()),
    "gpt2": ("transformer.h.{}.attn", ("c_attn",), "c_proj", ()),
    "llama": ("model.layers.{}.self_attn", ("q_proj", "k_proj", "v_proj"), "o_proj", ()),
    "bart": (
        "model.decoder.layers.{}.self_attn",
        ("q_proj", "k_proj", "v_proj"),
        "out_proj",
        tuple(f"model.decoder.layers.{layer}.encoder_attn.out_proj" for layer in range(3)),
    ),
}
MLPS = {
    "bert": "bert.encoder.layer.{}.output.dense",
    "gpt2": "transformer.h.{}.mlp.c_proj",
    "llama": "model.layers.{}.mlp.down_proj",
    "bart": "model.decoder.layers.{}.fc2",
}


@cache
def model_of(family: str) -> nn.Module:
    cls, config = MODELS[family]
    torch.manual_seed(0)
    model: nn.Module = cls._from_config(config(), attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


def inputs_of(family: str, seed: int = 1) -> dict[str, Tensor]:
    drawn = torch.Generator().manual_seed(seed)
    inputs = {"input_ids": torch.randint(3, 97, (1, TOKENS), generator=drawn)}
    if family in CROSS:
        inputs["decoder_input_ids"] = torch.randint(3, 97, (1, WRITTEN), generator=drawn)
    return inputs


def experiments(family: str, seed: int = 1, taps: Sequence[Tap] = ()) -> Experiments:
    length = WRITTEN if family == "bart" else TOKENS
    asked = AnswerRows(lambda output: output["logits"], (length - 2,), length)
    kind = Kind.DECODER if family == "bart" else None
    made = experiments_on(model_of(family), inputs_of(family, seed), Selection(kind=kind), asked)
    return Experiments(made.model, made.inputs, made.sites, asked, taps) if taps else made


Edit = Callable[[Tensor], Tensor]


class ByHand:
    """Runs of one family with what its modules are given, or make, replaced."""

    def __init__(self, family: str) -> None:
        self.family, self.model, self.inputs = family, model_of(family), inputs_of(family)
        self.layer, self.projections, self.out, self.others = PATHS[family]
        outs = [self.heads_of(layer) for layer in range(LAYERS)] + list(self.others)
        self.untouched = self.run({}, {}, outs)[1]

    def heads_of(self, layer: int) -> str:
        return f"{self.layer.format(layer)}.{self.out}"

    def run(
        self, given: dict[str, Edit], makes: dict[str, Edit], kept: Sequence[str] = ()
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The logits at the answer, and what `kept` modules were given, or made where they project."""
        seen: dict[str, Tensor] = {}
        with ExitStack() as stack, torch.no_grad():
            for path in {*given, *makes, *kept}:
                module = self.model.get_submodule(path)

                def before(_: Any, args: Any, path: str = path) -> Any:
                    if path.endswith(self.out) or path in self.others:
                        seen[path] = args[0].clone()
                    return (given[path](args[0].clone()), *args[1:]) if path in given else None

                def after(_: Any, __: Any, made: Tensor, path: str = path) -> Any:
                    if not (path.endswith(self.out) or path in self.others):
                        seen[path] = made.clone()
                    return makes[path](made.clone()) if path in makes else None

                stack.callback(module.register_forward_pre_hook(before).remove)
                stack.callback(module.register_forward_hook(after).remove)
            logits = self.model(**self.inputs).logits
        return logits[0, -2], seen

    def along(
        self,
        sender: dict[str, Edit],
        start: int,
        receiver: tuple[int, int] | None,
        inputs: str = "qkv",
    ) -> Tensor:
        """The change of `sender`, in layer `start`, let into a receiver, or None: into the answer itself."""
        frozen = {
            path: (lambda _, path=path: self.untouched[path])
            for path in [*map(self.heads_of, range(start + 1, LAYERS)), *self.others]
        }
        if receiver is None:
            return self.run(frozen | sender, {})[0]
        layer, head = receiver
        paths = [f"{self.layer.format(layer)}.{each}" for each in self.projections]
        lent = self.run(frozen | sender, {}, paths)[1]

        def only(there: Tensor, path: str) -> Tensor:
            if len(paths) > 1:
                return lent[path] if "qkv"[paths.index(path)] in inputs else there
            for number, each in enumerate("qkv"):
                if each in inputs:
                    columns = slice(number * HIDDEN, (number + 1) * HIDDEN)
                    there[..., columns] = lent[path][..., columns]
            return there

        def its_own(there: Tensor) -> Tensor:  # of the other heads what they answered untouched
            new = self.untouched[self.heads_of(layer)].clone()
            columns = slice(head * DIM, (head + 1) * DIM)
            new[..., columns] = there[..., columns]
            return new

        lets = {path: (lambda made, path=path: only(made, path)) for path in paths}
        return self.run({self.heads_of(layer): its_own}, lets)[0]


def without_head(head: int) -> Edit:
    def edit(there: Tensor) -> Tensor:
        there[..., head * DIM : (head + 1) * DIM] = 0
        return there

    return edit


def answer(made: Experiments, variant: Variant) -> Tensor:
    (outcome,) = made.run([variant])
    return outcome.scores[0, 0]


def is_close(one: Tensor, other: Tensor, untouched: Tensor) -> bool:
    """Within rounding, and far from nothing having been done."""
    assert float((other - untouched).abs().max()) > 1e-4
    return bool(torch.allclose(one, other, atol=2e-5 * float(other.abs().max()), rtol=1e-4))


@pytest.mark.parametrize("inputs", ["qkv", "q", "k", "v", "qk", "kv"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_head_along_a_path_is_path_patching_by_hooks(family: str, inputs: str) -> None:
    hand, made = ByHand(family), experiments(family)
    zeroed = {hand.heads_of(0): without_head(1)}
    via = made.along(Via((Receiver(2, 3, inputs),)))
    found = answer(via, (Change(0, 1, Zero()),))
    assert is_close(found, hand.along(zeroed, 0, (2, 3), inputs), made.untouched[0, 0])
    assert via.tally.lost == via.tally.unseen == 0
    assert via.tally.back
    assert made.via is None


@pytest.mark.parametrize("family", FAMILIES)
def test_an_mlp_along_a_path_is_path_patching_by_hooks(family: str) -> None:
    plain = experiments(family)
    taps = find_taps(plain.model, plain.inputs, plain.sites, Part.MLP)
    hand, made = ByHand(family), experiments(family, taps=tuple(taps.values()))
    zeroed = {MLPS[family].format(0): torch.zeros_like}
    found = answer(made.along(Via((Receiver(1, 4),))), (Write(taps[0]),))
    assert is_close(found, hand.along(zeroed, 0, (1, 4)), made.untouched[0, 0])


@pytest.mark.parametrize("family", FAMILIES)
def test_what_comes_to_the_answer_past_all_heads_is_that_by_hooks(family: str) -> None:
    hand, made = ByHand(family), experiments(family)
    zeroed = {hand.heads_of(0): without_head(2)}
    found = answer(made.along(Via((), direct=True)), (Change(0, 2, Zero()),))
    assert is_close(found, hand.along(zeroed, 0, None), made.untouched[0, 0])


@pytest.mark.parametrize("family", FAMILIES)
def test_paths_through_every_later_head_and_past_them_are_the_whole(family: str) -> None:
    made, other = experiments(family), inputs_of(family, 2)
    put = Put(answers_to(made.model, other, made.sites)[0])
    every = tuple(Receiver(layer, head) for layer in range(1, LAYERS) for head in range(HEADS))
    if family == "bart":  # heads of its other attention stand on the way, and are no receivers here
        every = tuple(each for each in every if each.layer == 1)
    variant = (Change(0, 1, put), Change(0, 4, put))
    along = answer(made.along(Via(every, direct=True)), variant)
    whole = answer(made, variant)
    same = torch.allclose(along, whole, atol=2e-5 * float(whole.abs().max()), rtol=1e-4)
    assert same == (family != "bart")
    fewer = answer(made.along(Via(every[1:], direct=True)), variant)
    assert not torch.allclose(fewer, whole, atol=1e-4)


def test_patched_from_itself_and_before_all_receivers_nothing_changes() -> None:
    made = experiments("gpt2")
    put = Put({place: each.clone() for place, each in made.answers.items()})
    for via, change in (
        (Via((Receiver(2, 3), Receiver(1, 0, "k")), direct=True), Change(0, 1, put)),
        (Via((Receiver(1, 0), Receiver(0, 2))), Change(1, 1, Zero())),  # it comes after all receivers
    ):
        assert torch.allclose(answer(made.along(via), (change,)), made.untouched[0, 0], atol=1e-5)


def test_an_answer_lent_by_the_wrong_entry_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnscope.capture.intervening import changes

    made = experiments("bert")
    monkeypatch.setattr(changes.Lent, "made", lambda self, seen, head, parts: seen.output[parts, head])
    answer(made.along(Via((Receiver(2, 3),))), (Change(0, 1, Zero()),))
    assert made.tally.lost


def test_scores_that_a_model_makes_by_itself_are_not_split_into_queries_and_keys() -> None:
    torch.manual_seed(0)
    config = hf.MPNetConfig(
        vocab_size=97,
        hidden_size=HIDDEN,
        num_hidden_layers=3,
        num_attention_heads=HEADS,
        intermediate_size=40,
        max_position_embeddings=64,
    )
    model = hf.MPNetForMaskedLM(config).eval()
    asked = AnswerRows(lambda output: output["logits"], (4,), TOKENS)
    made = experiments_on(model, inputs_of("bert"), Selection(), asked)
    variant = (Change(0, 1, Zero()),)
    alone = {each: answer(made.along(Via((Receiver(2, 3, each),))), variant) for each in ("v", "qk", "qkv")}
    assert not torch.allclose(alone["v"], alone["qk"], atol=1e-7)
    assert made.tally.lost == 0
    with pytest.raises(InputError, match="queries and keys come together"):
        answer(made.along(Via((Receiver(2, 3, "q"),))), variant)


WORD, OTHER = 5, 9


def scores(of: Tensor) -> Tensor:
    row = of[0, 0]
    return torch.stack([row[WORD] - row.mean(), row[OTHER] - row.mean()])


@cache
def asked_of(family: str, kind: Kind | None = None) -> Experiments:
    model, inputs = model_of(family), inputs_of(family)
    length = inputs.get("decoder_input_ids", inputs["input_ids"]).shape[1]
    asked = AnswerRows(lambda output: output["logits"], (length - 2,), length)
    if kind is None and family in CROSS:
        kind = Kind.DECODER
    return experiments_on(model, inputs, Selection(kind=kind), asked)


def straight(family: str, kind: Kind | None = None) -> Direct | str:
    made = asked_of(family, kind)
    return direct_gradients(made.model, made.inputs, made.sites, made.asked, made.untouched, scores)


def of_heads(found: Direct, made: Experiments) -> Tensor:
    """What every head writes: layer head."""
    slopes = found.slopes[0]
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


@pytest.mark.parametrize(
    ("family", "norm", "projection"),
    [
        ("llama", "model.norm", "model.layers.{}.self_attn.o_proj"),
        ("gpt2", "transformer.ln_f", "transformer.h.{}.attn.c_proj"),
    ],
)
def test_for_grouped_heads_it_is_output_times_projection_times_norm_times_embedding(
    family: str, norm: str, projection: str
) -> None:
    made, model, found = asked_of(family), model_of(family), straight(family)
    assert isinstance(found, Direct)
    last: dict[str, Tensor] = {}
    with hooks(model, {norm: lambda given, _: last.update(stream=given[0][0, 9])}), torch.no_grad():
        model(**made.inputs)
    behind, centred = model.get_submodule(norm), family == "gpt2"
    stream = last["stream"] - last["stream"].mean() if centred else last["stream"]
    divisor = (stream.square().mean() + (behind.eps if centred else behind.variance_epsilon)).sqrt()
    unembedding = model.lm_head.weight[WORD] - model.lm_head.weight.mean(0)
    for layer in range(LAYERS):
        weight = model.get_submodule(projection.format(layer)).weight
        for head in range(HEADS):
            rows = (weight if centred else weight.T)[head * DIM : (head + 1) * DIM]
            written = made.answers[layer, 0][0, head, 9] @ rows
            written = written - written.mean() if centred else written
            by_hand = float(((written / divisor * behind.weight) @ unembedding).detach())
            assert float(of_heads(found, made)[layer, head]) == pytest.approx(by_hand, abs=1e-5)


def test_only_the_row_that_answers_counts_where_nothing_else_can_reach_it() -> None:
    found = straight("gpt2")
    assert isinstance(found, Direct)
    for slope in found.slopes[0].values():
        assert slope[0, :, 9].abs().max() > 0
        assert slope[0, :, :9].abs().max() == slope[0, :, 10:].abs().max() == 0


@pytest.mark.parametrize(
    ("family", "kind", "norms"),
    [("gpt2", None, 1), ("falcon", None, 1), ("gemma3", None, 2), ("t5", None, 1), ("bart", None, 9)],
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
    model, inputs, asked = model_of("gpt2"), inputs_of("gpt2"), asked_of("gpt2").asked
    with hooks(model, {"transformer.h.1": lambda _, made: made.tanh()}):
        made = experiments_on(model, inputs, Selection(), asked)
        found = direct_gradients(made.model, made.inputs, made.sites, made.asked, made.untouched, scores)
    assert found == "what a layer hands on is made by tanh, no sum, matrix or norm"


@pytest.mark.parametrize("times", [0.5, -0.5, 10, -10])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_an_answer_that_is_off_by_more_than_rounding_carries_is_told(family: str, times: float) -> None:
    made = asked_of(family)
    moved = made.untouched.clone()
    moved[0, 0, WORD] += times * carried(made.untouched)
    found = direct_gradients(made.model, made.inputs, made.sites, made.asked, moved, scores)
    if abs(times) < 1:
        assert isinstance(found, Direct)
    else:
        assert found == "following what it computes changed the model's answer"


def test_the_model_is_as_it_was() -> None:
    model, inputs = model_of("llama"), inputs_of("llama")
    before = {name: each.clone() for name, each in model.state_dict().items()}
    model.lm_head.weight.requires_grad_(True)
    straight("llama")
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert all(parameter.grad is None for parameter in model.parameters())
    with torch.no_grad():
        assert torch.equal(model(**inputs).logits[:, 9:10], asked_of("llama").untouched)
