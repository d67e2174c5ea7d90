"""A script says whether the weights are those that were read, and prints nothing that steers a terminal."""

import shutil
from pathlib import Path

import pytest
from checkpoints import tiny_bert
from run_again import run_again
from safetensors.torch import load_file, save_file
from transformers import BertModel

import attnscope as at

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
