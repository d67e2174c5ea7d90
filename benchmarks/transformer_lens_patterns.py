"""attnscope's weights against transformer-lens's attention patterns, on random models of five families.

    pip install transformer-lens && python benchmarks/transformer_lens_patterns.py

Not part of the tests, since transformer-lens brings a great deal with it. Both read the same model object;
transformer-lens wraps a copy of it in code of its own. Ends with 1 where a weight differs by more than
`TOLERATED`.
"""

import copy
import sys
import tempfile

import torch
import transformers as hf
from transformer_lens import TransformerBridge

from attnscope import demo
from attnscope.analysis.heads.head import recompute_head
from attnscope.capture import record

TOLERATED = 2e-6  # float32 against our float64
SIZES = {"num_hidden_layers": 3, "num_attention_heads": 6, "hidden_size": 48, "vocab_size": 1200}
GROUPED = {**SIZES, "num_key_value_heads": 2, "intermediate_size": 40, "head_dim": 8}
MODELS = {
    "GPT-2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(n_layer=3, n_head=6, n_embd=48, vocab_size=1200)),
    "Llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**GROUPED)),
    "Mistral, window 4": lambda: hf.MistralForCausalLM(hf.MistralConfig(**GROUPED, sliding_window=4)),
    "GPT-NeoX": lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**SIZES, intermediate_size=40)),
    "BERT": lambda: hf.BertForMaskedLM(hf.BertConfig(**SIZES, intermediate_size=40)),
}


def sharp(model: torch.nn.Module) -> torch.nn.Module:
    """The model with weights so large that its attention is peaked."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=2 * parameter.shape[-1] ** -0.5)
    return model.eval()


def patterns(model: torch.nn.Module, ids: torch.Tensor) -> list[torch.Tensor]:
    """What transformer-lens calls the pattern of every layer: `head query key`."""
    tokenizer = hf.AutoTokenizer.from_pretrained(demo.folder())
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        bridge = TransformerBridge.boot_transformers(
            folder, hf_model=copy.deepcopy(model), tokenizer=tokenizer, device="cpu"
        )
        _, cache = bridge.run_with_cache(ids)
    return [cache[f"blocks.{layer}.attn.hook_pattern"][0] for layer in range(3)]


def main() -> int:
    hf.logging.disable_progress_bar()
    worst = 0.0
    ids = torch.randint(5, 1200, (1, 13), generator=torch.Generator().manual_seed(1))
    for name, make in MODELS.items():
        torch.manual_seed(0)
        model = sharp(make())
        model.set_attn_implementation("eager")
        theirs = patterns(model, ids)
        captured = record(model, {"input_ids": ids})
        off = 0.0
        for layer, pattern in enumerate(theirs):
            for head in range(6):
                ours = torch.from_numpy(recompute_head(captured, layer, head).weights)
                off = max(off, float((ours - pattern[head].double()).abs().max()))
        peak = float(torch.stack(theirs).amax(-1).mean())
        print(f"{name:18} 3 layers x 6 heads, 13 tokens: largest difference {off:.1e} (mean peak {peak:.2f})")
        worst = max(worst, off)
    return int(not worst <= TOLERATED)


if __name__ == "__main__":
    sys.exit(main())
