"""Changes let along one path, against path patching by hooks on modules that are named here."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest
import torch
import transformers as hf
from families import CONFIGS, DIM, HEADS, HIDDEN, LAYERS
from torch import Tensor, nn

from attnscope.capture import Selection
from attnscope.capture.intervening.changes import AnswerRows, Change, Put, Tap, Variant, Via, Write, Zero
from attnscope.capture.intervening.experiments import Experiments, experiments_on
from attnscope.capture.intervening.passing import answers_to
from attnscope.capture.intervening.taps import find_taps
from attnscope.errors import InputError
from attnscope.results.claims.effect import Receiver
from attnscope.results.claims.intervention import Part
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
)
MODELS: dict[str, tuple[Any, Callable[[], Any]]] = {
    "bert": (hf.BertForMaskedLM, CONFIGS["bert"]),
    "gpt2": (hf.GPT2LMHeadModel, CONFIGS["gpt2"]),
    "llama": (hf.LlamaForCausalLM, CONFIGS["llama"]),
    "bart": (hf.BartForConditionalGeneration, lambda: _BART),
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
    if family == "bart":
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
@pytest.mark.parametrize("family", MODELS)
def test_a_head_along_a_path_is_path_patching_by_hooks(family: str, inputs: str) -> None:
    hand, made = ByHand(family), experiments(family)
    zeroed = {hand.heads_of(0): without_head(1)}
    via = made.along(Via((Receiver(2, 3, inputs),)))
    found = answer(via, (Change(0, 1, Zero()),))
    assert is_close(found, hand.along(zeroed, 0, (2, 3), inputs), made.untouched[0, 0])
    assert via.tally.lost == via.tally.unseen == 0
    assert via.tally.back
    assert made.via is None


@pytest.mark.parametrize("family", MODELS)
def test_an_mlp_along_a_path_is_path_patching_by_hooks(family: str) -> None:
    plain = experiments(family)
    taps = find_taps(plain.model, plain.inputs, plain.sites, Part.MLP)
    hand, made = ByHand(family), experiments(family, taps=tuple(taps.values()))
    zeroed = {MLPS[family].format(0): torch.zeros_like}
    found = answer(made.along(Via((Receiver(1, 4),))), (Write(taps[0]),))
    assert is_close(found, hand.along(zeroed, 0, (1, 4)), made.untouched[0, 0])


@pytest.mark.parametrize("family", MODELS)
def test_what_comes_to_the_answer_past_all_heads_is_that_by_hooks(family: str) -> None:
    hand, made = ByHand(family), experiments(family)
    zeroed = {hand.heads_of(0): without_head(2)}
    found = answer(made.along(Via((), direct=True)), (Change(0, 2, Zero()),))
    assert is_close(found, hand.along(zeroed, 0, None), made.untouched[0, 0])


@pytest.mark.parametrize("family", MODELS)
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


@pytest.mark.parametrize("family", MODELS)
def test_a_text_patched_from_itself_along_a_path_changes_nothing(family: str) -> None:
    made = experiments(family)
    put = Put({place: each.clone() for place, each in made.answers.items()})
    via = made.along(Via((Receiver(2, 3), Receiver(1, 0, "k")), direct=True))
    found = answer(via, (Change(0, 1, put),))
    assert float((found - made.untouched[0, 0]).abs().max()) < 1e-4


def test_what_comes_after_all_receivers_does_not_come_to_them() -> None:
    made = experiments("gpt2")
    found = answer(made.along(Via((Receiver(1, 0), Receiver(0, 2)))), (Change(1, 1, Zero()),))
    assert torch.allclose(found, made.untouched[0, 0], atol=1e-5)


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
