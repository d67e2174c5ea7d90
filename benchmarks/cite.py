"""`cite` beside a script by hand for the same figures, once the model is open.

    python benchmarks/cite.py [--passages 24] [--repeats 3] [--base]

Of the bundled reader, or with `--base` of a Llama of bert-base size (12 layers of 768, random weights).

By hand, one text after the other: what the answer loses without each passage, without all of them, and
without as many random halves as ours draws; the mean attention by passage; the lengths of the values that it
moves; gradient x input, integrated gradients in 64 steps, and attention x gradient. Ours holds every head
against the model's own weights. Both in one process on one thread, as time of the processor, the least of the
repeats; the loss of one passage by both is printed.
"""

import argparse
import sys
import time
from collections.abc import Callable

import torch

import attnscope
from attnscope.results import Citation

LIMIT = 1.3
THINGS = ["key", "door", "lamp", "boat", "bag", "pen", "horse", "dog", "cat", "hat", "coat", "ring"]
NAMES = ["Norris", "Holso", "Kormel", "Julya", "Urgor"]
ASKED = " Question: what is the cup of Velmir? Answer:"


def main() -> int:
    """Print both times; the exit code says whether the ratio is above the limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--passages", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--base", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    facts = [f"The {thing} of {name} is blue." for name in NAMES for thing in THINGS][: given.passages - 1]
    text = " ".join([*facts, "Velmir has a red cup."]) + ASKED
    model = attnscope.load("demo-reader", attn="eager")
    if given.base:
        model = attnscope.wrap(of_base_size(len(model.tokenizer)), model.tokenizer)
    found = model.read(text).cite("red")
    controls = len(found.statements[0].controls)

    def plain() -> float:
        return by_hand(model.module, found, controls)

    def ours() -> float:
        return float(model.read(text).cite("red").lost[0, -1])

    (hand, one), (own, other) = _least(plain, given.repeats), _least(ours, given.repeats)
    print(f"{given.passages} passages, {controls} controls: by hand {hand:.2f} s, ours {own:.2f} s "
          f"({own / hand:.2f}); lost without the source {one:.4f}, off {abs(one - other):.1g}")  # fmt: skip
    return int(own / hand > LIMIT)


def of_base_size(vocabulary: int) -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=768, intermediate_size=3072, num_hidden_layers=12,
        num_attention_heads=12, num_key_value_heads=12, pad_token_id=0, attn_implementation="eager",
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def _least(work: Callable[[], float], repeats: int) -> tuple[float, float]:
    seconds, number = float("inf"), 0.0
    for _ in range(repeats):
        started = time.process_time()
        number = work()
        seconds = min(seconds, time.process_time() - started)
    return seconds, number


def by_hand(model: torch.nn.Module, found: Citation, controls: int) -> float:
    ids, answer = list(found.tokens.ids[:-1]), found.tokens.ids[-1]
    passages = [each.positions for each in found.passages]

    @torch.no_grad()
    def lost(removed: set[int]) -> float:
        left = [id for i, id in enumerate(ids) if i not in removed]
        return float(model(torch.tensor([left])).logits[0, -1].log_softmax(-1)[answer])

    before = lost(set())
    each = [before - lost({*passage}) for passage in passages]
    lost({place for passage in passages for place in passage})
    for control in range(controls):
        half = torch.randperm(len(passages) - 1, generator=torch.Generator().manual_seed(control))
        lost({place for i in half[: len(passages) // 2].tolist() for place in passages[i]})
    values = list[torch.Tensor]()
    hooks = [
        layer.self_attn.v_proj.register_forward_hook(lambda _module, _given, made: values.append(made))
        for layer in model.model.layers
    ]
    embedded = model.get_input_embeddings()(torch.tensor([ids])).detach().requires_grad_()
    output = model(inputs_embeds=embedded, output_attentions=True)
    for hook in hooks:
        hook.remove()
    chance = output.logits[0, -1].log_softmax(-1)[answer]
    slope, *of_weights = torch.autograd.grad(chance, [embedded, *output.attentions])
    for weights, value, layer, gradient in zip(
        output.attentions, values, model.model.layers, of_weights, strict=True
    ):
        count, out = weights.shape[1], layer.self_attn.o_proj.weight
        out = out.view(len(out), count, -1)
        heads = value[0].view(len(ids), -1, out.shape[2])
        heads = heads.repeat_interleave(count // heads.shape[1], 1)
        moved = torch.einsum("khd,ohd->hko", heads, out).norm(dim=-1)
        rows, rolled = weights[0, :, -1], (weights * gradient)[0].clamp_min(0).mean(0)
        for passage in passages:
            places = list(passage)
            rows[:, places].sum(), (rows * moved)[:, places].sum(), (slope * embedded)[0, places].sum()
        rolled @ rolled
    blank, way = torch.zeros_like(embedded), embedded.detach()
    for step in range(64):
        point = (blank + way * (step + 0.5) / 64).requires_grad_()
        made = model(inputs_embeds=point).logits[0, -1].log_softmax(-1)[answer]
        torch.autograd.grad(made, point)
    return each[-1]


if __name__ == "__main__":
    sys.exit(main())
