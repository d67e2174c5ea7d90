"""The two scripts that a user would write for the measures of benchmarks/corpus.py, without attnscope.

    python benchmarks/corpus_scripts.py bare|obvious|batched MODEL FILE OUT.json DEVICE [BATCH]

`obvious` runs the model on one line at a time with `output_attentions=True` and measures each head of each
layer with NumPy. `batched` sorts the lines by length, fills them up, and measures all heads at once in torch.
`bare` is the first on one line: what a process costs that has the model open. Written is the mean of every
measure over the lines, `measure layer head`, in the order of MEASURES.
"""

import json
import sys
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

MEASURES = (
    "entropy,confidence,distance,self,previous,next,first,sink,special-tokens,punctuation,same,evenness,"
    "fixed,offset"
)


def is_punctuation(piece: str) -> bool:
    piece = piece.removeprefix("##")
    return bool(piece) and all(unicodedata.category(character)[0] == "P" for character in piece)


def most_frequent(offsets: np.ndarray) -> tuple[int, int]:
    """The most frequent offset, of several the shortest, and how often it is."""
    values, times = np.unique(offsets, return_counts=True)
    times_of, _, best = min(
        (-count, (abs(value), value), value)
        for value, count in zip(values.tolist(), times.tolist(), strict=True)
    )
    return best, -times_of


def of_head(
    weights: np.ndarray, special: np.ndarray, punctuation: np.ndarray, same: np.ndarray
) -> list[float]:
    """Every measure of one head."""
    n = len(weights)
    places = np.arange(n)
    entropy = -(weights * np.log(np.maximum(weights, 1e-30))).sum(-1).mean()
    offset, times = most_frequent(weights.argmax(-1) - places)
    return [
        entropy,
        weights.max(-1).mean(),
        (weights * np.abs(places[:, None] - places)).sum(-1).mean(),
        np.diagonal(weights).mean(),
        np.diagonal(weights, -1).sum() / n,
        np.diagonal(weights, 1).sum() / n,
        weights[:, 0].mean(),
        weights[1:, 0].mean(),
        weights[:, special].sum(-1).mean(),
        weights[:, punctuation].sum(-1).mean() if punctuation.any() else np.nan,
        (weights * same).sum(-1).mean() if same.any() else np.nan,
        entropy / np.log(n),
        times / n,
        offset,
    ]


def obvious(model, tokenizer, lines, punctuation, device):
    """A line at a time, a head at a time."""
    rows = []
    for line in lines:
        inputs = tokenizer(line, return_tensors="pt").to(device)
        ids = inputs["input_ids"][0].cpu().numpy()
        special = np.isin(ids, tokenizer.all_special_ids)
        marks = punctuation[ids] & ~special
        same = (ids[:, None] == ids) & ~np.eye(len(ids), dtype=bool)
        with torch.no_grad():
            attentions = model(**inputs, output_attentions=True).attentions
        layers = [layer[0].cpu().numpy() for layer in attentions]
        rows.append([[of_head(head, special, marks, same) for head in layer] for layer in layers])
    return np.array(rows).transpose(0, 3, 1, 2)


def of_layer(weights, length, special, marks, same):
    """Every measure of all heads and lines."""
    n = weights.shape[-1]
    places = torch.arange(n, device=weights.device)
    own = (places < length[:, None])[:, None].float()
    count = length[:, None].float()

    def mean(rows):
        return (rows * own).sum(-1) / count

    entropy = mean(torch.special.entr(weights).sum(-1))
    largest, strongest = weights.max(-1)
    offsets = strongest - places + n - 1
    times = torch.zeros(*offsets.shape[:2], 2 * n - 1, device=weights.device)
    times.scatter_add_(-1, offsets, own.expand(offsets.shape))
    every = torch.arange(1 - n, n, device=weights.device)
    best = (times * (4 * n) - (2 * every.abs() + (every > 0))).argmax(-1)
    shift = [torch.diagonal(weights, step, -2, -1) for step in (0, -1, 1)]
    return torch.stack(
        [
            entropy,
            mean(largest),
            mean((weights * (places[:, None] - places).abs()).sum(-1)),
            mean(shift[0]),
            (shift[1] * own[..., 1:]).sum(-1) / count,
            (shift[2] * own[..., :-1]).sum(-1) / count,
            mean(weights[..., 0]),
            (weights[..., 1:, 0] * own[..., 1:]).sum(-1) / (count - 1),
            mean((weights * special[:, None, None]).sum(-1)),
            mean((weights * marks[:, None, None]).sum(-1)).masked_fill(~marks.any(-1)[:, None], torch.nan),
            mean((weights * same[:, None]).sum(-1)).masked_fill(~same.any(-1).any(-1)[:, None], torch.nan),
            entropy / count.log(),
            times.gather(-1, best[..., None])[..., 0] / count,
            every[best].float(),
        ],
        dim=1,
    )


def batched(model, tokenizer, lines, punctuation, device, most):
    """Lines of near length together, all heads at once."""
    ids = tokenizer(lines)["input_ids"]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    specials = torch.tensor(tokenizer.all_special_ids, device=device)
    punctuation = torch.as_tensor(punctuation, device=device)
    rows = [None] * len(ids)
    for at in range(0, len(order), most):
        group = order[at : at + most]
        length = torch.tensor([len(ids[i]) for i in group], device=device)
        n = int(length.max())
        filled = torch.full((len(group), n), tokenizer.pad_token_id, device=device)
        for row, i in enumerate(group):
            filled[row, : len(ids[i])] = torch.tensor(ids[i])
        mask = torch.arange(n, device=device) < length[:, None]
        with torch.no_grad():
            attentions = model(
                input_ids=filled, attention_mask=mask.long(), output_attentions=True
            ).attentions
        special = torch.isin(filled, specials) & mask
        same = (filled[:, :, None] == filled[:, None]) & mask[:, :, None] & mask[:, None]
        same &= ~torch.eye(n, dtype=torch.bool, device=device)
        marks = punctuation[filled] & mask & ~special
        layers = [of_layer(layer, length, special, marks, same) for layer in attentions]
        values = torch.stack(layers, dim=2).double().cpu().numpy()
        for row, i in enumerate(group):
            rows[i] = values[row]
    return np.array(rows)


def main() -> None:
    """One of the two, from start to end."""
    kind, folder, file, out, device, *batch = sys.argv[1:]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval().to(device)
    punctuation = np.array(
        [is_punctuation(each) for each in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))]
    )
    lines = Path(file).read_text("utf-8").splitlines()
    if kind != "batched":
        rows = obvious(model, tokenizer, lines[:1] if kind == "bare" else lines, punctuation, device)
    else:
        rows = batched(model, tokenizer, lines, punctuation, device, int(batch[0]) if batch else 32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a measure that no line has
        told = {"mean": np.nanmean(rows, 0).tolist(), "sd": np.nanstd(rows, 0, ddof=1).tolist()}
    Path(out).write_text(json.dumps(told), "utf-8", newline="\n")


if __name__ == "__main__":
    main()
