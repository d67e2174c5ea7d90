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


def refused(result, exit_code: int, *parts: str) -> None:
    assert result.exit_code == exit_code, result.stderr
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, result.stderr
    for part in parts:
        assert part in lines[0]


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


def test_a_model_without_a_tokenizer_reads_no_text_and_says_what_it_reads(attnscope, bare: Path) -> None:
    refused(attnscope("heads", "the door", "-m", str(bare), *HEAD), 3, "cannot read the tokenizer", "--ids")
    refused(attnscope("verify", "the door", "-m", str(bare)), 3, "--ids")


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


def test_blanks_are_filled_where_a_vocabulary_names_the_mask(attnscope, bare, vocab, pieces) -> None:
    mask = pieces.index("[MASK]")
    ids = f"{IDS[0]} 503 {mask} 372 {IDS[-1]}"
    told = document(attnscope("predict", "--ids", ids, "--vocab", str(vocab), "-m", str(bare), "--json"))
    (blank,) = told["blanks"]
    assert blank["position"] == 2
    model = BertForMaskedLM.from_pretrained(bare).eval()
    with torch.no_grad():
        best = int(model(torch.tensor([[IDS[0], 503, mask, 372, IDS[-1]]])).logits[0, 2].argmax())
    assert blank["guesses"][0]["id"] == best
    refused(attnscope("predict", "--ids", ids, "-m", str(bare)), 2, "no [MASK]")


def test_a_vocabulary_makes_special_tokens_special(attnscope, bare, vocab) -> None:
    common = ("heads", "--ids", GIVEN, "-m", str(bare), *HEAD, "--json", "--special", "renormalise")
    told = document(attnscope(*common, "--vocab", str(vocab)))
    assert [token["id"] for token in told["row_tokens"]] == list(IDS[1:-1])


def test_a_vocabulary_may_be_json(attnscope, bare, pieces, tmp_path: Path) -> None:
    file = tmp_path / "vocab.json"
    file.write_text(json.dumps({piece: i for i, piece in enumerate(pieces) if i != 510}), encoding="utf-8")
    told = document(
        attnscope("heads", "--ids", GIVEN, "--vocab", str(file), "-m", str(bare), *HEAD, "--json")
    )
    read = [token["piece"] for token in told["query_tokens"]]
    assert read == [pieces[i] if i != 510 else "510" for i in IDS]  # what the file lacks is a number


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("vocab.txt", b"", "is empty"),
        ("vocab.txt", b"\xff\xfe\n", "line 1, is not valid UTF-8"),
        ("vocab.json", b"{", "no JSON"),
        ("vocab.json", b"[1]", "numbers by token"),
        ("vocab.json", b'{"a": "b"}', "numbers by token"),
        ("vocab.json", b'{"a": -1}', "numbers by token"),
        ("vocab.json", b"[" * 100_000, "no JSON"),
        ("vocab.txt", None, "cannot read the vocabulary"),
    ],
)
def test_a_vocabulary_that_is_none_is_one_line(attnscope, bare, tmp_path, name, content, part) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    refused(
        attnscope("heads", "--ids", GIVEN, "--vocab", str(tmp_path / name), "-m", str(bare), *HEAD), 2, part
    )


def test_a_vocabulary_is_looked_at_before_the_model(attnscope, tmp_path: Path) -> None:
    file = tmp_path / "vocab.txt"
    refused(attnscope("heads", "--ids", "2,3", "--vocab", str(file), "-m", "no/model"), 2, "vocabulary")
    file.write_text("a\nb\n")
    refused(attnscope("heads", "--ids", "2,3", "--vocab", str(file), "-m", "no/model"), 3, "no/model")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--ids", "2,x"], ["--ids '2,x' is no list of token numbers"]),
        (["--ids", ""], ["no list of token numbers"]),
        (["--ids", "2,-1"], ["no list of token numbers"]),
        (["--ids", "2,1.5"], ["no list of token numbers"]),
        (["--ids", "2,999999"], ["has no token 999999, its vocabulary is 0-"]),
        (["--ids", "2," * 40 + "3"], ["41 tokens", "reads at most 32", "--truncate"]),
        (["the door", "--ids", "2,3"], ["--ids is all that is read: leave TEXT out"]),
        (["--ids", "2,3", "--pair", "a"], ["leave --pair out"]),
        (["--ids", "2,3", "--split"], ["leave --split out"]),
        (["--ids", "2,3", "--image", "x.png"], ["leave --image out"]),
        (["--ids", "2,3", "--target", "x"], ["is no encoder-decoder: leave --target out"]),
        (["--ids", "2,3", "--target-ids", "x"], ["--target-ids 'x' is no list"]),
        (["--ids", "2,3", "--target-ids", "2"], ["is no encoder-decoder: leave --target-ids out"]),
        (["--ids", "2,9,3", "--words"], ["--by word needs a tokenizer with offsets"]),
        (["--ids", "2,9,3", "--query", "77"], ["no token 77 in the input: positions 0-2"]),
        (["the door", "--vocab", "x"], ["--vocab says how the tokens of --ids are spelled"]),
        (["--split"], ["give a text to read, token numbers with --ids"]),
        (["--split", "--image", "x.png"], ["--split is about the words of a text alone"]),
    ],
)
def test_numbers_that_mean_nothing_are_exit_code_2(attnscope, bare: Path, arguments, parts) -> None:
    refused(attnscope("heads", *arguments, *HEAD, "-m", str(bare)), 2, *parts)


def test_too_many_are_cut_where_that_is_asked_for(attnscope, bare: Path) -> None:
    result = attnscope("heads", "--ids", "2," * 40 + "3", "--truncate", *HEAD, "-m", str(bare), "--json")
    assert len(document(result)["query_tokens"]) == 32
    assert "41 tokens: cut to the 32" in result.stderr


def test_a_query_is_meant_by_its_place_or_by_its_number(attnscope, bare: Path) -> None:
    def row(query: str) -> str:
        result = attnscope("heads", "--ids", "2,503,372,1,3", *HEAD, "-m", str(bare), "-q", "--query", query)
        assert result.exit_code == 0, result.stderr
        return result.stdout

    assert row("@2") == row("372") == row("372@2") == row("@-3")
    assert row("@1") == row("503") != row("@2")
    assert row("1") == row("@3") != row("@1"), "a text that stands there comes before a position"


def test_a_decoder_goes_on_from_them_as_from_its_text(attnscope) -> None:
    text = "the dog saw the"
    tokenizer = AutoTokenizer.from_pretrained(Path(demo.folder()).parent / "causal")
    ids = " ".join(map(str, tokenizer(text)["input_ids"]))
    common = ("-m", "demo-causal", "--layer", "1", "--head", "1", "--generate", "4", "--json")
    one, other = (document(attnscope("heads", *given, *common)) for given in ((text,), ("--ids", ids)))
    assert one["provenance"]["token_ids"] == other["provenance"]["token_ids"]
    assert one["weights"] == other["weights"]
    assert [t["label"] for t in other["query_tokens"]] == [t["label"] for t in one["query_tokens"]]


@pytest.fixture(scope="module", params=["bart", "t5"])
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


def test_a_target_text_needs_a_tokenizer(attnscope, wordless: Path) -> None:
    common = ("heads", "--ids", "2,503,3", "-m", str(wordless), "--layer", "1", "--head", "1")
    refused(attnscope(*common, "--target", "we saw"), 2, "--target needs a tokenizer", "--target-ids")
    refused(attnscope(*common, "--target", "a", "--target-ids", "2"), 2, "give one of the two")
    refused(attnscope(*common, "--target-ids", "2,99999"), 2, "--target-ids", "has no token 99999")
    refused(attnscope(*common, "--target-ids", "2", "--generate", "2"), 2, "choose one")


# words that are given


TREEBANK = "I was n't watching the cat's U.S. door ."


def test_the_words_are_those_between_blanks(attnscope) -> None:
    common = ("heads", TREEBANK, "-m", "demo", *HEAD, "--words", "--json")
    told = document(attnscope(*common, "--split"))
    named = [token["text"] for token in told["row_tokens"] if not token["special"]]
    assert named == TREEBANK.split()
    otherwise = [token["text"] for token in document(attnscope(*common))["row_tokens"]]
    assert "cat's" not in otherwise


def test_tokens_are_the_same_and_know_their_word(attnscope) -> None:
    common = ("heads", TREEBANK, "-m", "demo", *HEAD, "--json")
    split, plain = document(attnscope(*common, "--split")), document(attnscope(*common))
    assert split["provenance"]["token_ids"] == plain["provenance"]["token_ids"]
    assert split["weights"] == plain["weights"]
    tokenizer = AutoTokenizer.from_pretrained(demo.folder())
    given = tokenizer(TREEBANK.split(), is_split_into_words=True)
    assert [token["word"] for token in split["query_tokens"]] == given.word_ids()
    assert [token["id"] for token in split["query_tokens"]] == given["input_ids"]


def test_words_of_a_pair_and_masks_in_them(attnscope) -> None:
    told = document(
        attnscope(
            "heads",
            "it 's [mask] !",
            "--pair",
            "do  n't",
            "-m",
            "demo",
            *HEAD,
            "--split",
            "--words",
            "--json",
        )
    )
    named = [token["text"] for token in told["row_tokens"] if not token["special"]]
    assert named == ["it", "'s", "[MASK]", "!", "do", "n't"]


@pytest.mark.parametrize("command", ["tsne", "report", "compare"])
def test_other_commands_take_the_given_words(attnscope, command: str) -> None:
    options = {
        "tsne": (*HEAD, "--max-iter", "300"),
        "report": (*HEAD, "--max-iter", "300", "--query", "3"),
        "compare": ("the U.S. slept", "--word", "U.S."),
    }[command]
    result = attnscope(
        command, "we saw the U.S. door", *options, "-m", "demo", "--split", "--words", "--json"
    )
    assert '"U.S."' in json.dumps(document(result))


@pytest.mark.parametrize("command", ["predict", "verify"])
def test_predictions_and_verifications_read_them_too(attnscope, command: str) -> None:
    result = attnscope(command, "the [MASK] was n't open", "--split", "-m", "demo", "--json")
    assert document(result)
