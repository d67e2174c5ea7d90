"""A damaged tokenizer, wherever that shows, is one line and exit code 3: no traceback, nothing of Rust."""

import base64
import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_tokenizers import BUILD
from transformers import AutoTokenizer

from attnscope import demo
from attnscope.errors import ModelUnavailableError, calling
from attnscope.model.inputs.text import Settled, Tokenizer, encode, gap_id
from attnscope.model.loading.config import open_tokenizer
from attnscope.model.source.find import Source

Table = dict[str, Any]


def table() -> Table:
    content: Table = json.loads((demo.folder() / "tokenizer.json").read_text("utf-8"))
    return content


def folder_with(tokenizer: Table | str | bytes, folder: Path) -> Path:
    """The demo's files with another tokenizer.json."""
    folder.mkdir()
    for name in ("config.json", "tokenizer_config.json"):
        shutil.copy(demo.folder() / name, folder)
    content = json.dumps(tokenizer) if isinstance(tokenizer, dict) else tokenizer
    (folder / "tokenizer.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def at(*path: str | int, value: Any) -> Callable[[Table], None]:
    """Puts `value` at one place of the table."""

    def change(content: Any) -> None:
        for step in path[:-1]:
            content = content[step]
        content[path[-1]] = value

    return change


def nested(depth: int) -> Table:
    inner: Table = {"type": "Lowercase"}
    for _ in range(depth):
        inner = {"type": "Sequence", "normalizers": [inner]}
    return inner


def split_by(pattern: str) -> Table:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def opening_with(token: str, **explained: Any) -> Table:
    pieces = [{"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    return {"type": "TemplateProcessing", "single": pieces, "pair": [], "special_tokens": explained}


BPE: Table = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
CHARSMAP = base64.b64encode(b"\xff\xff\xff\xff few").decode()
AT_LOADING = {
    "an id of 2^33": at("added_tokens", 0, "id", value=8589934592),
    "an id that is null": at("added_tokens", 2, "id", value=None),
    "steps too deep": at("normalizer", value=nested(200)),
    "an expression without end": at("pre_tokenizer", value=split_by("(")),
    "a merge of three": at("model", value={**BPE, "merges": [["a", "b", "ab"]]}),
    "a merge in the old spelling into nothing": at(
        "model", value={**BPE, "vocab": {"a": 0, "b": 1}, "merges": ["#version: 0.2", "a b"]}
    ),
    "a charsmap that claims too much": at(
        "normalizer", value={"type": "Precompiled", "precompiled_charsmap": CHARSMAP}
    ),
    "a charsmap deep in a sequence": at(
        "normalizer",
        value={
            "type": "Sequence",
            "normalizers": [{"type": "Precompiled", "precompiled_charsmap": CHARSMAP}],
        },
    ),
    "a special token that nothing explains": at("post_processor", value=opening_with("[NOPE]")),
    "a special token of two ids and one name": at(
        "post_processor",
        value=opening_with("[C]", **{"[C]": {"id": "[C]", "ids": [1, 2], "tokens": ["[C]"]}}),
    ),
    "pieces of no length": at("pre_tokenizer", value={"type": "FixedLength", "length": 0}),
}
NO_JSON: dict[str, str | bytes] = {
    "an empty file": "",
    "what is no UTF-8": b'{"version": "\xff\xfe"}',
    "brackets without end": "[" * 100_000,
    "a number of 10,000 digits": json.dumps(table())[:-1] + f', "x": {"9" * 10_000}}}',
}


def one_line_about_it(error: ModelUnavailableError, capfd: pytest.CaptureFixture[str]) -> None:
    assert error.exit_code == 3
    assert str(error).startswith("broken: ")
    assert "tokenizer" in str(error)
    assert "\n" not in str(error)
    assert capfd.readouterr().err == ""  # also what Rust writes by itself


@pytest.mark.parametrize("damage", AT_LOADING)
def test_damage_that_loading_shows_is_one_line(damage: str, tmp_path: Path, capfd) -> None:
    content = table()
    AT_LOADING[damage](content)
    with pytest.raises(ModelUnavailableError, match="cannot read the tokenizer: ") as raised:
        open_tokenizer(Source("m", "broken", folder_with(content, tmp_path / "broken")))
    one_line_about_it(raised.value, capfd)


@pytest.mark.parametrize("damage", NO_JSON)
def test_a_file_that_is_no_json_is_one_line(damage: str, tmp_path: Path, capfd) -> None:
    with pytest.raises(ModelUnavailableError, match="cannot read the tokenizer: ") as raised:
        open_tokenizer(Source("m", "broken", folder_with(NO_JSON[damage], tmp_path / "broken")))
    one_line_about_it(raised.value, capfd)


def without_unknown() -> Table:
    content = table()
    del content["model"]["vocab"]["[UNK]"]
    content["added_tokens"] = [each for each in content["added_tokens"] if each["content"] != "[UNK]"]
    return content


@pytest.mark.parametrize("model", [None, {"type": "WordLevel", "vocab": {}, "unk_token": "[UNK]"}])
def test_damage_that_only_a_text_shows_is_one_line(model: Table | None, tmp_path: Path, capfd) -> None:
    content = without_unknown()
    content["model"] = model or content["model"]
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": "[MASK]"}
    folder = folder_with(content, tmp_path / "broken")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = open_tokenizer(Source("m", "broken", folder))
    with pytest.raises(ModelUnavailableError, match=r"its tokenizer fails at this text: .*\[UNK\]") as raised:
        encode(tokenizer, ("the [MASK] opened, 猫猫猫!",), name="broken", limit=None)
    one_line_about_it(raised.value, capfd)


def test_damage_that_only_the_id_of_a_gap_shows_is_one_line(tmp_path: Path, capfd) -> None:
    words = {"type": "WordLevel", "vocab": {"the": 0, "door": 1}, "unk_token": "[UNK]"}
    content = table() | {"model": words, "post_processor": None, "added_tokens": []}
    folder = folder_with(content, tmp_path / "broken")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    tokenizer = open_tokenizer(Source("m", "broken", folder))
    with pytest.raises(ModelUnavailableError, match="fails at this text") as raised:
        gap_id(tokenizer, "<extra_id_0>")
    one_line_about_it(raised.value, capfd)


def test_sound_tokenizers_of_every_family_pass_the_door_and_answer_as_they_are(tmp_path: Path) -> None:
    for family, build in BUILD.items():
        folder = tmp_path / family
        build().save_pretrained(folder)
        own, behind = AutoTokenizer.from_pretrained(folder), open_tokenizer(Source("m", family, folder))
        text = "the door opened"
        assert behind(text)["input_ids"] == own(text)["input_ids"] != []
        assert (len(behind), behind.mask_token_id) == (len(own), own.mask_token_id)
        assert behind.decode(own(text)["input_ids"]) == own.decode(own(text)["input_ids"])
        assert getattr(behind, "no_such_thing", None) is None
        assert type(copy.copy(behind).own) is type(own)


def test_whatever_the_library_raises_is_one_line_that_names_the_model() -> None:
    class Own:
        def __call__(self, *texts: str, **options: Any) -> Any:
            raise AssertionError("of the library")

    with pytest.raises(ModelUnavailableError, match="m: its tokenizer fails at this text: of the library"):
        Tokenizer(Own(), "m")("a")


def test_interrupts_pass_the_door() -> None:
    for stop in (KeyboardInterrupt, SystemExit, GeneratorExit):
        with pytest.raises(stop), calling("reading"):
            raise stop


class Own:
    """Stands for a tokenizer of the library, which counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.mask_token = "[M]"

    @property
    def all_special_ids(self) -> list[int]:
        self.asked += 1
        return [1, 2]

    @property
    def broken(self) -> int:
        raise KeyError("[UNK]")

    def tokenize(self, text: str) -> list[str]:
        self.asked += 1
        return text.split()

    def __call__(self, *texts: str, **options: Any) -> tuple[str, ...]:
        return texts


def test_what_it_says_of_itself_is_asked_once_and_texts_are_read_every_time() -> None:
    own = Own()
    settled = Settled.of(Tokenizer(own, "a model"))
    assert [settled.all_special_ids for _ in range(3)] == [[1, 2]] * 3
    assert own.asked == 1
    assert [settled.tokenize("a b"), settled.tokenize("c")] == [["a", "b"], ["c"]]
    assert own.asked == 3
    assert settled("text") == ("text",)
    assert settled.own is own
    own.mask_token = "[N]"
    assert settled.mask_token == "[N]"  # not asked before
    own.mask_token = "[O]"
    assert settled.mask_token == "[N]"
    assert Tokenizer(own, "a model").mask_token == "[O]"


def test_it_fails_in_one_line_as_the_other_does_and_what_is_none_stays_what_it_is() -> None:
    settled = Settled.of(Tokenizer(Own(), "a model"))
    with pytest.raises(ModelUnavailableError, match="its tokenizer fails at broken"):
        _ = settled.broken
    with pytest.raises(AttributeError, match="Own has no other"):
        _ = settled.other
    assert Settled.of(None) is None
