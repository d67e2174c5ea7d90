"""What a run's numbers come from is told by the content of code: an edit is another run."""

import json
from pathlib import Path

import corpus_of_demo as demo
import pytest

from attnscope.errors import InputError
from attnscope.session.corpus import identity
from attnscope.session.corpus.identity import code_of

FILES = (
    "attnscope/sdpa.py", "attnscope/capture/run.py", "attnscope/render/look.py",
    "transformers/masking_utils.py", "transformers/integrations/sdpa_attention.py",
    "transformers/data/glue.py", "transformers/models/bert/modeling_bert.py",
    "transformers/models/open_clip/modeling_open_clip.py", "transformers/models/gpt2/modeling_gpt2.py",
    "model/modeling_own.py",
)  # fmt: skip
COUNTS = {*FILES} - {"attnscope/render/look.py", "transformers/data/glue.py"}
GPT2 = "transformers/models/gpt2/modeling_gpt2.py"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(identity, "_folder", lambda package: tmp_path / package)
    return tmp_path


@pytest.mark.parametrize("types", [("bert", "open-clip"), ("bert", "of-another-name")])
def test_an_edit_of_code_that_may_take_part_is_another_run_and_of_other_code_it_is_not(
    root: Path, types: tuple[str, str]
) -> None:
    config = {"model_type": types[0], "vision_config": {"model_type": types[1], "layers": [1, 2]}}
    (root / "model" / "config.json").write_text(json.dumps(config))
    first = code_of(root / "model")
    assert code_of(root / "model") == first
    for name in FILES:
        kept = (root / name).read_text()
        (root / name).write_text("edited")
        counts = name in COUNTS and (name != GPT2 or "of-another-name" in types)
        assert (code_of(root / "model") != first) == counts, name
        (root / name).write_text(kept)


@pytest.mark.parametrize("damage", [b"{", b"\xff\xfe", b"[1]", b'{"a":' * 3000 + b"1" + b"}" * 3000])
def test_a_configuration_that_cannot_be_read_is_left_to_whoever_loads_the_model(
    root: Path, damage: bytes
) -> None:
    (root / "model" / "config.json").write_bytes(damage)
    first = code_of(root / "model")
    (root / GPT2).write_text("edited")
    assert code_of(root / "model") != first


def test_a_run_that_was_begun_with_other_code_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("The door opened.\nIt is late.\n")
    demo.measure(file, tmp_path / "run", measures="entropy")
    monkeypatch.setattr("attnscope.session.corpus.identity.code_of", lambda _folder: "edited")
    with pytest.raises(InputError, match=r'belongs to another run: code is .* there and "edited" here'):
        demo.measure(file, tmp_path / "run", measures="entropy")
