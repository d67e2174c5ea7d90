"""`attnscope verify`: every head, one exit code; checkpoints in the layout of well-known ones."""

import csv
import json
from pathlib import Path
from typing import Any

import media_models
import pytest
import torch
import transformers as hf
import well_known
from media_models import save
from PIL import Image

TEXT = "I was watching the [MASK] when it opened."


def test_every_layer_and_head_is_certified_and_nothing_changed(attnscope, tmp_path: Path) -> None:
    files = [tmp_path / "check.csv", tmp_path / "check.json"]
    result = attnscope("verify", TEXT, "-m", "demo", *(part for file in files for part in ("-o", str(file))))
    assert result.exit_code == 0
    told = " ".join(result.stdout.split())
    assert told.startswith(
        "All 48 encoder heads of demo come out as the model's own when recomputed, and watching"
    )
    rows = [line.split()[:4] for line in result.stdout.splitlines() if line.startswith("L")]
    assert rows == [[f"L{layer}", "12", "of", "12"] for layer in range(4)]
    assert f"attnscope heads '{TEXT}' -m demo" in told
    lines = [line for line in files[0].read_text().splitlines() if not line.startswith("#")]
    heads = {(int(row["layer"]), int(row["head"])) for row in csv.DictReader(lines)}
    assert heads == {(layer, head) for layer in range(4) for head in range(12)}
    outputs = {output["name"]: output for output in json.loads(files[1].read_text())["outputs"]}
    assert {"last_hidden_state", "prediction_logits", "seq_relationship_logits"} <= set(outputs)
    assert all(output["identical"] for output in outputs.values())


def test_a_model_that_is_changed_by_being_watched_is_exit_code_5(attnscope, monkeypatch) -> None:
    from attnscope.capture.following.takeover import KernelInputs

    answer = KernelInputs.answer

    def tampered(self: KernelInputs):
        output, weights = answer(self)
        return output + 1e-3, weights

    monkeypatch.setattr(KernelInputs, "answer", tampered)
    result = attnscope("verify", TEXT, "-m", "demo")
    assert result.exit_code == 5
    assert "failed" in result.stdout.lower()


def test_without_a_text_one_of_its_own_is_read(attnscope) -> None:
    masked, whole = (attnscope("verify", "-m", name, "--json") for name in ("demo", "demo-causal"))
    assert '"I was watching the door when [MASK] opened."' in masked.stdout
    assert '"I was watching the door when it opened."' in whole.stdout
    assert (masked.exit_code, whole.exit_code) == (0, 0)
    assert (masked.stderr, whole.stderr) == ("", "")


def test_without_a_text_a_model_that_reads_none_is_refused_in_one_line(refused, tmp_path: Path) -> None:
    refused("--image", "verify", "-m", str(save("vit", tmp_path / "vit")))


PICTURE = "picture.png"
KNOWN = {
    "opus_mt": ("the old door",),
    "ms_marco_minilm": ("who opened it?", "--pair", "the king opened it"),
    "llava_1_5": ("what is in the picture ?", "--image", PICTURE),
    "gpt_oss": ("the king saw the old door when he opened it",),
}
WHICH = {"opus_mt": ("--kind", "cross"), "llava_1_5": ("--tower", "language_model")}
LINKS = {
    "opus_mt": ("--pattern", "first"),
    "ms_marco_minilm": ("--from", "who", "--to", "king"),
    "llava_1_5": ("--from", "picture", "--to", "what"),
    "gpt_oss": ("--from", "it", "--to", "king"),
}
HEADS = {"opus_mt": 3 * 6 * 8, "ms_marco_minilm": 6 * 12, "llava_1_5": 4 * 16 + 4 * 32, "gpt_oss": 4 * 16}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all of them are, each under its name, and a picture."""
    made = tmp_path_factory.mktemp("well_known")
    media_models.picture_file(made, name=PICTURE)
    for name in KNOWN:
        torch.manual_seed(3)
        getattr(well_known, name)(made / name)
    return made


@pytest.mark.parametrize("name", KNOWN)
def test_every_head_of_a_well_known_layout_is_certified_and_each_command_answers(
    attnscope: Any, checkpoints: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(checkpoints)
    given, which = (*KNOWN[name], "-m", name), WHICH.get(name, ())
    verified = json.loads(attnscope("verify", *given, "--json").stdout)
    verdicts = [each["verdict"] for layer in verified["layers"] for each in layer["heads"]]
    assert verdicts == ["certified"] * HEADS[name]
    for command in (
        ("model", "-m", name),
        ("heads", *given, *which),
        ("find", *given, *which, *LINKS[name], "--controls", "19"),
        ("report", *given, *which, "-o", "report.png"),
    ):
        asked = attnscope(*command)
        assert (asked.exit_code, command) == (0, command)
        assert command[0] == "report" or asked.stdout


@torch.no_grad()
def right(name: str, checkpoints: Path, ids: list[int], target: list[int]) -> torch.Tensor:
    """The logits of transformers alone: of the score, after the last token, or after each of the target."""
    if name == "ms_marco_minilm":
        model = hf.BertForSequenceClassification.from_pretrained(checkpoints).eval()
        return model(
            **hf.AutoTokenizer.from_pretrained(checkpoints)(*KNOWN[name][::2], return_tensors="pt")
        ).logits[0]
    if name == "opus_mt":
        model = hf.MarianMTModel.from_pretrained(checkpoints).eval()
        return model(torch.tensor([ids]), decoder_input_ids=torch.tensor([target])).logits[0]
    if name == "llava_1_5":
        read = hf.AutoProcessor.from_pretrained(checkpoints)
        seen = read(
            text=f"<image>{KNOWN[name][0]}",
            images=Image.open(checkpoints.parent / PICTURE),
            return_tensors="pt",
        )
        return hf.LlavaForConditionalGeneration.from_pretrained(checkpoints).eval()(**seen).logits[0, -1:]
    plain = hf.Mxfp4Config(dequantize=True)
    model = hf.GptOssForCausalLM.from_pretrained(checkpoints, quantization_config=plain, dtype=torch.float32)
    return model.eval()(torch.tensor([ids])).logits[0, len(ids) - 2 : len(ids) - 1]


@pytest.mark.parametrize("name", KNOWN)
def test_the_answer_of_a_well_known_layout_is_that_of_transformers(
    attnscope: Any, checkpoints: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(checkpoints)
    told = json.loads(attnscope("predict", *KNOWN[name], "-m", name, "--json").stdout)
    written = [] if told["generated"] is None else [each["id"] for each in told["generated"]["tokens"]]
    target = [well_known.PAD, *written]
    logits = right(name, checkpoints / name, told["provenance"]["token_ids"], target).double()
    if name == "ms_marco_minilm":
        assert told["score"] == pytest.approx(float(logits[0]), abs=1e-4)
        return
    chances = logits.softmax(-1)
    if name == "opus_mt":
        assert written
        for row, each in enumerate(told["generated"]["tokens"]):
            assert each["probability"] == pytest.approx(float(chances[row, each["id"]]), abs=1e-4)
        return
    for each in told["blanks"][0]["guesses"]:
        assert each["probability"] == pytest.approx(float(chances[0, each["id"]]), abs=1e-4)
