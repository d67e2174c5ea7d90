"""Text that is cut already (--split), and tokens by their numbers (--ids), in every command."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import TOKENIZER_FILES, tiny_bert, tiny_translator
from transformers import AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer, BertForMaskedLM

from attnscope import demo

HEAD = ("--layer", "1", "--head", "2")
IDS = (2, 503, 372, 7, 510, 503, 3)
GIVEN = ",".join(map(str, IDS))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A masked model without any tokenizer file."""
    folder = tiny_bert(tmp_path_factory.mktemp("models") / "bare", BertForMaskedLM)
    for name in TOKENIZER_FILES:
        (folder / name).unlink()
    return folder


@pytest.fixture(scope="module")
def pieces() -> list[str]:
    """The pieces of the demo tokenizer by number."""
    tokenizer = AutoTokenizer.from_pretrained(demo.folder())
    return tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))


@pytest.fixture(scope="module")
def vocab(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> Path:
    file = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    file.write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return file


def document(result) -> dict:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


# token numbers


def test_exactly_these_tokens_are_read_and_shown_by_number(attnscope, bare: Path) -> None:
    told = document(attnscope("heads", "--ids", GIVEN, "-m", str(bare), *HEAD, "--json"))
    assert told["provenance"]["token_ids"] == list(IDS)
    labels = [token["label"] for token in told["query_tokens"]]
    assert labels == ["2", "503@1", "372", "7", "510", "503@5", "3"]
    model = AutoModel.from_pretrained(bare, attn_implementation="eager").eval()
    with torch.no_grad():
        own = model(torch.tensor([IDS]), output_attentions=True).attentions[1][0, 2]
    assert np.abs(np.array(told["weights"]) - own.numpy()).max() < 1e-5
    assert told["certificate"]["verdict"] == "certified"


def test_a_model_without_a_tokenizer_reads_no_text_and_says_what_it_reads(refused, bare: Path) -> None:
    refused("cannot read the tokenizer", "heads", "the door", "-m", str(bare), *HEAD, code=3)
    refused("--ids", "verify", "the door", "-m", str(bare), code=3)


COMMANDS = {
    "heads": HEAD,
    "an overview": (),
    "tsne": (*HEAD, "--max-iter", "300"),
    "report": (*HEAD, "--query", "@3", "--max-iter", "300"),
    "compare": ("--ids-b", "2,372,9,3", "--word", "372"),
    "two layers": ("--word", "@3", "--layer", "1", "--layer-b", "2"),
    "verify": (),
}
CALLED = {"an overview": "heads", "two layers": "compare"}


@pytest.mark.parametrize("spelled", [False, True], ids=["by number", "by a vocabulary"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reads_them_without_a_tokenizer(
    attnscope, bare, vocab, pieces, command, spelled
) -> None:
    options = COMMANDS[command]
    if spelled:
        options = (*(pieces[372] if each == "372" else each for each in options), "--vocab", str(vocab))
    name = CALLED.get(command, command)
    result = attnscope(name, "--ids", GIVEN, *options, "-m", str(bare), "--json")
    text = json.dumps(document(result), ensure_ascii=False)
    assert (f'"{pieces[510]}"' in text) == spelled


def test_a_vocabulary_may_be_json(attnscope, bare, pieces, tmp_path: Path) -> None:
    file = tmp_path / "vocab.json"
    file.write_text(json.dumps({piece: i for i, piece in enumerate(pieces) if i != 510}), encoding="utf-8")
    told = document(
        attnscope("heads", "--ids", GIVEN, "--vocab", str(file), "-m", str(bare), *HEAD, "--json")
    )
    read = [token["piece"] for token in told["query_tokens"]]
    assert read == [pieces[i] if i != 510 else "510" for i in IDS]  # what the file lacks is a number


def test_a_vocabulary_that_is_none_is_one_line(refused, bare, tmp_path) -> None:
    for name, content, says in (
        ("vocab.txt", b"", "is empty"),
        ("vocab.txt", b"\xff\xfe\n", "line 1, is not valid UTF-8"),
        ("vocab.json", b"{", "no JSON"),
        ("vocab.json", b"[1]", "numbers by token"),
        ("vocab.json", b'{"a": "b"}', "numbers by token"),
        ("vocab.json", b'{"a": -1}', "numbers by token"),
        ("vocab.json", b"[" * 100_000, "no JSON"),
    ):
        (tmp_path / name).write_bytes(content)
        refused(says, "heads", "--ids", GIVEN, "--vocab", name, "-m", str(bare), *HEAD)
    asked = ("heads", "--ids", "2,3", "-m", "no/model", "--vocab")  # before the model is sought
    refused("cannot read the vocabulary", *asked, "none.txt")
    (tmp_path / "two.txt").write_text("a\nb\n")
    refused("no/model", *asked, "two.txt", code=3)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("--ids 2,x", "--ids '2,x' is no list of token numbers"),
        ("--ids ,", "no list of token numbers"),
        ("--ids 2,-1", "no list of token numbers"),
        ("--ids 2,1.5", "no list of token numbers"),
        ("--ids 2,999999", "has no token 999999, its vocabulary is 0-"),
        (f"--ids {'2,' * 40}3", "41 tokens"),
        ("door --ids 2,3", "--ids is all that is read: leave TEXT out"),
        ("--ids 2,3 --pair a", "leave --pair out"),
        ("--ids 2,3 --split", "leave --split out"),
        ("--ids 2,3 --image x.png", "leave --image out"),
        ("--ids 2,3 --target x", "is no encoder-decoder: leave --target out"),
        ("--ids 2,3 --target-ids x", "--target-ids 'x' is no list"),
        ("--ids 2,3 --target-ids 2", "is no encoder-decoder: leave --target-ids out"),
        ("--ids 2,9,3 --words", "--by word needs a tokenizer with offsets"),
        ("--ids 2,9,3 --query 77", "no token 77 in the input: positions 0-2"),
        ("door --vocab x", "--vocab says how the tokens of --ids are spelled"),
        ("--split", "give a text to read, token numbers with --ids"),
        ("--split --image x.png", "--split is about the words of a text alone"),
    ],
)
def test_numbers_that_mean_nothing_are_exit_code_2(refused, bare: Path, asked: str, says: str) -> None:
    refused(says, "heads", *asked.split(), *HEAD, "-m", str(bare))


def test_too_many_are_cut_where_that_is_asked_for(attnscope, bare: Path) -> None:
    result = attnscope("heads", "--ids", "2," * 40 + "3", "--truncate", *HEAD, "-m", str(bare), "--json")
    assert len(document(result)["query_tokens"]) == 32
    assert "41 tokens: cut to the 32" in result.stderr


@pytest.fixture(scope="module", params=["bart"])
def wordless(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder-decoder without a tokenizer."""
    folder = tiny_translator(tmp_path_factory.mktemp("models") / request.param, request.param)
    for name in TOKENIZER_FILES:
        (folder / name).unlink()
    return folder


def test_an_encoder_decoder_reads_both_sides_by_number(attnscope, wordless: Path) -> None:
    common = (
        "heads",
        "--ids",
        "2,503,372,510,3",
        "-m",
        str(wordless),
        "--layer",
        "1",
        "--head",
        "1",
        "--json",
    )
    told = document(attnscope(*common, "--target-ids", "2,50,51", "--kind", "cross"))
    model = AutoModelForSeq2SeqLM.from_pretrained(wordless, attn_implementation="eager").eval()
    inputs = {
        "input_ids": torch.tensor([[2, 503, 372, 510, 3]]),
        "decoder_input_ids": torch.tensor([[2, 50, 51]]),
    }
    with torch.no_grad():
        own = model(**inputs, output_attentions=True).cross_attentions[1][0, 1]
    assert np.abs(np.array(told["weights"]) - own.numpy()).max() < 1e-5
    assert [token["id"] for token in told["query_tokens"]] == [2, 50, 51]
    written = document(attnscope(*common, "--kind", "decoder"))
    assert written["query_tokens"][0]["id"] == model.config.decoder_start_token_id
    assert len(document(attnscope(*common, "--kind", "encoder"))["query_tokens"]) == 5


def test_a_target_text_needs_a_tokenizer(refused, wordless: Path) -> None:
    common = ("heads", "--ids", "2,503,3", "-m", str(wordless), "--layer", "1", "--head", "1")
    refused("--target needs a tokenizer", *common, "--target", "we saw")
    refused("give one of the two", *common, "--target", "a", "--target-ids", "2")
    refused("has no token 99999", *common, "--target-ids", "2,99999")
    refused("choose one", *common, "--target-ids", "2", "--generate", "2")


# words that are given
