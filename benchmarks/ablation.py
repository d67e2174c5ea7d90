"""`ablate --each` on a model of bert-base size, 144 heads, in forward passes of the same model.

    python benchmarks/ablation.py [TOKENS ...]

The model has the shape of bert-base-uncased with its word head and random weights, made on the spot. Both
are measured in this process, as time of the processor on one thread, so that other work on the machine does
not count. What is measured is all that the command does between the loaded model and its result: the runs
that are left untouched, those that are watched, the heads in turn, and the rounding that is put in.

A short text costs little more in a batch than alone, since the weights are read once for both; of long ones
every head needs the layers after it, and no more than these: 12 x 6.5 of 12 layers, 78 passes. So the ratio
grows with the text, from about 20 at 11 tokens to 40 at 24, and on towards 70 where a text is long.
"""

import statistics
import sys
import time

import torch
from transformers import BertConfig, BertForMaskedLM

from attnscope.analysis.claims.ablation.experiment import taken_away
from attnscope.analysis.claims.ablation.question import word_at
from attnscope.capture import Selection
from attnscope.capture.intervening.changes import Zero
from attnscope.capture.intervening.reached import experiments_on
from attnscope.results.claims.effect import Asks

LIMIT = 40


def main() -> int:
    """Print the ratio at every length; the exit code says whether the first one is above the limit."""
    torch.set_num_threads(1)
    model = BertForMaskedLM._from_config(BertConfig(), attn_implementation="eager").eval()
    lengths = [int(length) for length in sys.argv[1:]] or [11, 24]
    ratios = [_ratio(model, length) for length in lengths]
    return int(ratios[0] > LIMIT)


def _ratio(model: BertForMaskedLM, length: int) -> float:
    inputs = {
        "input_ids": torch.randint(1000, 20000, (1, length)),
        "attention_mask": torch.ones(1, length).long(),
    }
    with torch.no_grad():
        one = statistics.median(_seconds(lambda: model(**inputs)) for _ in range(7))
    all_heads = _seconds(lambda: _each(model, inputs, length))
    print(f"{length} tokens: one pass {one:.3f} s, 144 heads {all_heads:.2f} s, ratio {all_heads / one:.1f}")
    return all_heads / one


def _each(model: BertForMaskedLM, inputs: dict[str, torch.Tensor], length: int) -> None:
    question = word_at(Asks.MASK, 4, length, (2003,), str)
    made = experiments_on(model, inputs, Selection(), question.asked)
    heads = [(layer, head) for layer in range(12) for head in range(12)]
    taken_away(made, [2003], heads, Zero(), together=False, seed=0)


def _seconds(work: object) -> float:
    started = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())
