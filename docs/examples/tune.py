"""Fine-tunes the bundled demo model on a few sentences, as somebody would with a model of their own.

    python docs/examples/tune.py FOLDER RATE

One mask in each sentence, twenty steps of plain gradient descent at RATE; FOLDER has the tuned checkpoint.
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForPreTraining, AutoTokenizer

import attnscope

STEPS = 20
SENTENCES = (
    ("The [MASK] opened when she pushed it.", "door"),
    ("I closed the [MASK] because it was cold.", "door"),
    ("He was watching the [MASK] when it opened.", "door"),
    ("The [MASK] was open, so the cat went out.", "door"),
)


def main(folder: str, rate: float) -> None:
    """Tune and store."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    source = Path(attnscope.__file__).parent / "demo" / "encoder"
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = AutoModelForPreTraining.from_pretrained(source).eval()  # without dropout, so that runs agree
    read = tokenizer([text for text, _ in SENTENCES], padding=True, return_tensors="pt")
    blank = read["input_ids"] == tokenizer.mask_token_id
    wanted = torch.tensor(tokenizer.convert_tokens_to_ids([word for _, word in SENTENCES]))
    descent = torch.optim.SGD(model.parameters(), lr=rate)
    first = loss = None
    for _ in range(STEPS):
        loss = torch.nn.functional.cross_entropy(model(**read).prediction_logits[blank], wanted)
        first = first or loss.item()
        descent.zero_grad()
        loss.backward()
        descent.step()
    print(f"{STEPS} steps at {rate}: loss {first:.1f} to {loss.item():.1f}")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("tune.py takes two arguments: FOLDER RATE")
    main(sys.argv[1], float(sys.argv[2]))
