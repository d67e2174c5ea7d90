"""`import attnscope`: what it gives is what the model and the command line say, and a mistake is one line."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer
from typer.testing import CliRunner

import attnscope as at
from attnscope import demo
from attnscope.cli.app import app
from attnscope.results import HeadView, HeadWeights, Kind, Verdict

SENTENCE = "I was watching the [MASK] when it opened."


def eager_weights(module, inputs) -> list[np.ndarray]:
    """What the model itself returns as its attention, by layer: `head query key`."""
    with torch.no_grad():
        return [each[0].double().numpy() for each in module(**inputs, output_attentions=True).attentions]


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
    assert texts.asked_by == ("compare", "I put my coins in the bank.", "--word", "bank")
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
    other = model.read("it opened")
    for says, ask in (
        ("no model of transformers", lambda: at.wrap(torch.nn.Linear(2, 3))),
        ("give a text to read", model.read),
        ("a text was read", lambda: reading.over(0, 1)),
        ("the same reading twice", lambda: at.compare(reading, other, "it", layer=0, layer_b=1)),
        ("no layer was asked for", lambda: reading.overview([])),
        ("no such file", lambda: at.open("nowhere.npz")),
    ):
        with pytest.raises(at.AttnscopeError, match=says):
            ask()


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
