"""`heads --measure all` beside the plain overview, on a model of bert-base size, 144 heads.

    python benchmarks/measures.py [TOKENS ...]

The model has the shape of bert-base-uncased and random weights, made on the spot. Both are measured in this
process, as time of the processor on one thread, so that other work on the machine does not count: all that
lies between the loaded model and the result. `all` are the measures of the one run over the text, those by
the norm of what is moved among them, for which the output projections are found and read back.
"""

import statistics
import sys
import time
from collections.abc import Callable

import torch
from transformers import BertConfig, BertModel

from attnscope.analysis import measure_heads
from attnscope.capture import Labels, Selection, record
from attnscope.measures import parse_measures
from attnscope.tokens import Token, Tokens

LIMIT = 1.5
ROUNDS = 5


def main() -> int:
    """Print the ratio at every length; the exit code says whether one is above the limit."""
    torch.set_num_threads(1)
    model = BertModel._from_config(BertConfig(), attn_implementation="eager").eval()
    ratios = [_ratio(model, int(length)) for length in sys.argv[1:] or ("13", "64", "128")]
    return int(max(ratios) > LIMIT)


def _ratio(model: BertModel, length: int) -> float:
    inputs = {"input_ids": torch.randint(1000, 20000, (1, length))}
    labels = Labels(_tokens(inputs["input_ids"][0].tolist()))
    every = parse_measures("all")

    def plain() -> None:
        measure_heads(record(model, inputs, Selection(), labels))

    def measured() -> None:
        found = measure_heads(record(model, inputs, Selection(projections=True), labels), measures=every)
        assert not any(scores.absent for scores in found.scores.values()), "every one has a meaning here"

    times = [(_seconds(plain), _seconds(measured)) for _ in range(ROUNDS)]
    one, all_of_them = (statistics.median(each) for each in zip(*times, strict=True))
    ratio = all_of_them / one
    print(
        f"{length} tokens: overview {one:.2f} s, {len(every)} measures {all_of_them:.2f} s, ratio {ratio:.2f}"
    )
    return ratio


def _tokens(ids: list[int]) -> Tokens:
    """With special tokens, punctuation and a token that stands twice, so that every measure has a meaning."""
    words = [".", *(f"w{i}" for i in range(1, len(ids)))]
    items = [Token(i, word, word, None, None) for i, word in zip(ids, words, strict=True)]
    items[2] = items[1]
    items[-1] = Token(0, "[SEP]", "[SEP]", None, None, special=True)
    return Tokens((" ".join(words),), tuple(items))


def _seconds(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
