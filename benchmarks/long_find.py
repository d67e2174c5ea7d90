"""`find` on a long text beside a hook that keeps one row of every head, each in a process of its own.

    python benchmarks/long_find.py [--tokens 2048 4096] [--controls 100] [--seconds 600]

The model is a Llama of four layers, width 256, eight heads on four keys, with random weights, made on the
spot with a tokenizer of whole words. Both read the same text and as many control texts under torch's fused
kernel and keep what the last token gives to one key. The hook is what one would write by hand: transformers'
own attention function, wrapped, a softmax over the last query's scores, the word's weight. It proves nothing.

Time is that of the processor on one thread from the opened model to the numbers, memory the most that the
process ever held. Both say what the text itself gives; the largest difference is printed. A length whose hook
would take over `--seconds`, judged by the one before, is left out.
"""

import argparse
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


def main() -> int:
    """Print a line a length; the exit code says whether one is above the limit. `--one` measures one way."""
    asked = _asked()
    if asked.one:
        print(json.dumps(WAYS[asked.one](Path(asked.folder), asked.tokens[0], asked.controls)))
        return 0
    worst, before = 0.0, (0, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        _write_model(Path(folder))
        for tokens in asked.tokens:
            expected = before[1] * (tokens / before[0]) ** 2 if before[0] else 0.0
            if expected > asked.seconds:
                print(f"{tokens:>6} tokens: left out, the hook alone would take {expected:,.0f} s")
                continue
            hook, ours = (_in_process(way, folder, tokens, asked.controls) for way in ("hook", "find"))
            before = tokens, hook["seconds"]
            worst = max(worst, _print(tokens, asked.controls, hook, ours))
    return int(worst > LIMIT)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, nargs="+", default=[2048, 4096])
    parser.add_argument("--controls", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--one", choices=WAYS)
    parser.add_argument("--folder")
    return parser.parse_args()


def _in_process(way: str, folder: str, tokens: int, controls: int) -> dict:
    arguments = ["--one", way, "--folder", folder, "--tokens", str(tokens), "--controls", str(controls)]
    done = subprocess.run(
        [sys.executable, __file__, *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def _print(tokens: int, controls: int, hook: dict, ours: dict) -> float:
    times, sizes = ours["seconds"] / hook["seconds"], ours["bytes"] / hook["bytes"]
    off = max(abs(a - b) for a, b in zip(hook["weights"], ours["weights"], strict=True))
    print(
        f"{tokens:>6} tokens, {controls} controls: "
        f"hook {hook['seconds']:.1f} s, {hook['bytes'] / 1e9:.2f} GB; "
        f"find {ours['seconds']:.1f} s ({times:.2f}), {ours['bytes'] / 1e9:.2f} GB ({sizes:.2f}), "
        f"{ours['verdict']}; the text's own weights differ by {off:.1g}",
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


def _hook(folder: Path, tokens: int, controls: int) -> dict:
    import torch
    from transformers import AttentionInterface, AutoModelForCausalLM, AutoTokenizer
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    torch.set_num_threads(1)
    rows: list = []

    def keep_row(module, query, key, value, mask, scaling=None, **options):  # type: ignore[no-untyped-def]
        keys = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
        rows.append(torch.softmax(query[:, :, -1:] @ keys.mT * scaling, -1)[0, :, 0])
        return sdpa_attention_forward(module, query, key, value, mask, scaling=scaling, **options)

    AttentionInterface.register("sdpa", keep_row)
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa").eval()
    ids = AutoTokenizer.from_pretrained(folder)(_text(tokens), return_tensors="pt")["input_ids"]
    found, started = [], time.process_time()
    order = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for control in range(controls + 1):
            read = ids.clone()
            if control:
                read[0, :-1] = ids[0, torch.randperm(tokens - 1, generator=order)]
            rows.clear()
            model.model(read)
            found.append(torch.stack([row[:, tokens // 3] for row in rows]))
    numbers = torch.stack(found)
    numbers[1:].mean(0), numbers[1:].std(0)
    return _measured(started, found[0].flatten().tolist())


def _find(folder: Path, tokens: int, controls: int) -> dict:
    import torch

    import attnscope

    torch.set_num_threads(1)
    model = attnscope.load(str(folder))
    started = time.process_time()
    found = model.read(_text(tokens)).find(QUERY, KEY, controls=controls)
    return _measured(started, found.weights.flatten().tolist()) | {"verdict": found.verdict}


def _measured(started: float, weights: list[float]) -> dict:
    seconds, peak = time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "bytes": peak, "weights": weights}


WAYS: dict[str, Callable[[Path, int, int], dict]] = {"hook": _hook, "find": _find}


if __name__ == "__main__":
    sys.exit(main())
