"""Questions of a long text beside hooks by hand for the same figure, each in a process of its own.

    python benchmarks/long.py [find|predict|layers|rank|why ...] [--tokens 4096] [--controls 100]

The model is a Llama of four layers, width 256, eight heads on four keys, with random weights, made on the
spot with a tokenizer of whole words. Both read the same text under torch's fused kernel. The hook is what one
would write by hand: transformers' own attention function, wrapped, or a hook on what the output projection is
given, and the word head asked for the last token alone. It proves nothing and reads nothing back.

find       what the last token gives to one key, all heads, and the same in as many control texts
predict    the likeliest words after the text
layers     the same of what each layer leaves, and of 20 texts of other orders of words
rank       every head's effect foretold by one backward pass, with its mean over 30 other texts in its place;
           then the ten first without it, and the 22 others as controls: 32 runs
why        the score of one link, and what becomes of it without each earlier head, at the query and the key

Time is that of the processor on one thread from the opened model to the numbers, memory the most that the
process ever held. Both say their number and what lies between. A length whose hook would take over
`--seconds`, judged by the one before, is left out.
"""

import argparse
import contextlib
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

WORDS, LIMIT = 4000, 1.5
QUERY, KEY = "w5", "w7"
LAYER, HEAD, HEADS, SIZE = 2, 3, 8, 32
ASKED = ("find", "predict", "layers", "rank", "why")


def main() -> int:
    """Print a line a question and length; the exit code says whether one is above the limit."""
    given = _given()
    if given.one:
        ask = (_hooked if given.one == "hook" else _ours)(given)
        started = time.process_time()
        number = ask()
        seconds, peak = time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({"seconds": seconds, "bytes": peak * 1024, "number": number}))
        return 0
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        _write_model(Path(folder))
        for each in given.asked:
            before = (0, 0.0)
            for tokens in given.tokens:
                expected = before[1] * (tokens / before[0]) ** 2 if before[0] else 0.0
                if expected > given.seconds:
                    print(f"{tokens:>6} tokens: left out, the hook alone would take {expected:,.0f} s")
                    continue
                hook, ours = (
                    _in_process(way, each, folder, tokens, given.controls) for way in ("hook", "ours")
                )
                before = tokens, hook["seconds"]
                worst = max(worst, _print(each, tokens, hook, ours))
    return int(worst > LIMIT)


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("asked", nargs="*", default=list(ASKED))
    parser.add_argument("--tokens", type=int, nargs="+", default=[4096])
    parser.add_argument("--controls", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--one", choices=("hook", "ours"))
    parser.add_argument("--folder")
    return parser.parse_args()


def _in_process(way: str, asked: str, folder: str, tokens: int, controls: int) -> dict:
    options = ["--one", way, "--folder", folder, "--tokens", str(tokens), "--controls", str(controls)]
    done = subprocess.run(
        [sys.executable, __file__, asked, *options], check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def _print(asked: str, tokens: int, hook: dict, ours: dict) -> float:
    times, sizes = ours["seconds"] / hook["seconds"], ours["bytes"] / hook["bytes"]
    print(
        f"{asked:>7}, {tokens:,} tokens: hook {hook['seconds']:.1f} s, {hook['bytes'] / 1e9:.2f} GB; "
        f"ours {ours['seconds']:.1f} s ({times:.2f}), {ours['bytes'] / 1e9:.2f} GB ({sizes:.2f}); "
        f"the number {hook['number']:.6g}, off {abs(hook['number'] - ours['number']):.1g}",
        flush=True,
    )
    return max(times, sizes)


def _write_model(folder: Path) -> None:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=WORDS, hidden_size=256, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=4, intermediate_size=688, max_position_embeddings=65536, bos_token_id=0,
        eos_token_id=1, initializer_range=0.1,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    names = ["<s>", "</s>", "<unk>", *(f"w{i}" for i in range(3, WORDS))]
    tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "model_max_length": 65536}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)


def _text(tokens: int) -> str:
    drawn = random.Random(0)
    words = [f"w{drawn.randrange(10, WORDS)}" for _ in range(tokens)]
    words[tokens // 3], words[-1] = KEY, QUERY
    return " ".join(words)


def _ours(given: argparse.Namespace) -> Callable[[], float]:
    import torch

    import attnscope

    torch.set_num_threads(1)
    model, text = attnscope.load(given.folder), _text(given.tokens[0])

    def find() -> float:
        found = model.read(text).find(QUERY, KEY, controls=given.controls)
        return float(found.weights[LAYER, HEAD])

    def predict() -> float:
        return model.read(text).predict().blanks[0].guesses[0].probability

    def layers() -> float:
        return model.read(text).predict_layers().places[0].layers[-2].probability

    def rank() -> float:
        return model.read(text).ablate(rank=True).predicted[0].change

    def why() -> float:
        return model.read(text).why(LAYER, HEAD, QUERY, KEY).score

    return {"find": find, "predict": predict, "layers": layers, "rank": rank, "why": why}[given.asked[0]]


def _hooked(given: argparse.Namespace) -> Callable[[], float]:
    import torch
    from transformers import AttentionInterface, AutoModelForCausalLM, AutoTokenizer
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    torch.set_num_threads(1)
    tokens, rows, ends = given.tokens[0], [], []
    key_at = tokens // 3

    def keep_row(module, query, key, value, mask, scaling=None, **options):  # type: ignore[no-untyped-def]
        keys = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
        if given.asked[0] == "find":
            rows.append(torch.softmax(query[:, :, -1:] @ keys.mT * scaling, -1)[0, :, 0])
        if given.asked[0] == "why" and module.layer_idx == LAYER:
            ends.append(float(query[0, HEAD, -1] @ keys[0, HEAD, key_at] * scaling))
            raise StopIteration
        return sdpa_attention_forward(module, query, key, value, mask, scaling=scaling, **options)

    AttentionInterface.register("sdpa", keep_row)
    model = AutoModelForCausalLM.from_pretrained(given.folder, attn_implementation="sdpa").eval()
    ids = AutoTokenizer.from_pretrained(given.folder)(_text(tokens), return_tensors="pt")["input_ids"]
    projections = [layer.self_attn.o_proj for layer in model.model.layers]
    order = torch.Generator().manual_seed(0)

    def shuffled() -> torch.Tensor:
        read = ids.clone()
        read[0, :-1] = ids[0, torch.randperm(tokens - 1, generator=order)]
        return read

    def chances(read: torch.Tensor) -> torch.Tensor:
        logits = model(read, use_cache=False, logits_to_keep=1).logits
        return logits[0, -1].double().log_softmax(-1)

    def before(module: torch.nn.Module, change: Callable) -> torch.utils.hooks.RemovableHandle:
        return module.register_forward_pre_hook(lambda _module, given: (change(given[0]),))

    @torch.no_grad()
    def find() -> float:
        found = []
        for read in (ids, *(shuffled() for _ in range(given.controls))):
            rows.clear()
            model.model(read, use_cache=False)
            found.append(torch.stack([row[:, key_at] for row in rows]))
        numbers = torch.stack(found)
        numbers[1:].mean(0), numbers[1:].std(0)
        return float(numbers[0, LAYER, HEAD])

    @torch.no_grad()
    def predict() -> float:
        return float(chances(ids).exp().topk(5).values[0])

    @torch.no_grad()
    def layers() -> float:
        states: list[torch.Tensor] = []
        for each in model.model.layers:
            each.register_forward_hook(lambda _module, _given, made: states.append(made[:, -1]))
        found = []
        for read in (ids, *(shuffled() for _ in range(20))):
            states.clear()
            chances(read)
            logits = model.lm_head(model.model.norm(torch.cat(states)))
            found.append(logits.double().softmax(-1))
        answer = int(found[0][-1].argmax())
        numbers = torch.stack([each[:, answer] for each in found])
        numbers[1:].mean(0), numbers[1:].std(0)
        return float(numbers[0, -2])

    def rank() -> float:
        seen: dict[int, torch.Tensor] = {}
        means = [torch.zeros(tokens, HEADS * SIZE) for _ in projections]
        probes = [torch.zeros(1, tokens, HEADS * SIZE, requires_grad=True) for _ in projections]
        model.requires_grad_(False)

        def keep(layer: int, given: torch.Tensor) -> torch.Tensor:
            seen[layer] = given.detach()
            return given + probes[layer] if torch.is_grad_enabled() else given

        hooks = [before(each, lambda given, i=i: keep(i, given)) for i, each in enumerate(projections)]
        with torch.no_grad():
            for _ in range(30):
                chances(shuffled())
                for layer, mean in enumerate(means):
                    mean += seen[layer][0] / 30
        own = chances(ids)
        answer = int(own.argmax())
        slopes = torch.autograd.grad(own[answer], probes)
        for hook in hooks:
            hook.remove()
        foretold = {}
        for layer, (mean, slope) in enumerate(zip(means, slopes, strict=True)):
            by_head = ((mean - seen[layer][0]) * slope[0]).view(tokens, HEADS, SIZE).sum((0, 2))
            foretold.update({(layer, head): float(by_head[head]) for head in range(HEADS)})
        changes = {}
        with torch.no_grad():
            for layer, head in foretold:

                def put(given: torch.Tensor, layer: int = layer, head: int = head) -> torch.Tensor:
                    cut, read = slice(head * SIZE, (head + 1) * SIZE), given.clone()
                    read[0, :, cut] = means[layer][:, cut]
                    return read

                hook = before(projections[layer], put)
                changes[layer, head] = float((chances(ids) - own)[answer])
                hook.remove()
        return max(foretold.values(), key=abs)

    @torch.no_grad()
    def why() -> float:
        def score(row: int, layer: int = 0, head: int | None = None) -> float:
            """Where a head's output is its mean over the other rows, in one row."""

            def change(given: torch.Tensor) -> torch.Tensor:
                read, cut = given.clone(), slice(head * SIZE, (head + 1) * SIZE)
                read[0, row, cut] = (given[0, :, cut].sum(0) - given[0, row, cut]) / (tokens - 1)
                return read

            hooks = [] if head is None else [before(projections[layer], change)]
            with contextlib.suppress(StopIteration):
                model.model(ids, use_cache=False)
            for hook in hooks:
                hook.remove()
            return ends.pop()

        for row in (tokens - 1, key_at):
            for layer in range(LAYER):
                for head in range(HEADS):
                    score(row, layer, head)
        return score(key_at)

    return {"find": find, "predict": predict, "layers": layers, "rank": rank, "why": why}[given.asked[0]]


if __name__ == "__main__":
    sys.exit(main())
