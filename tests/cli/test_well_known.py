"""Checkpoints in the layout of well-known ones go through the commands; answers are those of transformers."""

import json
from pathlib import Path
from typing import Any

import media_models
import pytest
import torch
import transformers as hf
import well_known
from PIL import Image

PICTURE = "picture.png"
GIVEN = {
    "opus_mt": ("the old door",),
    "ms_marco_minilm": ("who opened it?", "--pair", "the king opened it"),
    "llava_1_5": ("what is in the picture ?", "--image", PICTURE),
    "gpt_oss": ("the king saw the old door when he opened it",),
}
WHICH = {"opus_mt": ("--kind", "cross"), "llava_1_5": ("--tower", "language_model")}
LINK = {
    "opus_mt": ("--pattern", "first"),
    "ms_marco_minilm": ("--from", "who", "--to", "king"),
    "llava_1_5": ("--from", "picture", "--to", "what"),
    "gpt_oss": ("--from", "it", "--to", "king"),
}
HEADS = {"opus_mt": 3 * 6 * 8, "ms_marco_minilm": 6 * 12, "llava_1_5": 4 * 16 + 4 * 32, "gpt_oss": 4 * 16}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all of them are, each under its name, and a picture."""
    made = tmp_path_factory.mktemp("well_known")
    media_models.picture_file(made, name=PICTURE)
    for name in GIVEN:
        torch.manual_seed(3)
        getattr(well_known, name)(made / name)
    return made


@pytest.mark.parametrize("name", GIVEN)
def test_every_head_of_a_well_known_layout_is_certified_and_each_command_answers(
    attnscope: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(folder)
    given, which = (*GIVEN[name], "-m", name), WHICH.get(name, ())
    verified = json.loads(attnscope("verify", *given, "--json").stdout)
    verdicts = [each["verdict"] for layer in verified["layers"] for each in layer["heads"]]
    assert verdicts == ["certified"] * HEADS[name]
    for command in (
        ("model", "-m", name),
        ("heads", *given, *which),
        ("find", *given, *which, *LINK[name], "--controls", "19"),
        ("report", *given, *which, "-o", "report.png"),
    ):
        asked = attnscope(*command)
        assert (asked.exit_code, command) == (0, command)
        assert command[0] == "report" or asked.stdout


@torch.no_grad()
def right(name: str, folder: Path, ids: list[int], target: list[int]) -> torch.Tensor:
    """The logits of transformers alone: of the score, after the last token, or after each of the target."""
    if name == "ms_marco_minilm":
        model = hf.BertForSequenceClassification.from_pretrained(folder).eval()
        return model(
            **hf.AutoTokenizer.from_pretrained(folder)(*GIVEN[name][::2], return_tensors="pt")
        ).logits[0]
    if name == "opus_mt":
        model = hf.MarianMTModel.from_pretrained(folder).eval()
        return model(torch.tensor([ids]), decoder_input_ids=torch.tensor([target])).logits[0]
    if name == "llava_1_5":
        read = hf.AutoProcessor.from_pretrained(folder)
        seen = read(
            text=f"<image>{GIVEN[name][0]}", images=Image.open(folder.parent / PICTURE), return_tensors="pt"
        )
        return hf.LlavaForConditionalGeneration.from_pretrained(folder).eval()(**seen).logits[0, -1:]
    plain = hf.Mxfp4Config(dequantize=True)
    model = hf.GptOssForCausalLM.from_pretrained(folder, quantization_config=plain, dtype=torch.float32)
    return model.eval()(torch.tensor([ids])).logits[0, len(ids) - 2 : len(ids) - 1]


@pytest.mark.parametrize("name", GIVEN)
def test_the_answer_of_a_well_known_layout_is_that_of_transformers(
    attnscope: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(folder)
    told = json.loads(attnscope("predict", *GIVEN[name], "-m", name, "--json").stdout)
    written = [] if told["generated"] is None else [each["id"] for each in told["generated"]["tokens"]]
    target = [well_known.PAD, *written]
    logits = right(name, folder / name, told["provenance"]["token_ids"], target).double()
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
