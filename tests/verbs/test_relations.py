"""A treebank under a model: every answer against a slow loop over what the model returns by sentence."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from small_tokenizers import BUILD
from typer.testing import CliRunner

import attnscope as at
from attnscope.analysis.treebank import read_treebank
from attnscope.capture import weights as weights_door
from attnscope.cli.app import app
from attnscope.errors import CertificateError, InputError
from attnscope.results import Dependencies, Verdict
from attnscope.verbs.dependencies.result import Direction

# form, head, relation; two sentences of as many tokens, words of several pieces, one that no tokenizer keeps
SENTENCES = (
    "the:2:det dog:3:nsubj barks:0:root .:3:punct",
    "a:2:det boat:3:nsubj flows:0:root ,:3:punct",
    "the:3:det old:3:amod parrots:4:nsubj fly:0:root to:7:case the:7:det bank:4:obl .:4:punct",
    "go:0:root",
    "it:3:nsubj unbelievably:3:advmod opened:0:root \u200b:3:punct wide:3:xcomp",
    "Maria:2:nsubj sat:0:root on:5:case the:5:det table:2:obl and:8:cc she:8:nsubj slept:2:conj .:2:punct",
    f"{' '.join(f'very:{i + 2}:advmod' for i in range(70))} old:0:root",
)


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("treebank") / "small.conllu"
    blocks = []
    for sentence in SENTENCES:
        fields = [word.rsplit(":", 2) for word in sentence.split(" ")]
        rows = (f"{i}\t{w}\t_\tX\t_\t_\t{h}\t{r}\t_\t_" for i, (w, h, r) in enumerate(fields, start=1))
        blocks.append("\n".join(rows))
    path.write_text("\n\n".join(blocks) + "\n")
    return path


@pytest.fixture(scope="module")
def encoder() -> at.Model:
    return at.load("demo")


@pytest.fixture(scope="module")
def found(encoder: at.Model, treebank: Path) -> Dependencies:
    return encoder.dependencies(treebank, batch=2)


def word_of_each_token(tokenizer, words: tuple[str, ...]) -> tuple[list[int], list[int | None]]:
    """Ids of the words with a blank between them, and which word each token is a piece of."""
    encoded = tokenizer(" ".join(words), return_offsets_mapping=True)
    letters = [i for i, word in enumerate(words) for _ in range(len(word) + 1)]
    text = " ".join(words)
    places = []
    for (start, end), added in zip(
        encoded["offset_mapping"],
        tokenizer.get_special_tokens_mask(encoded["input_ids"], already_has_special_tokens=True),
        strict=True,
    ):
        first = start + len(text[start:end]) - len(text[start:end].lstrip())
        places.append(None if added or start == end else letters[first])
    return encoded["input_ids"], places


def slow_answers(weights: list[list[float]], places: list[int | None], words: int) -> list[list[int]]:
    """What one head takes for every word, by direction (twice its head, then its dependent)."""
    by_word = [[0.0] * words for _ in range(words)]
    for i in range(words):
        pieces = [q for q, place in enumerate(places) if place == i]
        for j in range(words):
            for q in pieces:
                by_word[i][j] += sum(
                    w for w, place in zip(weights[q], places, strict=True) if place == j
                ) / len(pieces)
    there = [i for i in range(words) if i in places]
    answers = []
    for value in (lambda i, j: by_word[i][j], lambda i, j: by_word[j][i], lambda i, j: by_word[i][j]):
        answered = []
        for i in range(words):
            others = [j for j in there if j != i] if i in there else []
            best = max(others, key=lambda j: (value(i, j), -j), default=-1)
            answered.append(best if best >= 0 and value(i, best) > 0 else -1)
        answers.append(answered)
    return answers


def slow_answers_of_all(model: at.Model, treebank: Path) -> Iterator[tuple[Any, Any, bool]]:
    """Of every pair: relation, head and direction; words, pair and what is taken; whether that is right."""
    body = getattr(model.module, model.module.base_model_prefix)
    body.set_attn_implementation("eager")
    for sentence in (each for each in read_treebank(treebank).sentences if len(each.words) < 40):
        ids, places = word_of_each_token(model.tokenizer, sentence.words)
        with torch.no_grad():
            attentions = body(torch.tensor([ids]), output_attentions=True).attentions
        for layer, weights in enumerate(attentions):
            for head, rows in enumerate(weights[0].double().tolist()):
                answers = slow_answers(rows, places, len(sentence.words))
                for dependent, own, name in sentence.edges:
                    if dependent not in places or own not in places:
                        continue
                    for direction, answered in zip(Direction, answers, strict=True):
                        of_head = direction is Direction.STRONGEST
                        asks, sought = (own, dependent) if of_head else (dependent, own)
                        pair = sentence.words, dependent, own, answered[asks]
                        yield (name, layer, head, direction), pair, answered[asks] == sought


@pytest.mark.parametrize("name", ["demo", "demo-causal"])
def test_accuracies_and_examples_are_those_of_a_slow_loop_over_the_models_own_weights(
    encoder: at.Model, found: Dependencies, treebank: Path, name: str
) -> None:
    model = encoder if name == "demo" else at.load(name)
    result = found if name == "demo" else model.dependencies(treebank)
    assert result.ahead is (name == "demo")
    right, count, first = Counter[Any](), Counter[Any](), dict[Any, Any]()
    for key, pair, hit in slow_answers_of_all(model, treebank):
        right[key] += hit
        count[key] += 1
        first.setdefault((key, hit), pair)
    assert {each.name for each in result.relations} == {relation for relation, *_ in count}
    for each in result.relations:
        accuracies = result.by_head(each.name)
        for i, j, k in np.ndindex(accuracies.shape):
            key = each.name, result.layers[i], result.heads[j], list(Direction)[k]
            assert each.count == count[key]
            assert accuracies[i, j, k] == pytest.approx(right[key] / count[key])
        best = each.name, each.best.layer, each.best.head, each.best.direction
        given = [(one.words, one.dependent, one.governor, one.taken) for one in each.examples]
        assert given == [first[best, hit] for hit in (True, False) if (best, hit) in first]


def test_what_was_left_out_is_counted_and_said(found: Dependencies) -> None:
    bank = found.treebank
    assert (bank.sentences, bank.scored, bank.too_long, bank.without_relation) == (7, 5, 1, 1)
    assert bank.pairs_without_piece == 1
    assert (bank.limit, bank.unreadable) == (64, 0)
    counts = {each.name: each.count for each in found.relations}
    assert counts["punct"] == 4  # not that of the word without a piece
    assert "root" not in counts
    assert found.overall.count == sum(counts.values()) - 4


def test_a_damaged_sentence_is_skipped_counted_and_told(
    found: Dependencies, treebank: Path, tmp_path: Path
) -> None:
    torn = tmp_path / "torn.conllu"
    torn.write_text("1\tThe\tDET\n\n" + treebank.read_text())
    done = CliRunner().invoke(app, ["dependencies", str(torn), "-m", "demo", "--json"])
    told = json.loads(done.stdout)["treebank"]
    assert (done.exit_code, told["sentences"], told["unreadable"]) == (0, found.treebank.sentences + 1, 1)
    assert told["scored"] == found.treebank.scored
    assert f"skipped 1 sentence that the file has damaged ({torn}:1: 3 fields" in done.stderr


def test_a_few_sentences_are_certified_by_a_capture_of_the_very_batch_and_other_weights_fail(
    encoder: at.Model, found: Dependencies, treebank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found.verdict is Verdict.CERTIFIED
    assert found.sampled == 3
    assert sum(found.certified.values()) == 3 * len(found.layers) * len(found.heads)
    assert found.unlike < 1e-5
    own = weights_door._own
    monkeypatch.setattr(weights_door, "_own", lambda given, returned: own(given, returned).roll(1, dims=1))
    assert encoder.dependencies(treebank, limit=3).verdict is Verdict.FAILED


def test_a_file_and_a_table_hold_every_relation(found: Dependencies, tmp_path: Path) -> None:
    det = json.loads(found.save(tmp_path / "found.json").read_text("utf-8"))["relations"]["det"]
    assert {"layer", "head", "direction", "accuracy"} <= det["best"].keys()
    assert {"fixed_distance", "accuracy"} <= det["baseline"].keys()
    assert det["count"] == 5
    rows = found.to_pandas().query("fact == 'head' and relation == 'det' and head == 3 and layer == 2")
    place = [each.name for each in found.relations].index("det")
    assert rows.accuracy.tolist() == found.accuracies[2, 3, :, place].tolist()


def test_the_size_of_a_batch_changes_nothing(encoder: at.Model, found: Dependencies, treebank: Path) -> None:
    other = encoder.dependencies(treebank, batch=1)
    assert (other.relations, other.overall) == (found.relations, found.overall)
    assert (other.treebank, other.certified) == (found.treebank, found.certified)
    assert (other.accuracies == found.accuracies).all()


def test_chosen_layers_and_heads_are_those_of_the_whole(
    encoder: at.Model, found: Dependencies, treebank: Path
) -> None:
    some = encoder.dependencies(treebank, "det", layers=[1, 3], heads="2-4")
    assert (some.layers, some.heads, some.tried) == ((1, 3), (2, 3, 4), 18)
    assert (some.accuracies == found.accuracies[[1, 3], 2:5]).all()
    assert some.looked_at is not None
    assert some.looked_at.name == "det"


def test_the_encoder_of_a_translator_is_read_and_what_it_writes_is_refused(treebank: Path) -> None:
    model = at.load("demo-translate")
    assert model.dependencies(treebank, kind="encoder").kind == "encoder"
    for kind in ("cross", "decoder"):
        with pytest.raises(
            InputError, match=f"{kind} attention is about those that it writes: --kind encoder"
        ):
            model.dependencies(treebank, kind=kind)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"relation": "nsub"}, "no relation 'nsub' in .*small.conllu': advmod, nsubj, det"),
        ({"limit": 0}, "--limit is 0"),
        ({"batch": 0}, "--batch is 0"),
        ({"route": "returned"}, "--route returned has weights alone"),
        ({"layers": 9}, "no layer 9"),
        ({"block": 1}, "no dense softmax attention"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(
    encoder: at.Model, treebank: Path, asked: dict, why: str
) -> None:
    with pytest.raises(InputError, match=why) as refused:
        encoder.dependencies(treebank, **asked)
    assert "\n" not in str(refused.value)


def test_weights_that_are_no_numbers_are_refused(treebank: Path) -> None:
    model = at.load("demo")
    with torch.no_grad():
        next(
            p for n, p in model.module.named_parameters() if "layer.1.attention.self.query.weight" in n
        ).fill_(torch.nan)
    with pytest.raises(CertificateError, match="weights of attention are not numbers"):
        model.dependencies(treebank)


def test_a_tokenizer_that_does_not_say_where_its_tokens_are_is_refused_in_one_line(
    treebank: Path, tmp_path: Path
) -> None:
    tokenizer = BUILD["byt5"]()  # letters by their bytes, without the tokenizers library
    assert not tokenizer.is_fast
    tokenizer.save_pretrained(tmp_path)
    sizes = {"d_model": 24, "d_kv": 6, "d_ff": 30, "num_layers": 2, "num_heads": 4}
    hf.T5EncoderModel(hf.T5Config(vocab_size=384, **sizes)).save_pretrained(tmp_path)
    model = at.load(str(tmp_path))
    assert len(model.read("the dog barks").tokens) == 14, "it reads text all the same"
    with pytest.raises(
        InputError, match="its tokenizer does not say where in the text its tokens are"
    ) as told:
        model.dependencies(treebank)
    assert "\n" not in str(told.value)
