"""The scripts by hand that `jobs.py` holds the jobs against: plain transformers, PyTorch and NumPy.

    python benchmarks/job_scripts.py NAME GIVEN.json

A script gets the model, its tokenizer and what is given, and makes the figures that our job shows first. As a
process of its own it loads the model from the folder that is `given`, and prints them. Nothing of attnscope
is imported here.
"""

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch

Given = dict[str, Any]


def align(model: Any, tokenizer: Any, given: Given) -> tuple[Any, Any]:
    """How strongly words are linked, in the text and with rows shuffled: heads weighed by sharpness."""
    source, target = given["source"], given["target"]
    read = tokenizer(source, return_offsets_mapping=True)
    write = tokenizer(text_target=target, return_offsets_mapping=True)
    ids = torch.tensor([[2, *write["input_ids"][:-1]]])
    with torch.no_grad():
        made = model(torch.tensor([read["input_ids"]]), decoder_input_ids=ids, output_attentions=True)
    weights = torch.cat(made.cross_attentions).flatten(0, 1).double().numpy()
    rows = [weights[:, each].mean(1) for each in _pieces(target, write["offset_mapping"])]
    words = [np.stack(rows, 1)[..., each].sum(-1) for each in _pieces(source, read["offset_mapping"])]
    said = np.stack(words, 2)
    shares = _by_sharpness(said)
    says = np.sqrt(said * said / (said.sum(1, keepdims=True) + 0.1))
    draw, each = np.random.default_rng(0), np.arange(len(said))[:, None]
    orders = [np.argsort(draw.random(said.shape[:2]), 1) for _ in range(99)]
    by_luck = [np.tensordot(shares, says[each, order], 1).max(1).mean() for order in orders]
    return np.tensordot(shares, says, 1), by_luck


def _pieces(text: str, offsets: Any) -> list[list[int]]:
    """The tokens of every word; a mark at its end is a word of its own."""
    spans = [each.span() for each in re.finditer(r"\w(?:\S*\w)?|[^\w\s]", text)]
    return [
        [i for i, (start, end) in enumerate(offsets) if end > start and low <= start < high]
        for low, high in spans
    ]


def _by_sharpness(said: Any) -> Any:
    whole = np.concatenate([said, np.clip(1 - said.sum(2, keepdims=True), 0, None)], 2)
    entropy = -(whole * np.log(whole + 1e-12)).sum(2).mean(1)
    centres = said @ np.arange(said.shape[2]) / (said.sum(2) + 1e-12)
    follows = [np.corrcoef(each, np.arange(said.shape[1]))[0, 1] for each in centres]
    strength = np.sqrt(np.clip(1 - entropy / np.log(whole.shape[2]), 0, None) * np.clip(follows, 0, None))
    return strength / strength.sum()


def cite(model: Any, tokenizer: Any, given: Given) -> list[float]:
    """What the answer's log probability loses without each sentence before the question."""
    text = given["text"]
    read = tokenizer(f"{text} {given['answer']}", return_offsets_mapping=True)
    *ids, answer = read["input_ids"]
    ends = [each.end() for each in re.finditer(r"\.(?= )", text)]
    spans = zip([0, *ends], ends, strict=False)
    starts = [start if end > start else None for start, end in read["offset_mapping"][:-1]]
    gone = [{i for i, at in enumerate(starts) if at is not None and low <= at < high} for low, high in spans]

    @torch.no_grad()
    def chance(left: list[int]) -> float:
        return float(model(torch.tensor([left])).logits[0, -1].log_softmax(-1)[answer])

    without = [chance([id for i, id in enumerate(ids) if i not in each]) for each in gone]
    before = chance(ids)
    return [before - each for each in without]


def retrieval(model: Any, tokenizer: Any, given: Given) -> tuple[Any, Any, list[int]]:
    """How often heads look first at either fact; how many others are answered without each group of heads."""
    looks = [_looks(model, tokenizer, each) for each in given["texts"]]
    first, other = np.moveaxis(np.array(looks, float), 1, 0)
    right = [
        sum(_answers(model, tokenizer, each, group) for each in given["others"]) for group in given["groups"]
    ]
    return first, other, right


def _looks(model: Any, tokenizer: Any, each: Given) -> tuple[Any, Any]:
    read = tokenizer(each["text"], return_offsets_mapping=True)
    with torch.no_grad():
        made = model(torch.tensor([read["input_ids"]]), output_attentions=True)
    places = torch.stack(made.attentions)[:, 0, :, -1].argmax(-1)
    middles = np.array([(start + end) / 2 for start, end in read["offset_mapping"]])[places.numpy()]
    fact, other = ((middles > low) & (middles < high) for low, high in (each["at"], each["other_at"]))
    return fact, other


def _answers(model: Any, tokenizer: Any, each: Given, without: list[tuple[int, int]]) -> bool:
    dim = model.config.head_dim

    def put(layer: int) -> Callable[..., Any]:
        def zeros(_: Any, args: Any) -> Any:
            values = args[0].clone()
            for at, head in without:
                if at == layer:
                    values[..., dim * head : dim * head + dim] = 0
            return (values,)

        return zeros

    with ExitStack() as stack, torch.no_grad():
        for number, layer in enumerate(model.model.layers):
            hook = layer.self_attn.o_proj.register_forward_pre_hook(put(number))
            stack.callback(hook.remove)
        ids = tokenizer(each["text"])["input_ids"]
        said = model(torch.tensor([ids])).logits[0, -1].argmax()
    return bool(said == tokenizer(f"{each['text']} {each['answer']}")["input_ids"][len(ids)])


def drift(model: Any, tokenizer: Any, given: Given) -> Any:
    """How far the weights of every head moved from one model to the `other`, the mean over all queries."""
    moved, other = [], given["other"]
    for text in given["texts"]:
        ids = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            old, new = (each(**ids, output_attentions=True).attentions for each in (model, other))
        apart = [
            (a[0].double() - b[0].double()).abs().sum(-1).mean(-1) / 2 for a, b in zip(old, new, strict=True)
        ]
        moved.append(torch.stack(apart).numpy())
    return np.mean(moved, 0)


def gold(model: Any, tokenizer: Any, given: Given) -> float:
    """The share of links that are right, by the mean of all heads and the largest of each row."""
    right = links = 0
    for line in given["lines"]:
        source, target, said = line.split(" ||| ")
        read = tokenizer(source, return_offsets_mapping=True)
        write = tokenizer(text_target=target, return_offsets_mapping=True)
        ids = torch.tensor([[2, *write["input_ids"][:-1]]])
        with torch.no_grad():
            made = model(torch.tensor([read["input_ids"]]), decoder_input_ids=ids, output_attentions=True)
        mean = torch.cat(made.cross_attentions).mean((0, 1)).numpy()[:, :-1]
        columns, rows = (
            [text[:start].count(" ") for start, _ in each["offset_mapping"][:-1]]
            for text, each in ((source, read), (target, write))
        )
        words = np.zeros((max(rows) + 1, max(columns) + 1))
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                words[row, column] += mean[i, j] / rows.count(row)
        answered = {f"{j}-{i}" for i, j in enumerate(words.argmax(1))}
        right, links = right + len(answered & set(said.split())), links + len(answered)
    return right / links


def heard(model: Any, tokenizer: Any, given: Given) -> tuple[Any, Any, int]:
    """What a recogniser writes of a sound, what it heard, and how long that is."""
    import soundfile
    from transformers import AutoFeatureExtractor

    wave, rate = soundfile.read(given["sound"], dtype="float32")
    extractor = AutoFeatureExtractor.from_pretrained(given["folder"])
    sound = extractor(wave, sampling_rate=rate, return_tensors="pt")["input_features"]
    ids = model.generate(input_features=sound)
    print(tokenizer.decode(ids[0], skip_special_tokens=True))
    return ids, sound, len(wave)


def timed(model: Any, tokenizer: Any, given: Given) -> list[float]:
    """When each token is said: cross-attention of all heads, z-scores, a median, time warping by the book."""
    from scipy.ndimage import median_filter

    ids, sound, samples = heard(model, tokenizer, given)
    with torch.no_grad():
        made = model(input_features=sound, decoder_input_ids=ids[:, :-1], output_attentions=True)
    weights = torch.cat(made.cross_attentions).flatten(0, 1).numpy()[..., : -(-samples // 640)]
    scaled = (weights - weights.mean(1, keepdims=True)) / (weights.std(1, keepdims=True) + 1e-6)
    cost = -median_filter(scaled, size=(1, 1, 3)).mean(0)
    path = list(_warped(cost))
    return [min(frame for row, frame in path if row == each) * 0.04 for each in range(cost.shape[0])]


def _warped(cost: Any) -> Iterator[tuple[int, int]]:
    best = np.full((cost.shape[0] + 1, cost.shape[1] + 1), np.inf)
    best[0, 0] = 0
    for i in range(1, best.shape[0]):
        for j in range(1, best.shape[1]):
            best[i, j] = cost[i - 1, j - 1] + min(best[i - 1, j - 1], best[i - 1, j], best[i, j - 1])
    i, j = best.shape[0] - 1, best.shape[1] - 1
    while i and j:
        yield i - 1, j - 1
        i, j = min((i - 1, j - 1), (i - 1, j), (i, j - 1), key=lambda at: best[at])


def recogniser(demo: str) -> tuple[str, str]:
    """The folders of a Whisper-shaped model with random weights and the bundled one's words, and a sound."""
    import soundfile
    import transformers

    folder = tempfile.mkdtemp()
    own, sides = transformers.AutoConfig.from_pretrained(demo).to_dict(), ("encoder", "decoder")
    ids = {name: own[name] for name in own if name.endswith("token_id")}
    sizes = {
        f"{side}_{name}": size for side in sides for name, size in (("layers", 6), ("attention_heads", 8))
    }
    wide = {f"{side}_ffn_dim": 2048 for side in sides}
    torch.manual_seed(0)
    config = transformers.WhisperConfig(
        **ids, **sizes, **wide, d_model=512, suppress_tokens=None, begin_suppress_tokens=None
    )
    transformers.WhisperForConditionalGeneration(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(demo, model_max_length=448).save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=80).save_pretrained(folder)
    samples = np.random.default_rng(0).normal(0, 0.1, 160_000).astype("float32")
    soundfile.write(sound := f"{folder}/ten.wav", samples, 16_000)
    return folder, sound


SCRIPTS = {each.__name__: each for each in (align, cite, retrieval, drift, gold, heard, timed)}


def main() -> None:
    """One script on its own: the model is loaded, the figures are printed."""
    import transformers

    name, file = sys.argv[1:]
    given = json.loads(Path(file).read_text("utf-8"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(given["folder"])
    kind = getattr(transformers, given["kind"])
    model, *others = (
        kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
        for folder in (given["folder"], given.get("second"))
        if folder
    )
    print(SCRIPTS[name](model, tokenizer, given | {"other": next(iter(others), None)}))


if __name__ == "__main__":
    main()
