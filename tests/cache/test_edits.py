"""After an edit of anything that an answer was made with it is computed anew, and without one it is not."""

import hashlib
import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path

import pytest
import torch
import transformers
from checkpoints import bert_config, tiny_bert

import attnscope as program
from attnscope.model.source import digests
from attnscope.session.cache import entry

MEMORY = Path("/dev/shm")
FROM = "note: from the cache: "


def asked_of(folder: Path, *more: str) -> list[str]:
    return ["heads", "to be or not", "-m", str(folder), "-l", "1", "--head", "0", "--json", *more]


@pytest.fixture(params=["beside the tests", "in memory"])
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder on the disk, and one of a file system in memory."""
    if request.param == "beside the tests":
        yield tmp_path
        return
    if not os.access(MEMORY, os.W_OK):
        pytest.skip("no file system in memory")
    with tempfile.TemporaryDirectory(dir=MEMORY) as made:
        yield Path(made)


@pytest.mark.parametrize("large", [True, False])
def test_weights_that_are_edited_through_a_memory_map_are_read_anew(
    large, room: Path, attnscope, monkeypatch
) -> None:
    """Their page was stored to before, so that the times do not move; taken for large, and for small."""
    monkeypatch.setattr(digests, "SETTLED", -60.0)
    weights = tiny_bert(room / "bert") / "model.safetensors"
    monkeypatch.setattr(digests, "LARGE", weights.stat().st_size if large else 2**25)
    with weights.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        last = len(content) - 8
        content[last] ^= 1
        time.sleep(0.02)  # more than a tick of the clock
        first = attnscope(*asked_of(weights.parent))
        again = attnscope(*asked_of(weights.parent))
        assert (FROM in first.stderr, FROM in again.stderr) == (False, True)
        assert again.stdout == first.stdout
        content[last] ^= 1
        after = attnscope(*asked_of(weights.parent))
        assert FROM not in after.stderr
        told = [json.loads(each.stdout)["provenance"]["digest"] for each in (first, after)]
        assert told[0] != told[1] == "sha256:" + hashlib.sha256(content).hexdigest()
        assert FROM in attnscope(*asked_of(weights.parent)).stderr


def test_weights_that_are_written_to_while_they_are_read_are_not_kept(
    attnscope, place, tmp_path, monkeypatch
) -> None:
    """Through a map, on a file system that tells of nothing: the content before and after is compared."""
    monkeypatch.setattr(digests, "_kind", lambda handle: "tmpfs")
    from attnscope.session import entering

    weights, opened = tiny_bert(tmp_path / "bert") / "model.safetensors", entering.open_model
    before = weights.stat()

    def meanwhile(*given):
        found = opened(*given)
        found.model.checkpoint.digest.result()
        content = bytearray(weights.read_bytes())
        content[-8] ^= 1
        weights.write_bytes(content)
        os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
        return found

    with monkeypatch.context() as changed:
        changed.setattr(entering, "open_model", meanwhile)
        attnscope(*asked_of(weights.parent))
    assert not place.exists()
    attnscope(*asked_of(weights.parent))
    assert place.exists()


def test_of_a_model_in_shards_only_those_that_were_read_count(attnscope, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "bert")
    (folder / "model.safetensors").unlink()
    torch.manual_seed(0)
    transformers.BertModel(bert_config()).save_pretrained(folder, max_shard_size="20KB")
    index = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    read = {file for name, file in index.items() if "embeddings" in name or "layer.0." in name}
    unread = set(index.values()) - read
    asked = [each if each != "1" else "0" for each in asked_of(folder)]
    first = attnscope(*asked)
    _touched(folder / min(unread))
    again = attnscope(*asked)
    assert FROM in again.stderr
    assert again.stdout == first.stdout
    _touched(folder / min(read))
    assert FROM not in attnscope(*asked).stderr


def _touched(file: Path) -> None:
    """One bit of the last number is another one, the size and the time are not."""
    status, content = file.stat(), bytearray(file.read_bytes())
    content[-8] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_code_of_the_model_of_the_library_and_of_what_it_is_made_of_takes_part(
    attnscope, place, tmp_path
) -> None:
    attnscope(*asked_of(tiny_bert(tmp_path / "bert")))
    names = set()
    for file in place.rglob("*.capture"):
        with entry.open_entry(file, file.stem) as opened:
            names |= set(opened.part("witnesses").values["names"])
    library = Path(transformers.__file__).parent
    taken = (
        "models/bert/modeling_bert.py",
        "modeling_utils.py",
        "masking_utils.py",
        "integrations/sdpa_attention.py",
    )
    assert {f"code {library / each}" for each in taken} <= names
    assert f"code {torch.nn.functional.__file__}" in names
    assert "weights model.safetensors" in names


def test_an_edit_of_the_librarys_model_code_or_of_this_program_is_another_computation(tmp_path: Path) -> None:
    """Both are copies, of which all files but the edited ones are links; as whole processes."""
    packages = tmp_path / "packages"
    for package in (program, transformers):
        _linked(Path(package.__file__).parent, packages / Path(package.__file__).parent.name)
    bert = tiny_bert(tmp_path / "bert")
    environment = {
        **os.environ, "PYTHONPATH": str(packages), "ATTNSCOPE_CACHE": str(tmp_path / "kept"),
        "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip

    def ask() -> tuple[bool, str]:
        command = [sys.executable, "-m", "attnscope", *asked_of(bert)]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return FROM in done.stderr, done.stdout

    def edit(file: Path, here: str, there: str) -> None:
        """Under the same size and time; Python goes by these, so that its byte code has to go as well."""
        text, status = file.read_text(), file.stat()
        assert text.count(here) >= 1
        assert len(here) == len(there)
        file.unlink()
        file.write_text(text.replace(here, there, 1))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        Path(cache_from_source(str(file))).unlink(missing_ok=True)
        time.sleep(2.5)  # what was just written is not believed

    (_, first), (kept, again) = ask(), ask()
    assert kept
    assert again == first
    model = packages / "transformers" / "models" / "bert" / "modeling_bert.py"
    edit(model, "self.attention_head_size**-0.5", "self.attention_head_size**-0.4")
    (kept, edited), (kept_again, again) = ask(), ask()
    assert (kept, kept_again) == (False, True)
    assert again == edited != first
    own = packages / "attnscope" / "sdpa.py"
    edit(own, own.read_text()[3:13], own.read_text()[3:13].swapcase())
    kept, after = ask()
    assert not kept
    assert after == edited


def _linked(home: Path, made: Path) -> None:
    shutil.copytree(home, made, copy_function=os.symlink, ignore=shutil.ignore_patterns("__pycache__"))
