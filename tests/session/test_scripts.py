"""Claims computed again by the scripts that they are saved as, in a process that cannot import attnscope."""

import ast
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import resealed
import torch
import transformers as hf
from checkpoints import save, tiny_bert, tiny_translator, vocabulary_size
from safetensors.torch import load_file, save_file
from transformers import BertModel

import attnscope as at
from attnscope import demo
from attnscope.errors import InputError
from attnscope.results import Ablation, Composition, Finding, Flow, HeadAttention, Result

_RUNS_THEM = """
import contextlib, io, json, runpy, sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "attnscope":
            raise ImportError("attnscope cannot be imported here")

sys.meta_path.insert(0, Refusing())
told = {}
for script, *options in json.loads(sys.argv[1]):
    sys.argv, out, code = [script, *options], io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as ended:
            code = ended.code
    told[script] = code, out.getvalue()
print(json.dumps(told))
"""


class Ended(NamedTuple):
    """How a script ended, and what it printed."""

    code: int | None
    said: str

    @property
    def verdict(self) -> str:
        return self.said.rstrip().rpartition("\n")[2]


def run_again(scripts: Mapping[Path, Sequence[str]]) -> dict[Path, Ended]:
    """All of these scripts with their options, in an isolated interpreter that refuses attnscope."""
    asked = json.dumps([[str(script), *options] for script, options in scripts.items()])
    command = [sys.executable, "-I", "-c", _RUNS_THEM, asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    return {Path(script): Ended(*told) for script, told in json.loads(done.stdout).items()}


TEXT, PAIR = "The small door opened when the cat came in.", "It was cold."


def tiny_causal(folder: Path, family: str) -> Path:
    """A seeded decoder of 3 layers and 4 heads; those of Llama read 2 key heads, with rotary positions."""
    torch.manual_seed(3)
    sizes = {"vocab_size": vocabulary_size(), "initializer_range": 0.4, "bos_token_id": 2, "eos_token_id": 3}
    if family == "gpt2":
        model = hf.GPT2LMHeadModel(hf.GPT2Config(n_layer=3, n_head=4, n_embd=24, n_positions=40, **sizes))
    else:
        grouped = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
        deep = {"num_hidden_layers": 3, "hidden_size": 24, "intermediate_size": 40}
        model = hf.LlamaForCausalLM(hf.LlamaConfig(**grouped, **deep, max_position_embeddings=40, **sizes))
    return save(model, folder)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {
        "bert": tiny_bert(folder / "bert", hf.BertForMaskedLM),
        "headless": tiny_bert(folder / "headless"),
        "gpt2": tiny_causal(folder / "gpt2", "gpt2"),
        "llama": tiny_causal(folder / "llama", "llama"),
        "bart": tiny_translator(folder / "bart"),
    }


def claims(models: dict[str, Path]) -> Iterator[tuple[str, Result]]:
    """Every kind of claim of every model, by a name."""
    bert = at.load(str(models["bert"]))
    yield "head of bert", bert.read(TEXT).head(2, 3)
    yield "head of a pair", bert.read(TEXT, pair=PAIR).head(4, 1)
    for family in ("gpt2", "llama"):
        yield f"head of {family}", at.load(str(models[family])).read(TEXT).head(2, 3)
    bart = at.load(str(models["bart"]))
    yield "cross head of bart", bart.read(TEXT, target=PAIR).head(2, 5, kind="cross")
    said = bert.read(TEXT)
    yield "pair found in bert", said.find("opened", "door", controls=7, seed=5)
    yield "spans found in bert", said.find("the cat", "The small door", controls=7, seed=5)
    yield "likeness in bert", said.find(like="L3H1", controls=5)
    yield (
        "words found in bert",
        bert.read("The doorways opened in it.").find(pattern="previous", controls=4, words=True),
    )
    yield "pattern without special tokens", said.find(pattern="next", special="renormalise", controls=4)
    again = at.load(str(models["llama"])).read("The door and the door opened, the door fell.")
    yield "pattern found in llama", again.find(pattern="induction", controls=6, layers="1-2")
    crossing = bart.read(TEXT, target=PAIR)
    yield "span found across bart", crossing.find(2, "small door", kind="cross", controls=6)
    yield "heads of bert taken away", bert.read("The [MASK] opened.").ablate("1,3", "0,2")
    filled = bert.read("The small [MASK] opened the door.")
    yield "means in bert", filled.ablate(2, 1, replacement="mean", controls=4, seed=3)
    yield "another text in bert", filled.ablate(2, 1, replacement="The old [MASK] closed the box.")
    said = at.load(str(models["gpt2"])).read("The small door")
    yield "heads of gpt2 taken away", said.ablate("1-2", "0,3")
    yield "heads of bart taken away", crossing.ablate(2, "1,4", kind="cross")
    yield "flow in bert", filled.flow("[MASK]")
    yield "flow in gpt2", at.load(str(models["gpt2"])).read(TEXT).flow("cat", layers="0-1")
    yield "flow without an answer", at.load(str(models["headless"])).read(TEXT).flow("door")
    for family in ("bert", "llama"):
        yield f"heads of {family} composed", at.load(str(models[family])).composition(draws=5, seed=3)
    yield "two heads of gpt2 composed", at.load(str(models["gpt2"])).composition(1, 2, through="key", draws=4)
    yield "head of the demo", at.load("demo").read(TEXT).head(1, 2)


def forged(result: Result, folder: Path) -> Result:
    """The same with one figure of its file changed, by somebody who wrote its hashes anew."""
    if isinstance(result, HeadAttention):  # which is computed again where its file is read
        weights = result.weights.copy()
        weights[1, 2] += 0.01
        return replace(result, weights=weights)
    told = json.loads(result.save(folder / "own.json").read_text("utf-8"))
    if isinstance(result, Finding):
        told["controls"]["mean"][1][2] += 0.01
    elif isinstance(result, Ablation):
        head = told["heads"][1 % len(told["heads"])]
        head["change"] += 0.01
        head["after"] = head["before"] * math.exp(head["change"])  # or it would be refused where it is read
    elif isinstance(result, Composition):
        told["scores"][0][int(np.nanargmax(result.scores[0] - result.chance[0]))] += 0.01
    else:
        assert isinstance(result, Flow)
        told["ablated"]["effects"][int(np.nanargmax(result.ablated.effects))] += 0.01
    (folder / "forged.json").write_text(json.dumps(resealed.document(told)), "utf-8")
    return at.open(folder / "forged.json")


@pytest.fixture(scope="module")
def ended(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """How the scripts of all claims end, and those of the same claims with a figure changed."""
    folder = tmp_path_factory.mktemp("scripts")
    scripts: dict[Path, list[str]] = {}
    for name, result in claims(models):
        options = ["--model", str(demo.folder())] if "demo" in name else []
        scripts[result.save(folder / f"{name}.py")] = options
        scripts[forged(result, folder).save(folder / f"forged {name}.py")] = options
    alone = folder / "demo without its folder.py"
    alone.write_bytes((folder / "head of the demo.py").read_bytes())
    return {script.stem: told for script, told in run_again({**scripts, alone: []}).items()}


def test_every_claim_is_computed_again_without_attnscope(ended: dict[str, Ended]) -> None:
    own = {name: told for name, told in ended.items() if not name.startswith(("forged", "demo"))}
    assert len(own) == 24
    for name, told in own.items():
        assert told.code == 0, f"{name}: {told.said}"
        assert told.verdict.startswith("as shown: "), name


def test_a_figure_that_was_changed_in_the_file_is_shown_as_off(ended: dict[str, Ended]) -> None:
    changed = {name: told for name, told in ended.items() if name.startswith("forged")}
    assert len(changed) == 24
    for name, told in changed.items():
        assert told.code == 1, f"{name}: {told.said}"
        assert told.verdict.startswith("OFF: 1 of "), name
        assert sum(line.endswith("OFF") for line in told.said.splitlines()) == 1, name


def test_a_script_of_the_demo_asks_for_its_folder(ended: dict[str, Ended]) -> None:
    told = ended["demo without its folder"]
    assert told.code == 2
    assert told.verdict.endswith("--model .../site-packages/attnscope/demo/encoder")


def test_a_script_is_plain_python_that_holds_what_was_run(models: dict[str, Path], tmp_path: Path) -> None:
    result = at.load(str(models["bert"])).read(TEXT, pair=PAIR).head(4, 1)
    source = result.save(tmp_path / "again.py").read_text("utf-8")
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(source))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    own = {"argparse", "collections", "contextlib", "hashlib", "math", "sys", "typing"}
    assert imported == own | {"torch", "transformers"}
    assert f"'token_type_ids': {[0] * 12 + [1] * 6}"[:60] in source
    assert str(models["bert"]) in source


def test_what_a_text_holds_stays_within_its_literal(models: dict[str, Path], tmp_path: Path) -> None:
    text = 'The \'door\' """ \x1b[31m opened\u202e \\ {}.\nexit()'
    result = at.load(str(models["bert"])).read(text).head(1, 2)
    source = result.save(tmp_path / "again.py").read_text("utf-8")
    assert all(line.isprintable() for line in source.splitlines())
    told = next(each for each in ast.parse(source).body if isinstance(each, ast.AnnAssign))
    shown = ast.literal_eval(told.value)
    assert shown["text"] == text
    assert shown["inputs"]["input_ids"] == list(result.query_tokens.ids)


def test_what_cannot_be_computed_plainly_has_no_script(models: dict[str, Path], tmp_path: Path) -> None:
    reading = at.load("demo").read("The [MASK] opened.")
    with pytest.raises(InputError, match=r"the name must end in \.png, .*\.json, \.html"):
        reading.overview().save(tmp_path / "again.py")
    with pytest.raises(InputError, match="no script: a link is cut within the softmax"):
        reading.ablate(1, 2, link="[MASK]->opened").save(tmp_path / "again.py")
    joined = reading.find(pattern="next", words=True, special="hide", controls=2)
    with pytest.raises(InputError, match="no script: its tokens are joined to words, and special ones left"):
        joined.save(tmp_path / "again.py")
    assert list(tmp_path.iterdir()) == []


ODD = "The door\x9b2J opened."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("models") / "bert")


def test_weights_that_were_changed_are_said_and_nothing_is_compared(folder: Path, tmp_path: Path) -> None:
    script = at.load(str(folder)).read(ODD).head(1, 2).save(tmp_path / "again.py")
    changed, sharded = (Path(shutil.copytree(folder, tmp_path / name)) for name in ("changed", "sharded"))
    weights = load_file(changed / "model.safetensors")
    weights["encoder.layer.4.output.dense.bias"][3] += 1e-3  # which no weight of layer 1 hangs on
    save_file(weights, changed / "model.safetensors", {"format": "pt"})
    model = BertModel.from_pretrained(sharded)
    (sharded / "model.safetensors").unlink()
    model.save_pretrained(sharded, max_shard_size="20KB")
    assert len(list(sharded.glob("*.safetensors"))) > 1
    names = {name: tmp_path / f"{name}.py" for name in ("own", "other", "shards")}
    for copy in names.values():
        shutil.copy(script, copy)
    told = run_again(
        {
            names["own"]: [],
            names["other"]: ["--model", str(changed)],
            names["shards"]: ["--model", str(sharded)],
        }
    )
    own, other, shards = (told[names[name]] for name in ("own", "other", "shards"))
    assert own.code == 0
    assert own.said.startswith("weights: sha256:")
    assert own.said.partition("\n")[0].endswith(", as they were read")
    assert other.code == 2
    assert other.said.startswith(
        f"cannot be repeated: {changed}: its weights are not those that were read: sha256:"
    )
    assert other.said.count("\n") == 1
    assert shards.code == 0, shards.said
    assert shards.said.startswith("weights: not checked, they are no single file of which a hash was kept\n")
    assert shards.verdict.startswith("as shown: ")
    assert all(line.isprintable() for each in told.values() for line in each.said.splitlines())
