"""A model that is spread over devices, memory and disk is the model that one device holds."""

import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import dispatch_model

import attnscope
from attnscope.errors import DoesNotFitError, InputError
from attnscope.model.anatomy.placed import device_of, map_of, places_of, weight_of
from attnscope.model.loading import memory
from attnscope.model.loading.memory import refuse_type
from attnscope.model.source.find import find
from attnscope.results import Verdict
from attnscope.session import request as told

BERT, CAUSAL = "A dog [MASK] a cat.", "A dog sees a cat"
TEXTS = {"demo": BERT, "demo-causal": CAUSAL}
ON_DISK: dict[str, Any] = {
    "demo": {"": "cpu", "bert.encoder.layer.1": "disk", "bert.encoder.layer.2": "disk"},
    "demo-translate": {"": "cpu", "model.decoder": "disk", "lm_head": "disk"},
}
OVER_ALL: dict[str, Any] = {
    "demo": {"": 0, "encoder.layer.1": "emulated:1", "encoder.layer.2": "disk", "encoder.layer.3": "cpu"},
    "demo-causal": {"": 0, "model.layers.1": 1, "model.layers.2": "cpu", "model.layers.3": "disk"},
    "demo-translate": {"": 0, "model.decoder": 1, "model.encoder.layers.1": "disk"},
}


@pytest.fixture
def two(emulated: Any) -> Iterator[Any]:
    with emulated.present("cuda"):
        yield emulated


def numbers(reading: Any) -> dict[str, Any]:
    """What several kinds of question come to, by name."""
    found = {
        "takeover": reading.head(2, 1),
        "traced": reading.head(2, 1, route="traced"),
        "all": reading.overview(measure="all"),
        "tiled": reading.overview(measure="entropy,distance", tiled=True),
        "verified": reading.verify(),
    }
    return {question: _numbers(each) for question, each in found.items()}


def _numbers(found: Any) -> np.ndarray:
    if hasattr(found, "scores") and hasattr(found, "main"):
        return np.stack([each.values for each in found.scores.values()])
    if hasattr(found, "weights"):
        assert found.certificate.verdict is Verdict.CERTIFIED
        return np.asarray(found.weights)
    verdicts = [each.verdict for layer in found.layers for each in layer.certificates]
    assert set(verdicts) <= {Verdict.CERTIFIED, Verdict.INCONCLUSIVE}
    return np.array([each is Verdict.CERTIFIED for each in verdicts], float)


def test_on_the_disk_every_number_is_the_same_to_the_last_bit() -> None:
    """The processor does all of it either way: only where weights wait differs."""
    plain = attnscope.load("demo", device="cpu").read(BERT)
    spread = attnscope.load("demo", device_map=ON_DISK["demo"])
    assert any(each.is_meta for each in spread.module.parameters())
    other = numbers(spread.read(BERT))
    for question, expected in numbers(plain).items():
        assert np.array_equal(expected, other[question], equal_nan=True), question
    assert spread.read(BERT).head(0, 0).provenance.device == "cpu+disk"


@pytest.mark.parametrize("name", ["demo-causal", "demo-translate"])
def test_over_two_accelerators_memory_and_disk_numbers_are_those_of_one_device(two: Any, name: str) -> None:
    plain, spread = attnscope.load(name, device="cpu"), attnscope.load(name, device_map=OVER_ALL[name])
    one, other = (each.read(CAUSAL, generate=4).head(2, 1) for each in (plain, spread))
    assert one.query_tokens.ids == other.query_tokens.ids, "written with a cache"
    assert np.allclose(_numbers(one), _numbers(other), atol=2e-5)
    assert {"emulated:0", "emulated:1", "disk"} <= set(other.provenance.device.split("+"))
    if name == "demo-causal":
        shown = numbers(spread.read(CAUSAL))
        for question, expected in numbers(plain.read(CAUSAL)).items():
            assert np.allclose(expected, shown[question], atol=2e-5, rtol=1e-4, equal_nan=True), question


def test_claims_about_a_spread_model_are_those_about_the_whole(two: Any) -> None:
    """Heads taken away, links cut, matrices read from where they wait."""
    plain, spread = attnscope.load("demo", device="cpu"), attnscope.load("demo", device_map=OVER_ALL["demo"])
    one, other = (each.read(BERT) for each in (plain, spread))
    asked: tuple[Any, ...] = (
        lambda reading: [each.change for each in reading.ablate(1, [0, 1, 2]).heads],
        lambda reading: [each.change for each in reading.ablate(2, 1, link="2->1").heads],
        lambda reading: reading.find(pattern="previous", controls=2).weights,
    )
    for ask in asked:
        assert np.allclose(ask(one), ask(other), atol=2e-4, equal_nan=True)


SLOPES = """
import json, sys
import numpy as np
from accelerator import backend
backend.load("cuda")  # before the first slope of the process: torch counts devices then, once
import attnscope
name, places, text = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
for where in ({"device": "cpu"}, {"device_map": places}):
    model = attnscope.load(name, **where)
    answered = model.read(text).overview(measure="importance,attention-gradient,logit")
    found = [np.nan_to_num(each.values, nan=-1.0).tolist() for each in answered.scores.values()]
    flow = model.read(text).flow(2, kind="decoder" if name == "demo-causal" else "encoder")
    followed = np.nan_to_num([flow.rollout[-1], flow.by_norm[-1], flow.ablated.effects], nan=-1.0).tolist()
    composed = np.nan_to_num(model.composition(draws=2).scores, nan=-1.0).tolist()
    print(json.dumps({"answer": found, "composition": composed, "flow": followed}))
"""


@pytest.mark.parametrize("name", ["demo", "demo-causal"])
def test_slopes_and_circuits_of_a_spread_model_are_those_of_the_whole(emulated: Any, name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SLOPES, name, json.dumps(OVER_ALL[name]), TEXTS[name]],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    one, other = (json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{"))
    assert np.allclose(one["answer"], other["answer"], atol=1e-4)
    assert np.allclose(one["composition"], other["composition"], atol=1e-4)
    assert np.allclose(one["flow"], other["flow"], atol=2e-4)


def test_without_float64_a_spread_model_is_still_certified(emulated: Any) -> None:
    with emulated.present("mps"):
        found = attnscope.load("demo", device_map=OVER_ALL["demo"]).read(BERT)
        verdicts = {each.verdict for layer in found.verify().layers for each in layer.certificates}
        assert verdicts <= {Verdict.CERTIFIED, Verdict.INCONCLUSIVE}
        assert found.find(pattern="previous", controls=2).weights.size


def test_a_wrong_number_on_one_device_is_still_seen(two: Any) -> None:
    spread = attnscope.load("demo", device_map=OVER_ALL["demo"]).read(BERT)
    with two.spoiled("aten::_softmax", 1e-3):
        assert spread.head(1, 1).certificate.verdict is Verdict.FAILED


# which part goes where ------------------------------------------------------------------------------


def loaded(name: str = "demo", **options: Any) -> Any:
    from attnscope.model.loading.load import load_model, plan_model
    from attnscope.model.source.checkpoint import open_checkpoint

    where = options.pop("where")
    layers = options.pop("layers", None)
    told_map, budgets = told.device_map(where), told.max_memory(options.pop("max_memory", None))
    pickled = options.pop("allow_pickle", False)
    source = find(name, allow_pickle=pickled)
    checkpoint = open_checkpoint(source, allow_pickle=pickled)
    planned = plan_model(checkpoint)
    return load_model(planned, layers=layers, device_map=told_map, max_memory=budgets, **options)


def test_layers_after_the_chosen_one_are_cut_before_anything_is_placed() -> None:
    model = loaded(where={"": "cpu", "encoder.layer.1": "disk", "encoder.layer.3": "disk"}, layers=2)
    assert map_of(model.module) == {
        "embeddings": "cpu", "encoder.layer.0": "cpu", "encoder.layer.1": "disk", "pooler": "cpu"
    }  # fmt: skip
    plain = loaded(where={"": "cpu", "encoder.layer.3": "disk"}, layers=2)  # nothing is left on the disk
    assert map_of(plain.module) in ({}, {"": "cpu"})


def test_a_map_serves_the_model_with_a_head_and_without() -> None:
    with_head = {"": "cpu", "bert.encoder.layer.1": "disk", "cls": "disk"}
    without = {"": "cpu", "encoder.layer.1": "disk", "pooler": "disk"}
    for where in (with_head, without):
        assert map_of(loaded(where=where, layers=3).module)["encoder.layer.1"] == "disk"
        answered = attnscope.load("demo", device_map=where)
        assert map_of(answered.module)["bert.encoder.layer.1"] == "disk"
    assert map_of(attnscope.load("demo", device_map=with_head).module)["bert.encoder.layer.0"] == "cpu"


def test_weights_that_are_one_go_together() -> None:
    places = map_of(attnscope.load("demo-translate", device_map=ON_DISK["demo-translate"]).module)
    assert places["model.shared"] == places["model.decoder.embed_tokens"] == places["lm_head"] == "cpu"
    assert places["model.decoder.layers"] == "disk"


@pytest.mark.parametrize(
    ("budgets", "devices"),
    [
        ({0: "2500KB", 1: "3MB", "cpu": "50MB"}, {"emulated:0", "emulated:1"}),
        ({0: "1600KB", 1: "500KB", "cpu": "1300KB"}, {"emulated:0", "emulated:1", "cpu", "disk"}),
        ({0: 0, 1: 0, "cpu": "2500KB"}, {"cpu", "disk"}),
    ],
)
def test_auto_fills_one_device_after_the_other_within_what_it_may_take(
    two: Any, budgets: dict[Any, Any], devices: set[str]
) -> None:
    spread = attnscope.load("demo", device_map="auto", max_memory=budgets)
    device = spread.read(BERT).head(0, 0).provenance.device
    assert set(device.split("+")) == devices
    assert "auto" not in device
    taken: dict[str, int] = {}
    for part, place in map_of(spread.module).items():
        module = spread.module.get_submodule(part)
        taken[place] = taken.get(place, 0) + sum(each.nbytes for each in module.parameters())
    for place, most in json.loads(str(told.max_memory(budgets))).items():
        assert taken.get(f"emulated:{place}" if place.isdigit() else place, 0) <= most
    assert not [part for part in map_of(spread.module) if re.search(r"layer\.\d+\.", part)]
    plain = attnscope.load("demo", device="cpu").read(BERT).head(3, 5)
    assert np.allclose(spread.read(BERT).head(3, 5).weights, plain.weights, atol=2e-5)


def test_auto_takes_the_first_accelerator_alone_where_it_holds_all(two: Any) -> None:
    model = attnscope.load("demo", device_map="auto")
    assert places_of(model.module) == "emulated:0"


def test_auto_leaves_a_device_that_is_full(two: Any) -> None:
    gc.collect()
    with two.memory(1_900_000, 0):
        spread = attnscope.load("demo", device_map="auto")
        assert set(places_of(spread.module).split("+")) >= {"emulated:0", "emulated:1"}


def test_a_model_that_was_spread_by_its_owner_is_read_as_it_is() -> None:
    module = attnscope.load("demo", device="cpu").module
    tokenizer = attnscope.load("demo", device="cpu").tokenizer
    expected = attnscope.wrap(module, tokenizer).read(BERT)
    one, copied = expected.head(2, 1), attnscope.load("demo", device="cpu").module
    folder = tempfile.mkdtemp()
    try:
        places = {"bert.embeddings": "cpu", "bert.encoder": "disk", "bert.pooler": "cpu", "cls": "cpu"}
        dispatch_model(copied, places, offload_dir=folder)
        found = attnscope.wrap(copied, tokenizer).read(BERT).head(2, 1)
        assert np.array_equal(one.weights, found.weights)
        assert found.provenance.device == "cpu+disk"
    finally:
        shutil.rmtree(folder)


def test_the_numbers_of_a_weight_are_had_wherever_it_is_kept() -> None:
    plain, spread = (
        attnscope.load("demo", device="cpu").module,
        attnscope.load("demo", device_map=ON_DISK["demo"]),
    )
    for path, module in spread.module.named_modules():
        for name, _ in module.named_parameters(recurse=False):
            expected = plain.get_submodule(path).get_parameter(name)
            found = weight_of(module, name)
            assert found is not None
            assert torch.equal(found, expected)
    assert weight_of(spread.module, "nothing") is None
    assert device_of(spread.module) == torch.device("cpu")
    with torch.device("meta"):
        nowhere = torch.nn.Linear(2, 3)
    with pytest.raises(InputError, match="on no device"):
        weight_of(nowhere)


# what cannot be -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ({"": "cpu", "encoder.layer.9": "disk"}, "no part 'encoder.layer.9' in BertModel: it has embeddings"),
        (
            {"encoder.layer.1": "disk"},
            "no place for embeddings.word_embeddings.weight: name a part",
        ),
        ({"": "cpu", "encoder.layer.1.attention": "disk"}, "splits encoder.layer.1 \\(BertLayer\\)"),
        ({"": "cuda:0"}, "no device cuda:0 on this machine: there is cpu"),
        ({"": "nowhere"}, "unknown device 'nowhere'"),
        ({"": "auto"}, "a part goes to cpu, cuda:N, mps or disk"),
    ],
)
def test_a_map_that_does_not_fit_is_refused(where: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        loaded(where=where)


def test_an_accelerator_that_is_not_there_is_named_by_number(two: Any) -> None:
    with pytest.raises(InputError, match="no device 2 on this machine: accelerators are 0-1"):
        loaded(where={"": 2})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("nosuch.json", "no such file; it takes auto, or a map"),
        ('{"a": "cpu", "a": "disk"}', "'a' stands there twice"),
        ("{", "is no JSON"),
        ({}, "names no part of the model"),
        ({"a": True}, "'a' goes to true, which is no device"),
    ],
)
def test_what_is_no_map_is_said_at_once(given: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        told.device_map(given)


def test_a_map_is_the_same_from_a_file_and_in_line(tmp_path: Path) -> None:
    places = {"": "cpu", "encoder.layer.1": 1}
    (tmp_path / "map.json").write_text(json.dumps(places, indent=1))
    for given in (places, json.dumps(places), tmp_path / "map.json", str(tmp_path / "map.json")):
        assert told.device_map(given) == json.dumps(places)
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(InputError, match="is no map of parts to devices"):
        told.device_map(tmp_path / "list.json")


@pytest.mark.parametrize("given", ["cpu", "cpu=lots", "=1GB", "cpu=-1", {"cpu": -5}])
def test_what_is_no_amount_of_memory_is_said(given: Any) -> None:
    with pytest.raises(InputError, match="it takes cuda:0=10GB,cpu=30GB"):
        told.max_memory(given)


def test_amounts_of_memory_are_read() -> None:
    expected = json.dumps({"cuda:0": 10**10, "cpu": 5 * 10**8})
    for given in ("cuda:0=10GB,cpu=500MB", {"cuda:0": 10**10, "cpu": "500MB"}, expected):
        assert told.max_memory(given) == expected


def test_options_that_say_two_things_are_refused() -> None:
    from attnscope.session.request import ModelRequest

    with pytest.raises(InputError, match="--device and --device-map: give one of the two"):
        ModelRequest("demo", device="cpu", device_map="auto")
    for where in (None, {"": "cpu"}):
        with pytest.raises(InputError, match="--max-memory goes with --device-map auto"):
            ModelRequest("demo", device_map=where, max_memory="cpu=1GB")


def test_without_accelerate_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "find_spec", lambda name: None)
    with pytest.raises(
        InputError, match=r'^--device-map needs accelerate: pip install "attnscope\[device-map\]"$'
    ):
        loaded(where="auto")
    assert attnscope.load("demo").name == "demo"


def test_a_type_that_a_device_lacks_is_said_before_anything_is_read(emulated: Any) -> None:
    with emulated.present("mps"):
        for where in ({"device": "emulated"}, {"device_map": {"": 1, "encoder.layer.1": 0}}):
            with pytest.raises(InputError, match="has no float64: --dtype float32 runs it there"):
                attnscope.load("demo", dtype="float64", **where)
        refuse_type([torch.device("emulated")], torch.bfloat16)
        attnscope.load("demo", dtype="float64", device="cpu")


def test_what_fits_nowhere_is_told_with_what_it_would_take(two: Any) -> None:
    gc.collect()
    with two.memory(1_000_000, 0), two.memory(1_000_000, 1):
        with pytest.raises(
            DoesNotFitError, match=r"takes [0-9.]+ MB, and emulated:0 has [0-9.]+ MB free; --device"
        ):
            attnscope.load("demo", device="emulated:0")
        with pytest.raises(DoesNotFitError, match=r"takes [0-9.]+ MB, and emulated:1 has [0-9.]+ MB free$"):
            attnscope.load("demo", device_map={"": 1, "encoder.layer.0": 0})


def test_what_is_brought_from_the_disk_needs_room_where_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = memory.free
    monkeypatch.setattr(memory, "free", lambda device: 100_000 if device.type == "cpu" else whole(device))
    with pytest.raises(DoesNotFitError, match=r"takes .* MB, and memory has 0.1 MB free"):
        loaded(where={"": "disk"}, dtype="bfloat16")


def test_a_full_disk_is_told_before_it_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = pickled(tmp_path)
    monkeypatch.setattr(memory, "disk_usage", lambda place: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(DoesNotFitError, match=r"what goes to the disk takes .* MB, and .* has 0.0 MB free"):
        loaded(str(folder), where={"": "disk"}, allow_pickle=True)


# nothing is left behind -----------------------------------------------------------------------------


def pickled(place: Path) -> Path:
    """The demo model with weights that cannot be used from where they are stored."""
    from safetensors.torch import load_file

    folder = place / "pickled"
    shutil.copytree(find("demo").folder, folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def test_what_was_put_on_the_disk_goes_with_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, where = pickled(tmp_path), tmp_path / "temporary"
    where.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(where))
    plain = attnscope.load("demo", device="cpu").read(BERT).head(2, 1)
    model = attnscope.load(str(folder), device_map={"": "disk"}, allow_pickle=True)
    assert list(where.rglob("*.safetensors"))
    assert np.array_equal(model.read(BERT).head(2, 1).weights, plain.weights)
    del model
    gc.collect()
    assert not list(where.iterdir())


@pytest.mark.parametrize(
    "ended",
    [
        "by itself",
        signal.SIGTERM,
    ],
)
def test_what_was_put_on_the_disk_goes_with_the_program(tmp_path: Path, ended: Any) -> None:
    folder, where = pickled(tmp_path), tmp_path / "temporary"
    where.mkdir()
    script = (
        "import sys, time, attnscope\n"
        "from attnscope.process.ending import answer_signals; answer_signals()\n"
        f"model = attnscope.load({str(folder)!r}, device_map={{'': 'disk'}}, allow_pickle=True)\n"
        "print('here', flush=True); time.sleep(float(sys.argv[1]))"
    )
    waits = "0" if ended == "by itself" else "60"
    process = subprocess.Popen(
        [sys.executable, "-c", script, waits],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # off in a background
        env=os.environ
        | {
            "TMPDIR": str(where),
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "compiled"),  # torch makes one as it is imported
            "OMP_NUM_THREADS": "1",
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    if ended != "by itself":
        assert list(where.rglob("*.safetensors"))
        time.sleep(0.1)
        process.send_signal(ended)
    process.wait(30)
    process.stdout.close()
    assert not list(where.iterdir())
