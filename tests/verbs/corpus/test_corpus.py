"""A corpus against the obvious script: one text at a time, the model's own eager weights, NumPy."""

import json
import re
from dataclasses import replace
from pathlib import Path

import corpus_of_demo as demo
import numpy as np
import pytest
import torch
from checkpoints import bert_config, save
from scipy.stats import t as student
from transformers import BertForMaskedLM

import attnscope as at
from attnscope.errors import InputError
from attnscope.results import Corpus, Verdict
from attnscope.verbs.corpus import identity, reader
from attnscope.verbs.corpus.identity import code_of
from attnscope.verbs.corpus.reader import pools
from attnscope.verbs.corpus.result import LEVELS


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("texts") / "texts.txt"
    place.write_text("\n".join(demo.TEXTS) + "\n")
    return place


@pytest.fixture(scope="module")
def found(file: Path) -> Corpus:
    return demo.measure(file, file.parent / "run")


@pytest.fixture(scope="module")
def obvious() -> dict[str, np.ndarray]:
    """Measure by name as `text layer head`, by loops over what the model returns."""
    model = at.load("demo")
    module, tokenizer = model.module, model.tokenizer
    names = ("entropy", "previous", "special-tokens", "same", "fixed")
    rows: dict[str, list[list[list[float]]]] = {name: [] for name in names}
    for text in demo.REAL:
        inputs = tokenizer(text, return_tensors="pt")
        ids = inputs["input_ids"][0].numpy()
        special = np.isin(ids, [tokenizer.cls_token_id, tokenizer.sep_token_id])
        with torch.no_grad():
            every = module(**inputs, output_attentions=True).attentions
        each: dict[str, list[list[float]]] = {name: [] for name in names}
        for layer in (0, 2):
            heads = every[layer][0, [1, 4, 7]].double().numpy()
            n = len(ids)
            alike = (ids[:, None] == ids) & ~np.eye(n, dtype=bool)
            twice = alike.any(-1)  # the tokens that stand at another place too
            each["entropy"].append([float(-(w * np.log(w)).sum(-1).mean()) for w in heads])
            each["previous"].append([float(np.diagonal(w, -1).mean()) for w in heads])
            each["special-tokens"].append([float(w[:, special].sum(-1).mean()) for w in heads])
            each["same"].append(
                [float((w * alike).sum(-1)[twice].mean()) if twice.any() else np.nan for w in heads]
            )
            offsets = [w.argmax(-1) - np.arange(n) for w in heads]
            each["fixed"].append([max(np.unique(o, return_counts=True)[1]) / n for o in offsets])
        for name in names:
            rows[name].append(each[name])
    return {name: np.array(values) for name, values in rows.items()}


def test_means_errors_and_quantiles_are_those_of_the_obvious_script(
    found: Corpus, obvious: dict[str, np.ndarray]
) -> None:
    assert found.read.texts == len(demo.REAL) == 12
    assert (found.layers, found.heads) == ((0, 2), (1, 4, 7))
    for name, values in obvious.items():
        mine, there = found.measures[name], ~np.isnan(values)
        count = there.sum(axis=0)
        np.testing.assert_array_equal(mine.count, count)
        np.testing.assert_allclose(mine.values, np.nanmean(values, axis=0), atol=1e-6)
        error = np.nanstd(values, axis=0, ddof=1) / np.sqrt(count)
        np.testing.assert_allclose(mine.error, error, atol=1e-6)
        exact = np.nanquantile(values, LEVELS, axis=0, method="inverted_cdf")
        np.testing.assert_allclose(mine.quantiles, exact, rtol=mine.off, atol=1e-6)
        np.testing.assert_allclose(mine.halves[0], np.nanmean(values[::2], axis=0), atol=1e-6)


def test_what_was_read_is_counted_and_a_sample_certified(found: Corpus) -> None:
    assert found.read.blanks == 2
    assert found.read.left_out == 0
    assert found.read.padded > 0
    assert found.verdict is Verdict.CERTIFIED
    assert found.certified == {"certified": 6}
    assert found.measures["pattern"].agreement is not None
    assert found.measures["same"].count.max() < 12
    told = found.text(width=100)
    assert "corpus texts.txt" in repr(found)
    for part in ("the 12 texts", "2 blank lines", "certified: 6 of 6 heads", "L2"):
        assert part in told


def test_a_weight_that_is_not_the_models_fails_the_sample(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check is not of a thing with itself: what is counted is changed, and it fails."""
    recipe = demo.CorpusRecipe(demo.ModelRequest("demo"), demo.WANTED, ("entropy",))
    opened = demo.opened(recipe)
    real = type(opened.reader.passing).read

    def off(self, inputs, make, text=None):  # type: ignore[no-untyped-def]
        def changed(layer, passed):  # type: ignore[no-untyped-def]
            made = replace(passed, weights=passed.weights.flip(-1))
            return make(layer, made)

        return real(self, inputs, changed, text)

    monkeypatch.setattr(type(opened.reader.passing), "read", off)
    result = demo.measure(file, tmp_path / "run", measures="entropy")
    assert result.verdict is Verdict.FAILED
    lines = [line for line, text in enumerate(demo.TEXTS, start=1) if text.strip()]
    place, told = re.fullmatch(r"texts\.txt:(\d+): (L0 H1, .*) not as recomputed", result.failed[0]).groups()
    assert int(place) in lines
    assert told.endswith("and 2 more")
    said = f"✗ Do not use these numbers: texts.txt:{place}: L0 H1"
    assert " ".join(result.text(width=80).split()).startswith(said)


def test_pools_are_bounded_by_texts_and_by_tokens_and_leave_none_out() -> None:
    texts = [range(length) for length in (3, 4, 2, 9, 1, 1, 1, 1)]
    lengths = [[len(each) for each in pool] for pool in pools(texts, most=3, tokens=8)]  # type: ignore[arg-type]
    assert lengths == [[3, 4], [2], [9], [1, 1, 1], [1]]
    assert list(pools([], most=3, tokens=8)) == []


def test_where_filling_up_does_harm_texts_of_one_length_alone_are_read_together(
    file: Path, tmp_path: Path, found: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = demo.CorpusRecipe(demo.ModelRequest("demo"), demo.WANTED, tuple(demo.MEASURES.split(",")))
    opened = demo.opened(recipe)
    real = reader.leaking
    monkeypatch.setattr(
        reader,
        "leaking",
        lambda passed, facts: 0.1 if len(set(facts.lengths.tolist())) > 1 else real(passed, facts),
    )
    assert opened.reader.padded
    assert not opened.reader._may_fill_up()
    result = demo.measure(file, tmp_path / "run")
    assert result.read.padded == 0
    for name, each in found.measures.items():
        np.testing.assert_allclose(result.measures[name].values, each.values, atol=1e-5)


CONLLU = """1\tThe\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tdog\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tbarks\t_\tVERB\t_\t_\t0\troot\t_\t_

1\tbroken

1\tIt\t_\tPRON\t_\t_\t2\tnsubj\t_\t_
2\topened\t_\tVERB\t_\t_\t0\troot\t_\t_
3\tthe\t_\tDET\t_\t_\t4\tdet\t_\t_
4\tdoor\t_\tNOUN\t_\t_\t2\tobj\t_\t_
"""


def test_parts_of_speech_are_linked_and_ranked_beside_their_distances(tmp_path: Path) -> None:
    bank = tmp_path / "small.conllu"
    bank.write_text(CONLLU)
    found = demo.measure(bank, tmp_path / "run", from_pos="VERB", to_pos="NOUN")
    assert found.read.texts == 2
    assert found.read.set_aside == {"2 fields between tabs, a word of CoNLL-U has 10": 1}
    link, place, gain = (found.measures[name].values for name in ("link", "link-distance", "link-gain"))
    np.testing.assert_allclose(gain, link - place, atol=1e-12)
    assert found.main is found.measures["link-gain"]
    assert "heads that link VERB→NOUN most, in 2 texts" in found.text()
    aside = [json.loads(line) for line in (tmp_path / "run" / "set-aside.jsonl").read_text().splitlines()]
    assert [(each["place"], each["text"]) for each in aside] == [("small.conllu:5", "1\tbroken")]
    with pytest.raises(InputError, match="--from-pos: no word is ADJ: DET, NOUN, PRON, VERB"):
        demo.measure(bank, tmp_path / "other", from_pos="ADJ", to_pos="NOUN")


def test_a_text_on_which_the_model_gives_no_numbers_is_named(tmp_path: Path) -> None:
    broken = BertForMaskedLM(bert_config(initializer_range=0.3))
    broken.bert.embeddings.position_embeddings.weight.data[8] = float("nan")
    folder = save(broken, tmp_path / "broken")
    texts = tmp_path / "texts.txt"
    texts.write_text(
        "the door was open\nthe boy gave a book to the girl in the garden\nshe ran to the door\n"
    )
    found = at.corpus(texts, str(folder), measures="entropy", workers=0, run=tmp_path / "run")
    assert found.verdict is Verdict.FAILED
    (failed,) = found.failed
    assert failed.endswith("texts.txt:2: weights of attention are not numbers: the checkpoint may be damaged")
    assert found.read.texts == 2
    alone = tmp_path / "others.txt"
    alone.write_text("the door was open\nshe ran to the door\n")
    others = at.corpus(alone, str(folder), measures="entropy", workers=0, run=tmp_path / "other")
    assert found.measures["entropy"].values == pytest.approx(others.measures["entropy"].values, abs=1e-5)
    assert others.verdict is not Verdict.FAILED


FILES = (
    "attnscope/arithmetic.py", "attnscope/capture/run.py", "attnscope/render/look.py",
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
    monkeypatch.setattr("attnscope.verbs.corpus.identity.code_of", lambda _folder: "edited")
    with pytest.raises(InputError, match=r'belongs to another run: code is .* there and "edited" here'):
        demo.measure(file, tmp_path / "run", measures="entropy")


def test_two_corpora_differ_by_their_means_and_the_error_of_these(found: Corpus, file: Path) -> None:
    half = demo.measure(file, file.parent / "half", limit=6)
    apart = at.difference(half, found)
    entropy = apart.measures["entropy"]
    np.testing.assert_array_equal(
        entropy.difference, found.measures["entropy"].values - half.measures["entropy"].values
    )
    errors = [each.measures["entropy"].error for each in (half, found)]
    np.testing.assert_allclose(entropy.error, np.hypot(*errors))
    assert "pattern" not in apart.measures
    assert apart.notes == ("both read the same files: errors are those of independent texts",)
    texts = np.array([6, 12])[:, None, None]
    parts = np.array(errors) ** 2
    free = parts.sum(0) ** 2 / (parts**2 / (texts - 1)).sum(0)
    np.testing.assert_allclose(2 * 6 * student.sf(entropy.limit, free), 0.05)
    assert "B minus A" in apart.text()
    with pytest.raises(InputError, match="leave layers and heads out"):
        at.difference(half, found, layer=0)
