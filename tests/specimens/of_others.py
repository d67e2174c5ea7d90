"""Figures that other libraries give for one small GPT-2, and the model that they are of.

    python tests/specimens/of_others.py

writes `of_others.json` beside this file again. It needs transformer-lens and inseq, which bring a great deal
with them; the tests read the file alone. Weights are drawn by NumPy's `RandomState`, whose numbers are the
same in every version and on every machine.
"""

import copy
import json
import tempfile
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

FILE = Path(__file__).with_suffix(".json")
LAYERS, HEADS, WIDTH = 3, 4, 32
NOUNS = ("door", "river", "king", "window", "garden", "father", "mother", "box", "dog", "cat", "bird", "tree")
WORDS = ["[UNK]", "nothing", "a", "opened", "gave", "saw", "took", *NOUNS]
CLEAN = "father gave mother a box king saw father"
OTHER = "mother gave father a dog king took window"
NOTHING = "father gave mother a box king saw nothing"
ANSWER, AGAINST = "garden", "river"
STEPS = 512


def model() -> GPT2LMHeadModel:
    """Three layers of four heads, with attention that is far from even and biases that are not nothing."""
    config = GPT2Config(
        vocab_size=len(WORDS), n_positions=16, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS,
        bos_token_id=0, eos_token_id=0, tie_word_embeddings=False,
    )  # fmt: skip
    module, drawn = GPT2LMHeadModel(config), np.random.RandomState(29)
    module.set_attn_implementation("eager")
    with torch.no_grad():
        for name, parameter in sorted(module.named_parameters()):
            normal = torch.from_numpy(drawn.standard_normal(tuple(parameter.shape))).float()
            wide = 0.3 if parameter.ndim > 1 else 0.1
            parameter.copy_(wide * normal + (1.0 if "ln_" in name and name.endswith("weight") else 0.0))
        module.transformer.wte.weight[:2] = 0  # what the way of integrated gradients starts from, by name
    return module.eval()


def tokenizer() -> PreTrainedTokenizerFast:
    """One token for each word, nothing before and nothing behind."""
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="[UNK]", bos_token="[UNK]", eos_token="[UNK]"
    )


def ids_of(text: str) -> Tensor:
    return torch.tensor([[WORDS.index(word) for word in text.split()]])


def bridged(folder: str, *, processed: bool = False) -> Any:
    """The same model as transformer-lens runs it."""
    from transformer_lens import TransformerBridge

    own = model()
    own.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    bridge = TransformerBridge.boot_transformers(
        folder, hf_model=copy.deepcopy(own), tokenizer=AutoTokenizer.from_pretrained(folder), device="cpu"
    )
    if processed:
        bridge.enable_compatibility_mode(
            fold_value_biases=False
        )  # a head's values with their bias, as we have them
    return bridge.eval()


def of_answer(logits: Tensor) -> Tensor:
    logits = logits.detach()
    return logits[0, -1, WORDS.index(ANSWER)] - logits[0, -1, WORDS.index(AGAINST)]


def weights(bridge: Any) -> list[Any]:
    """The patterns of all heads, by layer."""
    _, cache = bridge.run_with_cache(ids_of(CLEAN))
    return [cache[f"blocks.{layer}.attn.hook_pattern"][0].tolist() for layer in range(LAYERS)]


def direct(bridge: Any) -> dict[str, float]:
    """Direct logit attribution by heads and by components, of the difference of the two answers."""
    from transformer_lens.tools.analysis.direct_logit_attribution import direct_logit_attribution

    found = dict[str, float]()
    for unit in ("head", "component"):
        made = direct_logit_attribution(bridge, ids_of(CLEAN), ANSWER, AGAINST, unit=unit)
        found |= dict(zip(made.labels, made.attribution.flatten().tolist(), strict=True))
    return found


def lens(bridge: Any) -> list[list[float]]:
    """Log probabilities of all words behind every layer, at the last token."""
    from transformer_lens.tools.analysis.logit_lens import logit_lens

    made = logit_lens(bridge, ids_of(CLEAN))
    return made.values.reshape(LAYERS + 1, len(WORDS)).log_softmax(-1).tolist()


def patched(bridge: Any) -> dict[str, Any]:
    """The difference where the other text's numbers are put: heads at all tokens, layer inputs at one."""
    from transformer_lens import patching

    _, other = bridge.run_with_cache(ids_of(OTHER))
    put = partial(patching.get_act_patch_attn_head_out_all_pos, bridge, ids_of(CLEAN), other)
    into = partial(patching.get_act_patch_resid_pre, bridge, ids_of(CLEAN), other)
    return {"heads": put(of_answer).tolist(), "residual": into(of_answer).tolist()}


def integrated() -> dict[str, Any]:
    """Integrated gradients of the likeliest answer, by token, on the way from a text of nothing."""
    import inseq

    own = model()
    answer = WORDS[int(own(ids_of(NOTHING)).logits[0, -1].argmax())]
    asked = inseq.load_model(own, "integrated_gradients", tokenizer=tokenizer())
    made = asked.attribute(
        NOTHING, f"{NOTHING} {answer}", n_steps=STEPS, attributed_fn="crossentropy", show_progress=False
    )
    found = made.sequence_attributions[0].target_attributions
    return {"answer": answer, "lost": (-found.nansum(-1)[: len(NOTHING.split()), 0]).tolist()}


def main() -> None:
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        raw, processed = bridged(folder), bridged(folder, processed=True)
        figures = {
            "origin": {
                name: version(name) for name in ("transformer-lens", "inseq", "transformers", "torch")
            },
            "difference": float(of_answer(raw(ids_of(CLEAN)))),
            "other": float(of_answer(raw(ids_of(OTHER)))),
            "weights": weights(raw),
            "direct": direct(processed),
            "lens": lens(raw),
            "patched": patched(raw),
        }
    figures["integrated"] = integrated()
    lines = (f"{json.dumps(name)}: {json.dumps(_short(figure))}" for name, figure in figures.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _short(figure: Any) -> Any:
    """Numbers of eight digits, which is what float32 holds."""
    if isinstance(figure, dict):
        return {name: _short(each) for name, each in figure.items()}
    if isinstance(figure, list):
        return [_short(each) for each in figure]
    return float(f"{figure:.8g}") if isinstance(figure, float) else figure


if __name__ == "__main__":
    main()
