"""`attnscope verify`: every head, the model's final results, one exit code."""

import csv
import io
import json
from pathlib import Path

from checkpoints import tiny_bert

TEXT = "I was watching the [MASK] when it opened."


def test_every_layer_and_head_is_certified_and_nothing_changed(attnscope) -> None:
    result = attnscope("verify", TEXT, "-m", "demo")
    assert result.exit_code == 0
    told = " ".join(result.stdout.split())
    assert told.startswith(
        "All 48 encoder heads of demo come out as the model's own when recomputed, and watching"
    )
    rows = [line.split()[:4] for line in result.stdout.splitlines() if line.startswith("L")]
    assert rows == [[f"L{layer}", "12", "of", "12"] for layer in range(4)]
    assert f"attnscope heads '{TEXT}' -m demo" in told


def test_every_token_of_a_long_text_is_tried_where_that_is_asked_for(attnscope, tmp_path: Path) -> None:
    model, text = tiny_bert(tmp_path / "long", max_position_embeddings=1000), "the door opened " * 90
    settings = model / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"model_max_length": 1000}))
    sampled, whole = (attnscope("verify", text, "-m", str(model), *more) for more in ((), ("--every-token",)))
    assert (sampled.exit_code, whole.exit_code) == (0, 0)
    assert "--every-token tries them all" in " ".join(sampled.stdout.split())
    assert "halves" not in whole.stdout


def test_the_document_names_final_hidden_states_and_logits(attnscope) -> None:
    document = json.loads(attnscope("verify", TEXT, "-m", "demo", "--json").stdout)
    outputs = {output["name"]: output for output in document["outputs"]}
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


def test_the_numbers_can_be_written(attnscope, tmp_path: Path, bert: Path) -> None:
    target = tmp_path / "check.csv"
    assert attnscope("verify", TEXT, "-m", str(bert), "-o", str(target)).exit_code == 0
    rows = list(
        csv.DictReader(io.StringIO("".join(line for line in target.open() if not line.startswith("#"))))
    )
    assert {(row["layer"], row["head"]) for row in rows} == {
        (str(i), str(j)) for i in range(5) for j in range(4)
    }


def test_without_a_text_one_of_its_own_is_read(attnscope) -> None:
    masked, whole = (attnscope("verify", "-m", name, "--json") for name in ("demo", "demo-causal"))
    assert '"I was watching the door when [MASK] opened."' in masked.stdout
    assert '"I was watching the door when it opened."' in whole.stdout
    assert (masked.exit_code, whole.exit_code) == (0, 0)
    assert (masked.stderr, whole.stderr) == ("", "")
    typed = attnscope("verify", "I was watching the door when [MASK] opened.", "-m", "demo", "--json")
    assert typed.stdout == masked.stdout


def test_without_a_text_a_model_that_reads_none_is_refused_in_one_line(attnscope, tmp_path: Path) -> None:
    from media_models import save

    result = attnscope("verify", "-m", str(save("vit", tmp_path / "vit")))
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert "--image" in result.stderr
