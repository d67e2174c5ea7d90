"""What comes from the cache is to the byte what the model would have answered, and needs no library."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from checkpoints import tiny_bert

from attnscope.session.cache import keeping, memory

TEXT = "The woman opened the door, and the dog ran out."
FROM = "note: from the cache: "
FAMILIES = {
    "demo": (
        ["--head", "2"],
        [
            ["--head", "-1", "--query", "door"],
            ["--head", "3", "--words"],
            ["--head", "3", "--special", "renormalise", "--json"],
            ["--head", "0", "--terms", "--json"],
            ["--head", "1", "--dims", "--query", "dog", "--key", "door", "--json"],
            ["--head", "1", "--show", "v"],
        ],
    ),
    "demo-causal": (["--head", "0"], [["--head", "1", "--dims", "--json"], ["--head", "1", "--json"]]),
    "demo-translate": (
        ["--head", "0", "--kind", "cross"],
        [["--head", "1", "--kind", "cross", "--terms"], ["--head", "1", "--kind", "cross", "--json"]],
    ),
}


def told(stderr: str) -> list[str]:
    """What was said, but for where the answer comes from."""
    return [line for line in stderr.splitlines() if not line.startswith(FROM)]


@pytest.mark.parametrize("model", FAMILIES)
def test_another_question_about_a_head_is_answered_from_the_cache_to_the_byte(model, attnscope) -> None:
    first, others = FAMILIES[model]
    asked = ["heads", TEXT, "-m", model, "-l", "1"]
    assert FROM not in attnscope(*asked, *first).stderr
    for other in others:
        kept, made = attnscope(*asked, *other), attnscope(*asked, *other, "--no-cache")
        assert (FROM in kept.stderr, FROM in made.stderr) == (True, False), other
        assert (kept.stdout, kept.exit_code) == (made.stdout, made.exit_code), other
        assert told(kept.stderr) == told(made.stderr), other


def test_several_heads_at_a_glance_are_answered_from_the_cache_and_each_of_them_alone(attnscope) -> None:
    asked = ["heads", TEXT, "-m", "demo", "-l", "0,2"]
    attnscope(*asked, "--measure", "entropy,distance")
    attnscope(*asked, "--grid")
    again = [
        ["-l", "0,2", "--measure", "entropy,distance", "--json"],
        ["-l", "0,2", "--measure", "entropy,distance", "--query", "dog"],
        ["-l", "0,2", "--grid"],
        ["-l", "2", "--head", "3", "--json"],
    ]
    for other in again:
        arguments = ["heads", TEXT, "-m", "demo", *other]
        kept, made = attnscope(*arguments), attnscope(*arguments, "--no-cache")
        assert FROM in kept.stderr, other
        assert kept.stdout == made.stdout, other


def test_a_map_and_its_pictures_from_the_cache_are_the_same_files(attnscope, tmp_path: Path) -> None:
    attnscope("heads", TEXT, "-m", "demo", "-l", "1", "--head", "2")
    for command, suffix in (("heads", "png"), ("heads", "npz"), ("tsne", "svg")):
        kept, made = (tmp_path / f"{name}.{suffix}" for name in ("kept", "made"))
        arguments = [command, TEXT, "-m", "demo", "-l", "1", "--head", "1", "-o"]
        assert FROM in attnscope(*arguments, str(kept)).stderr
        assert FROM not in attnscope(*arguments, str(made), "--no-cache").stderr
        assert kept.read_bytes() == made.read_bytes()


WITHOUT = """
import sys
libraries = {"torch", "transformers", "tokenizers", "huggingface_hub", "safetensors"}
from attnscope.session.cache import memory
memory.surroundings = lambda: "the same"
from attnscope.cli.app import app
app(sys.argv[1:], standalone_mode=False)
print(sorted(libraries & set(sys.modules)))
"""


def test_a_second_question_imports_neither_torch_nor_transformers_nor_the_hub(attnscope, monkeypatch) -> None:
    monkeypatch.setattr(memory, "surroundings", lambda: "the same")
    asked = ["heads", "The door.", "-m", "demo", "-l", "0", "--head"]
    attnscope(*asked, "0")
    command = [sys.executable, "-c", WITHOUT, *asked, "1", "--query", "door"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert FROM in done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_question_that_is_not_kept_is_computed_and_then_is(attnscope) -> None:
    asked = ["heads", TEXT, "-m", "demo"]
    attnscope(*asked, "-l", "1", "--head", "0")
    assert FROM not in attnscope(*asked, "-l", "0", "--head", "0").stderr
    assert FROM in attnscope(*asked, "-l", "0", "--head", "0").stderr
    assert FROM in attnscope(*asked, "-l", "1", "--head", "0").stderr


def test_a_wrong_name_is_refused_from_the_cache_in_the_same_words(attnscope) -> None:
    asked = ["heads", TEXT, "-m", "demo", "-l", "1", "--head"]
    attnscope(*asked, "0")
    for wrong in (["99"], ["0", "--query", "nowhere"]):
        kept, made = attnscope(*asked, *wrong), attnscope(*asked, *wrong, "--no-cache")
        assert kept.exit_code == made.exit_code == 2
        assert told(kept.stderr) == told(made.stderr)


def test_without_the_cache_nothing_is_read_or_written(attnscope, place: Path, monkeypatch) -> None:
    asked = ["heads", TEXT, "-m", "demo", "-l", "1", "--head", "0"]
    attnscope(*asked, "--no-cache")
    assert not place.exists()
    attnscope(*asked)
    monkeypatch.setenv("ATTNSCOPE_CACHE", "off")
    assert FROM not in attnscope(*asked).stderr


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return tiny_bert(tmp_path / "bert")


def asked_of(folder: Path) -> list[str]:
    return ["heads", "to be or not", "-m", str(folder), "-l", "1", "--head", "0", "--json"]


def test_weights_that_changed_under_the_same_size_and_time_are_read_anew(attnscope, bert: Path) -> None:
    before = attnscope(*asked_of(bert))
    assert FROM in attnscope(*asked_of(bert)).stderr
    weights = bert / "model.safetensors"
    status, content = weights.stat(), bytearray(weights.read_bytes())
    floats = np.frombuffer(content, np.float32, offset=len(content) % 4 + len(content) // 8 * 4 - 4)
    floats[:] = floats[::-1].copy()
    weights.write_bytes(content)
    os.utime(weights, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert weights.stat().st_size == status.st_size
    assert weights.stat().st_mtime_ns == status.st_mtime_ns
    after = attnscope(*asked_of(bert))
    assert FROM not in after.stderr
    digests = {json.loads(each.stdout)["provenance"]["digest"] for each in (before, after)}
    assert len(digests) == 2


def test_a_copy_of_the_same_weights_is_known_by_its_content(attnscope, bert: Path) -> None:
    before = attnscope(*asked_of(bert))
    moved = bert.parent / "again"
    shutil.copytree(bert, moved, copy_function=shutil.copyfile)
    shutil.rmtree(bert)
    shutil.move(moved, bert)
    after = attnscope(*asked_of(bert))
    assert FROM in after.stderr
    assert after.stdout == before.stdout


def test_another_config_or_tokenizer_is_another_model(attnscope, bert: Path) -> None:
    attnscope(*asked_of(bert))
    for name, here, there in (("config.json", "1e-12", "1e-3"), ("tokenizer.json", '"to"', '"tu"')):
        content = (bert / name).read_text()
        assert here in content
        (bert / name).write_text(content.replace(here, there))
        assert FROM not in attnscope(*asked_of(bert)).stderr
        (bert / name).write_text(content)
        assert FROM in attnscope(*asked_of(bert)).stderr  # by content: it is again what it was


def test_nothing_is_kept_where_the_model_draws_by_lot(attnscope, place: Path, monkeypatch) -> None:
    import torch

    from attnscope.session import reading

    read = reading.read
    monkeypatch.setattr(reading, "read", lambda *given: (torch.rand(1), read(*given))[1])
    asked = ["heads", TEXT, "-m", "demo", "-l", "1", "--head", "0"]
    attnscope(*asked)
    assert not place.exists()


def test_nothing_is_kept_of_weights_that_change_meanwhile(attnscope, place, bert, monkeypatch) -> None:
    keep = keeping.Keeper.keep

    def touched(self) -> None:
        weights = bytearray((bert / "model.safetensors").read_bytes())
        weights[-8] ^= 1
        (bert / "model.safetensors").write_bytes(weights)
        keep(self)

    monkeypatch.setattr(keeping.Keeper, "keep", touched)
    attnscope(*asked_of(bert))
    assert not place.exists()


def test_what_is_measured_of_random_tokens_is_not_taken_for_the_text(attnscope) -> None:
    asked = ["heads", TEXT, "-m", "demo-causal", "-l", "1"]
    attnscope(*asked, "--measure", "entropy,induction")
    one = [*asked, "--head", "0", "--json"]
    assert attnscope(*one).stdout == attnscope(*one, "--no-cache").stdout


def test_a_certificate_that_failed_is_not_kept(attnscope, place: Path, monkeypatch) -> None:
    from attnscope.verify import certificate

    monkeypatch.setattr(certificate, "_judged", _failing(certificate._judged))
    assert attnscope("heads", TEXT, "-m", "demo", "-l", "1", "--head", "0").exit_code == 5
    assert not place.exists()


def _failing(judged):
    from dataclasses import replace

    from attnscope.results import Verdict

    return lambda *given: replace(judged(*given), verdict=Verdict.FAILED, reason="on purpose")
