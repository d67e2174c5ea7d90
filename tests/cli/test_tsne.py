"""`attnscope tsne` as the shell sees it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from checkpoints import tiny_translator

from attnscope.render.kit import numbers

ARTICLE = "I was watching the door when [MASK] opened."


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def document(result) -> dict:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_with_nothing_given_it_maps_the_articles_head_into_outputs(attnscope, tmp_path: Path) -> None:
    result = attnscope("tsne", "-m", "demo", "-v")
    assert result.exit_code == 0
    assert "t-SNE map of L3 H11 · encoder self-attention · bundled demo model" in result.stdout.splitlines()
    assert ARTICLE in result.stdout
    (written,) = (tmp_path / "outputs").iterdir()
    assert re.fullmatch(r"tsne-demo-L3-H11-i-was-watching-the-door-when-[0-9a-f]{6}\.png", written.name)


def test_the_same_map_has_the_same_bytes_every_time(attnscope, tmp_path: Path) -> None:
    for suffix in ("png", "svg", "json", "npz"):
        first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
        attnscope("tsne", "-m", "demo", "--query", "[MASK]", "-o", str(first))
        attnscope("tsne", "-m", "demo", "--query", "[MASK]", "-o", str(second))
        assert first.read_bytes() == second.read_bytes(), suffix


def test_another_distance_or_perplexity_gives_another_map(attnscope) -> None:
    def places(*options: str) -> list:
        return document(attnscope("tsne", "the door opened", "-m", "demo", "--json", *options))["key_places"]

    changes = ((), ("--metric", "euclidean"), ("--perplexity", "2"))
    maps = [places(*change) for change in changes]
    for i, one in enumerate(maps):
        assert all(one != other for other in maps[i + 1 :])


def test_json_and_nothing_else_writes_no_picture(attnscope, tmp_path: Path) -> None:
    document(attnscope("tsne", "-m", "demo", "--json"))
    assert list(tmp_path.iterdir()) == []


def test_queries_and_keys_of_cross_attention_come_from_two_texts(attnscope, tmp_path: Path) -> None:
    folder = tiny_translator(tmp_path / "m")
    head = ("--layer", "1", "--head", "2", "--kind", "cross", "--target", "we saw it")
    arguments = ("tsne", "I was watching the door", "-m", str(folder), *head, "-o", "map.npz")
    assert attnscope(*arguments).exit_code == 0
    arrays = np.load("map.npz")
    assert (arrays["query_places"].shape, arrays["key_places"].shape) == ((5, 2), (7, 2))


def test_a_text_of_one_token_and_special_ones_works(attnscope) -> None:
    result = attnscope("tsne", "door", "-m", "demo")
    assert result.exit_code == 0
    assert "perplexity lowered from 5 to 1.67, a third of the 6 points less one" in result.stderr


def test_two_queries_and_a_key_are_compared_in_the_full_space(attnscope) -> None:
    pair = ("--query", "[MASK]", "--compare-query", "watching", "--key", "door")
    result = attnscope("tsne", "-m", "demo", *pair, width=100)
    found = document(attnscope("tsne", "-m", "demo", "--json"))
    head = document(attnscope("heads", ARTICLE, "-m", "demo", "--layer", "3", "--head", "11", "--json"))
    for name, query in (("[MASK]", 7), ("watching", 3)):
        named = (line for line in result.stdout.splitlines() if line.strip().startswith(f"{query} {name}"))
        row = next(line for line in named if " of " in line)
        q, k = np.array(head["q"][query]), np.array(head["k"][5])
        cosine = 1 - q @ k / np.linalg.norm(q) / np.linalg.norm(k)
        rank = 1 + sum(weight > head["weights"][query][5] for weight in head["weights"][query])
        assert f"{rank} of 11" in row
        assert numbers.number(cosine, 3) in row
        assert found["distance"][query][5] == pytest.approx(cosine)


def test_several_tokens_are_a_point_at_the_mean_of_their_vectors(attnscope) -> None:
    pair = ("--query", "the door", "--compare-query", "1-3", "--key", "when [MASK]")
    result = attnscope("tsne", "-m", "demo", *pair, width=120)
    head = document(attnscope("heads", ARTICLE, "-m", "demo", "--layer", "3", "--head", "11", "--json"))
    q, k, weights = (np.array(head[each]) for each in ("q", "k", "weights"))
    for name, rows in (("the door", [4, 5]), ("I was watching", [1, 2, 3])):
        named = (line for line in result.stdout.splitlines() if line.strip().startswith(f"{rows[0]} {name}"))
        line = next(line for line in named if " of " in line)
        one, key = q[rows].mean(0), k[[6, 7]].mean(0)
        cosine = 1 - one @ key / np.linalg.norm(one) / np.linalg.norm(key)
        assert numbers.number(cosine, 3) in line
        assert numbers.number(weights[rows][:, [6, 7]].sum(1).mean(), 3) in line
    said = " ".join(result.stdout.split())
    assert "the door is tokens 4-5: its vectors are their means" in said
    assert said.count("weights to it their sum") == 3


def test_a_ceiling_may_be_written_as_tutorials_write_it(attnscope) -> None:
    asked = ("tsne", "-m", "demo", "-q", "--json", "--max-iter")
    told = [json.loads(attnscope(*asked, ceiling).stdout)["max_iter"] for ceiling in ("1e8", "100000000")]
    assert told == [100_000_000, 100_000_000]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--key", "door"), "name a query"),
        (("--compare-query", "door"), "name a query"),
        (("--query", "dog"), "no token 'dog' in the input"),
        (("--query", "door", "--key", "dog"), "no token 'dog' in the input"),
        (("--perplexity", "0"), "perplexity is 0.0: it must be above 0"),
        (("--perplexity", "nan"), "perplexity is nan"),
        (("--metric", "dot"), "unknown metric 'dot': cosine, euclidean"),
        (("--max-iter", "10"), "max-iter is 10: it must be from 250"),
        (("--max-iter", "1e1"), "max-iter is 10: it must be from 250"),
        (("--max-iter", "1e400"), "'1e400' is not a whole number"),
        (("--max-iter", "300.5"), "'300.5' is not a whole number"),
        (("--max-iter", "many"), "'many' is not a whole number"),
        (("--seed", "-1"), "the seed is -1"),
        (("--head", "0,1"), "this needs one head"),
        (("--head", "L3"), "--head L3 are several: this is of one head"),
        (("--head", "12"), "no head 12"),
        (("-o", "map.gif"), "cannot write 'map.gif'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(attnscope, tmp_path, arguments, message) -> None:
    result = attnscope("tsne", "-m", "demo", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_a_mask_reads_the_articles_sentence_without_one(attnscope, tmp_path: Path) -> None:
    from checkpoints import save, vocabulary_size
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=vocabulary_size(), n_embd=24, n_layer=4, n_head=12, n_positions=32)
    folder = save(GPT2LMHeadModel(config), tmp_path / "m")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("mask_token", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    result = attnscope("tsne", "-m", str(folder))
    assert result.exit_code == 0, result.stderr
    assert "I was watching the door when it opened." in result.stdout


WORDS = ("tsne", "The detective was unlocking doors.", "-m", "demo", "--words", "--special", "hide")


def test_points_are_words_and_a_query_is_named_by_its_word(attnscope, tmp_path: Path) -> None:
    files = ("-o", "x.png", "-o", "x.npz")
    result = attnscope(*WORDS, "--query", "unlocking", "--key", "detective", *files, "-v")
    assert result.exit_code == 0, result.stderr
    assert "points are words" in result.stdout
    assert (tmp_path / "x.png").exists()
    with np.load(tmp_path / "x.npz") as arrays:
        assert arrays["query_places"].shape == arrays["key_places"].shape == (6, 2)
        assert arrays["view weights"].shape == (6, 6)
        assert arrays["weights"].shape == (16, 16)


def test_the_document_of_a_map_without_a_view_has_none(attnscope) -> None:
    plain, view = (document(attnscope(*options, "--json")) for options in (WORDS[:4], WORDS))
    assert set(view) == set(plain)
    assert (plain["view"], view["view"]["by"]) == (None, "word")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--query", "[CLS]"), "no token '[CLS]' in the input: tokens are 1 The, 2 detective, 11 was"),
        (("--query", "was", "--key", "[SEP]"), "no token '[SEP]' in the input: tokens are 1 The"),
        (("--query", "0"), "no token 0 in the input: positions 1"),
        (("--special", "gone"), "--special is 'gone': show, hide, renormalise"),
    ],
)
def test_what_a_map_of_words_does_not_show_is_told_in_one_line(attnscope, arguments, message) -> None:
    result = attnscope(*WORDS, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
