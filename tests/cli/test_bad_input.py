"""Every mistake is answered by one line on standard error, its exit code, and nothing half-written."""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from checkpoints import save, tiny_bert, vocabulary_size
from safetensors.torch import load_file, save_file
from transformers import BertModel, GPT2Config, GPT2Model, Lfm2Config, Lfm2Model
from typer.main import get_command

from attnscope.cli.app import app
from attnscope.errors import InputError
from attnscope.render.saving import write

TEXT = "I was watching the [MASK] when it opened."
HEAD = ("--layer", "3", "--head", "2")


def refused(result, exit_code: int, *parts: str) -> None:
    assert result.exit_code == exit_code, result.stderr
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("attnscope: ")
    for part in parts:
        assert part in lines[0]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["", *HEAD], ["the text is empty"]),
        ([TEXT, "--pair", " "], ["one text of the pair is empty"]),
        ([TEXT, "--layer", "4"], ["no layer 4 in demo: layers 0-3, heads 0-11"]),
        ([TEXT, "--layer", "-5"], ["no layer -5 in demo"]),
        ([TEXT, "--head", "12"], ["no head 12 in demo: layers 0-3, heads 0-11"]),
        ([TEXT, "--layer", "three"], ["--layer 'three' is not a list"]),
        ([TEXT, *HEAD, "--query", "window"], ["no token 'window' in the input", "4 the", "10 [SEP]"]),
        ([TEXT, *HEAD, "--query", "11"], ["no token 11", "positions 0-10"]),
        (["the dog saw the door", *HEAD, "--query", "the"], ["the@1, the@4"]),
        ([TEXT, "--query", "horse"], ["no token 'horse' in the input"]),
        ([TEXT, "--query", "it", "--key", "horse"], ["no token 'horse' in the input"]),
        ([TEXT, "--show", "q"], ["--show needs one head"]),
        ([TEXT, *HEAD, "--device", "tpu"], ["unknown device 'tpu'"]),
        ([TEXT, *HEAD, "--device", "cuda:9"], ["no device cuda:9"]),
        ([TEXT, *HEAD, "--dtype", "int4"], ["unknown dtype 'int4'"]),
        (["door " * 200, *HEAD], ["202 tokens", "demo reads at most", "--truncate"]),
    ],
)
def test_bad_input_is_exit_code_2(attnscope, arguments: list[str], parts: list[str]) -> None:
    refused(attnscope("heads", *arguments, "-m", "demo"), 2, *parts)


@pytest.mark.parametrize(
    "name",
    ["picture.bmp", "picture", "folder.png", "file.txt/picture.png", "/proc/picture.png", "a" * 300 + ".png"],
)
def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    attnscope, name: str, tmp_path: Path
) -> None:
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file.txt").write_text("here first")
    before = sorted(tmp_path.rglob("*"))
    refused(attnscope("heads", TEXT, *HEAD, "-m", "no/model", "-o", str(tmp_path / name)), 2, "cannot write")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(
    attnscope, tmp_path: Path, monkeypatch
) -> None:
    target = tmp_path / "head.json"
    target.write_text("the old content")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    refused(attnscope("heads", TEXT, *HEAD, "-m", "demo", "-o", str(target)), 2, "No space left")
    assert [file.name for file in tmp_path.iterdir()] == ["head.json"]
    assert target.read_text() == "the old content"


@pytest.mark.parametrize("command", ["tsne", "report"])
def test_a_folder_of_its_own_that_cannot_be_is_refused_before_any_work(
    attnscope, command: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("outputs").write_text("a file")
    refused(attnscope(command, TEXT, "-m", "no/model"), 2, "cannot write 'outputs/", "is not a folder")
    refused(attnscope(command, TEXT, "-m", "no/model", "--json"), 3, "no/model")
    Path("outputs").unlink()
    refused(attnscope(command, TEXT, "-m", "no/model"), 3, "no/model")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_takes_no_file_is_refused_before_any_work() -> None:
    """As somebody who has no right to write there, which whoever runs the tests may well have."""
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from attnscope.errors import InputError\n"
        "from attnscope.render import files\n"  # before the folders of Python itself are closed
        "from attnscope.render.saving import check_targets\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "for target in map(Path, sys.argv[1:]):\n"
        "    try: check_targets([target], ('.png',))\n"
        "    except InputError as error: print(error)\n"
    )
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o711)
        closed, opened = place / "closed", place / "opened"
        for folder, mode in ((closed, 0o555), (opened, 0o777)):
            folder.mkdir()
            folder.chmod(mode)
        targets = [folder / file for folder in (closed, opened) for file in ("a.png", "sub/a.png")]
        done = subprocess.run(
            [sys.executable, "-c", code, *targets], capture_output=True, text=True, check=True, cwd="/"
        )
        assert done.stdout == "".join(f"cannot write '{each}': Permission denied\n" for each in targets[:2])
        assert [*closed.iterdir(), *opened.iterdir()] == []


def test_a_file_beyond_the_limit_leaves_the_old_one_and_no_folder(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "sub" / "dir" / "new.json"
    old.write_text("the old content")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        for target in (old, new):
            with pytest.raises(InputError, match=r"cannot write .*: File too large"):
                write(target, b"x" * 1001)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.rglob("*")) == [old]
    assert old.read_text() == "the old content"
    write(new, b"x" * 1001)
    assert new.stat().st_size == 1001


def test_a_folder_that_was_there_stays_when_a_write_fails(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "here").mkdir()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(InputError, match="No space left"):
        write(tmp_path / "here" / "new" / "a.json", b"x")
    assert list(tmp_path.rglob("*")) == [tmp_path / "here"]


def test_numbers_only_go_into_number_formats_for_an_outline(attnscope, tmp_path: Path) -> None:
    stored = tmp_path / "outline.json"
    stored.write_text(attnscope("model", "demo", "--json").stdout)
    refused(attnscope("show", str(stored), "-o", str(tmp_path / "a.png")), 2, ".npz, .csv, .json")
    assert list(tmp_path.iterdir()) == [stored]


def broken(bert: Path, folder: Path, how: str) -> Path:
    shutil.copytree(bert, folder)
    weights, config = folder / "model.safetensors", folder / "config.json"
    if how == "no config":
        config.unlink()
    elif how == "truncated":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif how == "corrupt":
        weights.write_bytes(b"\xff" * 5000)
    elif how == "pickle only":
        weights.rename(folder / "pytorch_model.bin")
    elif how == "no tokenizer":
        (folder / "tokenizer.json").unlink()
        (folder / "tokenizer_config.json").unlink()
    elif how == "weights lacking":
        kept = {
            name: weight
            for name, weight in load_file(weights).items()
            if "layer.2.attention.self.value" not in name
        }
        save_file(kept, weights, {"format": "pt"})
    return folder


@pytest.mark.parametrize(
    ("how", "part"),
    [
        ("no config", "no config.json"),
        ("truncated", "truncated or corrupt"),
        ("corrupt", "truncated or corrupt"),
        ("pickle only", "--allow-pickle"),
        ("no tokenizer", "cannot read the tokenizer"),
        ("weights lacking", "lacks weights that this run needs: encoder.layer.2.attention.self.value"),
    ],
)
def test_a_checkpoint_that_is_not_sound_is_exit_code_3(
    attnscope, bert: Path, tmp_path: Path, how, part
) -> None:
    folder = broken(bert, tmp_path / "broken", how)
    refused(attnscope("heads", TEXT, *HEAD, "-m", str(folder)), 3, part)


def test_weights_that_lack_after_the_chosen_layer_do_no_harm(attnscope, bert: Path, tmp_path: Path) -> None:
    folder = broken(bert, tmp_path / "broken", "weights lacking")
    assert attnscope("heads", TEXT, "--layer", "1", "--head", "2", "-m", str(folder)).exit_code == 0


def test_a_file_that_is_no_pickle_is_refused_in_words_even_when_pickles_are_allowed(
    attnscope, bert, tmp_path
) -> None:
    folder = broken(bert, tmp_path / "broken", "pickle only")
    refused(
        attnscope("heads", TEXT, *HEAD, "-m", str(folder), "--allow-pickle"), 3, "cannot read the weights"
    )


def test_a_model_that_is_not_there_is_exit_code_3(attnscope, tmp_path: Path) -> None:
    refused(attnscope("heads", TEXT, *HEAD, "-m", str(tmp_path / "nothing")), 3, "no folder")
    refused(attnscope("heads", TEXT, *HEAD, "-m", "nobody/nothing-at-all"), 3, "not in the local cache")


def test_a_mask_for_a_model_without_one_is_refused(attnscope, tmp_path: Path) -> None:
    model = GPT2Model(GPT2Config(vocab_size=2000, n_layer=4, n_head=4, n_embd=24, n_positions=32))
    folder = save(model, tmp_path / "gpt2")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("mask_token", None)
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    refused(attnscope("heads", TEXT, *HEAD, "-m", str(folder)), 2, "has no mask token")


def spoiled(command: str) -> list[tuple[list[str], list[str]]]:
    """Every way to misuse the options of a command, and what the one line says of it."""
    parameters = get_command(app).commands[command].params
    told = [f"(see attnscope {command} --help)"]
    required = [each for each in parameters if each.required]
    needed = [word for each in required if each.param_type_name == "option" for word in (each.opts[0], "a")]
    needed += ["--word", "a"] if command == "compare" else []
    flag = "--json" if any("--json" in each.opts for each in parameters) else "--quiet"
    ways = [
        (["--nonsense"], ["no such option: --nonsense", *told]),
        (["--nonsense=3"], ["no such option: --nonsense"]),
        (["-Z"], ["no such option: -Z"]),
        ([flag[:-1] + "m"], [f"no such option: {flag[:-1]}m", flag]),
        ([f"{flag}=3"], [f"option '{flag}' does not take a value"]),
        (["--\u202e\x9b31m\U000e0041\n"], [r"no such option: --\u202e\x9b31m\U000e0041"]),
    ]
    given = [each for each in parameters if each.param_type_name == "argument"]
    if all(each.nargs == 1 for each in given):  # any number of files may stand where there is more
        ways.append((["a", "b", "c", *needed], ["got unexpected extra argument"]))
    takes_value = [each for each in parameters if each.param_type_name == "option" and not each.is_flag]
    ways += [([each.opts[0]], [f"option '{each.opts[0]}' requires an argument"]) for each in takes_value]
    if required:
        ways.append(([], [f"missing {required[0].param_type_name} '", *told]))
    return ways


@pytest.mark.parametrize("command", sorted(get_command(app).commands))
def test_whatever_is_wrong_with_the_options_of_a_command_is_one_line(attnscope, command: str) -> None:
    for arguments, parts in spoiled(command):
        result = attnscope(command, *arguments)
        refused(result, 2, *parts)
        assert result.stderr.removesuffix("\n").isprintable()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["nonsense"], ["no such command 'nonsense'", "(see attnscope --help)"]),
        (["head"], ["no such command 'head'", "Did you mean 'heads'?"]),
        (["--nonsense"], ["no such option: --nonsense"]),
        (["\u202e\x1b[31m"], [r"no such command '\u202e\x1b[31m'"]),
        (["sdpa", "--scoring", "best"], ["invalid value for '--scoring'", "additive"]),
        (
            ["heads", TEXT, "--generate", "\u2066x\u009b"],
            ["invalid value for '--generate': it should be a valid"],
        ),
        (["heads", TEXT, "--show", "q", "--seed", "1"], ["no such option: --seed"]),
        (["heads", TEXT, "-o", "a\u202egnp.bmp"], [r"cannot write 'a\u202egnp.bmp'"]),
        (["show", "a\U000e0041\x9b.npz"], [r"cannot read 'a\U000e0041\x9b.npz': no such file"]),
        (["model", "\u202e/x"], [r"\u202e/x"]),
    ],
)
def test_what_is_wrong_before_a_command_runs_is_one_line_that_steers_nothing(
    attnscope, arguments, parts
) -> None:
    result = attnscope(*arguments)
    refused(result, 2, *parts)
    assert result.stderr.removesuffix("\n").isprintable()


def test_without_a_command_the_help_stands_on_standard_error(attnscope) -> None:
    result = attnscope()
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == attnscope("--help").stdout


def test_memory_that_does_not_suffice_is_exit_code_4(attnscope, monkeypatch) -> None:
    def too_much(*_: object, **__: object) -> None:
        torch.empty(2**48)

    monkeypatch.setattr("attnscope.session.reading.Reading.attention", too_much)
    refused(attnscope("heads", TEXT, *HEAD, "-m", "demo"), 4, "does not fit in memory")


def test_a_certificate_that_fails_is_exit_code_5_with_everything_shown_and_written(
    attnscope, tmp_path, monkeypatch
) -> None:
    from attnscope.sdpa import logits_over

    monkeypatch.setattr(
        "attnscope.verify.together.logits_over",
        lambda scores, scale, *others, **to: logits_over(scores, scale * 1.1, *others, **to),
    )
    target = tmp_path / "head.json"
    result = attnscope("heads", TEXT, *HEAD, "-m", "demo", "-o", str(target))
    assert result.exit_code == 5
    assert "FAILED" in result.stdout.upper()
    assert "do not trust" in result.stderr
    assert json.loads(target.read_text())["certificate"]["verdict"] == "failed"


def test_an_interrupted_run_is_exit_code_130(attnscope, monkeypatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("attnscope.session.reading.Reading.attention", interrupt)
    refused(attnscope("heads", TEXT, *HEAD, "-m", "demo"), 130, "interrupted")


def test_a_bug_keeps_its_traceback(attnscope, monkeypatch) -> None:
    def bug(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("attnscope.session.reading.Reading.attention", bug)
    with pytest.raises(ZeroDivisionError):
        attnscope("heads", TEXT, *HEAD, "-m", "demo")


def test_a_whole_model_that_lacks_a_layer_is_not_certified(attnscope, tmp_path: Path) -> None:
    folder = broken(tiny_bert(tmp_path / "sound", BertModel), tmp_path / "broken", "weights lacking")
    refused(attnscope("verify", TEXT, "-m", str(folder)), 3, "lacks weights")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["a\udcff b", *HEAD], ["not valid UTF-8"]),
        ([TEXT, *HEAD, "-m", ""], ["name of the model is empty"]),
        ([TEXT, "--layer", "1" * 5000], ["is not a list"]),
        ([TEXT, "--layer", "٣"], ["is not a list"]),
        ([TEXT, *HEAD, "--device", "cpu:"], ["unknown device 'cpu:'"]),
        ([TEXT, *HEAD, "-o", "a" * 300 + ".png"], ["cannot write", "too long"]),
        ([TEXT, *HEAD, "-o", "a" * 300 + "/b.png"], ["cannot write", "too long"]),
        ([TEXT, *HEAD, "--query", "it", "--show", "scores"], ["leave --show scores out"]),
        (["it has 4 doors and 4", *HEAD, "--query", "4"], ["4@3", "4@6"]),
    ],
)
def test_stranger_input_is_exit_code_2_too(
    attnscope, arguments: list[str], parts: list[str], tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = [] if "-m" in arguments else ["-m", "demo"]
    refused(attnscope("heads", *arguments, *model), 2, *parts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"num_attention_heads": 0}, "can be built from its config.json"),
        ({"dtype": "nope"}, "cannot read config.json"),
        ({"intermediate_size": 40}, "by its config"),
    ],
)
def test_a_config_that_contradicts_itself_or_the_weights_is_exit_code_3(
    attnscope, bert, tmp_path, change, part
) -> None:
    folder = broken(bert, tmp_path / "broken", "not at all")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **change}))
    refused(attnscope("heads", TEXT, *HEAD, "-m", str(folder)), 3, part)


def test_a_tokenizer_that_is_larger_than_the_embeddings_is_refused(attnscope, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "small", BertModel, vocab_size=9)
    refused(attnscope("heads", "the door", *HEAD, "-m", str(folder)), 3, "its embeddings end at 8")


def test_an_index_that_points_outside_of_the_folder_is_refused(attnscope, bert: Path, tmp_path: Path) -> None:
    folder = broken(bert, tmp_path / "broken", "not at all")
    (folder / "model.safetensors").rename(tmp_path / "outside.safetensors")
    index = {"weight_map": {"embeddings.word_embeddings.weight": "../outside.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(attnscope("heads", TEXT, *HEAD, "-m", str(folder)), 3, "is not a file beside it")


@pytest.mark.parametrize(
    ("command", "layer", "part"),
    [
        ("heads", "0", "layer 0 has no attention in {}: layers 1, 3"),
        ("heads", "1-2", "layer 2 has no attention in {}: layers 1, 3"),
        ("heads", "4", "no layer 4 in {}: layers 1, 3"),
        ("model", "2", "layer 2 has no attention in {} (decoder): layers 1, 3"),
        ("compare", "2", "layer 2 has no attention in {}: layers 1, 3"),
    ],
)
def test_a_layer_without_attention_is_told_from_one_that_is_not_there(
    attnscope, hybrid: str, command: str, layer: str, part: str
) -> None:
    given = {"heads": [TEXT, "-m", hybrid], "model": [hybrid]}
    given["compare"] = ["the dog", "a dog", "--word", "dog", "-m", hybrid]
    refused(attnscope(command, *given[command], "--layer", layer), 2, part.format(hybrid))


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two layers of convolution, and two with attention: 1 and 3."""
    config = Lfm2Config(
        vocab_size=vocabulary_size(), hidden_size=24, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=32,
        layer_types=["conv", "full_attention", "conv", "full_attention"],
    )  # fmt: skip
    return str(save(Lfm2Model(config), tmp_path_factory.mktemp("hybrid")))


def test_a_kernel_that_the_model_cannot_run_is_refused_with_one_that_it_can(attnscope, hybrid: str) -> None:
    given = ("heads", TEXT, "-m", hybrid, "--attn", "flash_attention_2")
    refused(attnscope(*given), 2, "cannot run with --attn flash_attention_2: ", "; --attn eager runs always")


def test_compare_refuses_a_block_that_it_would_not_look_at(attnscope, bert: Path) -> None:
    given = ("compare", "the dog", "a dog", "--word", "dog", "-m", str(bert), "--block", "1")
    refused(attnscope(*given), 2, "compare looks at block 0 of a layer: leave --block out")
