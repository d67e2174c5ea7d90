"""Words linked and timed: against what the generators of the bundled models know, and plain scripts."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
import transformers as hf
from typer.testing import CliRunner

import attnscope as at
from attnscope.cli.app import app
from attnscope.demo import folder
from attnscope.demo.train.evaluation import gold as generated
from attnscope.results import Alignment, Timing, Verdict
from attnscope.verbs.align import judging
from attnscope.verbs.align.judging import strongest
from attnscope.verbs.align.result import Case, Weighing

SOUND = folder("demo-speech") / "example.wav"
SENTENCE, TRANSLATION = "The red door opened.", "la porte rouge s'est ouverte."


@pytest.fixture(scope="module")
def translator() -> at.Model:
    return at.load("demo-translate")


@pytest.fixture(scope="module")
def listener() -> at.Model:
    return at.load("demo-speech")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gold of both models, to learn on and to judge by."""
    path = tmp_path_factory.mktemp("gold")
    for name, part, count in (("few", "learn", 15), ("learn", "learn", 60), ("judge", "judge", 60)):
        (path / f"{name}.txt").write_text("\n".join(generated.links(count, part)) + "\n")
    for part, count in (("learn", 20), ("judge", 20)):
        (path / part).mkdir()
        lines = "\n".join(generated.times(count, part, path / part))
        (path / part / "times.tsv").write_text(lines + "\n")
    return path


def test_the_links_of_a_sentence_are_made_of_the_weights_that_transformers_returns(
    translator: at.Model,
) -> None:
    result = translator.read(SENTENCE).align()
    assert isinstance(result, Alignment)
    assert result.query_tokens.names == ("la", "porte", "rouge", "s'est", "ouverte", ".")
    assert result.pharaoh == "0-0 1-2 2-1 3-3 3-4 4-5"
    assert result.tells
    assert result.verdict is Verdict.CERTIFIED
    assert result.weighing is Weighing.SHARPNESS
    assert sum(each.share for each in result.weighed) == pytest.approx(1)
    assert all(link.confidence is None for link in result.links)
    result = translator.read(SENTENCE, target=TRANSLATION).align()
    read = translator.tokenizer(SENTENCE, return_tensors="pt")["input_ids"]
    asked = torch.tensor([[2, *translator.tokenizer(text_target=TRANSLATION)["input_ids"][:-1]]])
    with torch.no_grad():
        output = translator.module(input_ids=read, decoder_input_ids=asked, output_attentions=True)
    weights = torch.cat(output.cross_attentions).flatten(0, 1).double().numpy()
    share = {(each.layer, each.head): each.share for each in result.weighed}
    expected = np.zeros((6, 5))
    for place, head in enumerate(weights):
        rows = np.stack(
            [head[[p - 1 for p in own]].mean(0) for own in ((1,), (2,), (3,), (4, 5), (6,), (7,))]
        )
        own = rows[:, :5]
        both = np.sqrt(own * own / (own.sum(axis=0) + 0.1))
        expected += share.get(divmod(place, 12), 0.0) * both
    assert result.strengths == pytest.approx(expected, abs=1e-6)
    forth, back = strongest(expected)
    assert {(each.query, each.key) for each in result.links} == set(map(tuple, np.argwhere(forth | back)))


def test_what_is_learnt_is_better_and_as_sure_as_it_is_right(translator: at.Model, files: Path) -> None:
    result = translator.read(SENTENCE).align(learn=files / "learn.txt", gold=files / "judge.txt")
    judged = result.judged
    assert judged is not None
    error = {each.name: each.error for each in judged.scores}
    assert error["these links"] < 0.05 < error["mean of heads"] < error["diagonal"] < error["any word"]
    assert judged.own.found > 0.98
    high = [each for each in judged.reliability if each.low >= 0.9]
    right = sum(each.count * each.right for each in high) / sum(each.count for each in high)
    assert right >= 0.9
    assert sum(each.count for each in high) > 300
    assert judged.certified == 3 + 3
    assert not judged.held_out
    assert all((link.confidence or 0) > 0.5 for link in result.links)


def test_each_fifth_of_what_is_learnt_on_is_judged_by_the_others(translator: at.Model, files: Path) -> None:
    judged = translator.read(SENTENCE).align(learn=files / "few.txt").judged
    assert judged is not None
    assert judged.held_out
    assert judged.cases == 15
    assert 0 < judged.own.error < 0.08


def test_gold_of_the_pair_itself_marks_its_links(translator: at.Model, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("0-0 2-1 1-2 3?3 3-4 0-5\n")
    result = translator.read(SENTENCE).align(gold=tmp_path / "own.txt")
    told = {(link.key, link.query): link.gold for link in result.links}
    assert told == {
        (0, 0): "sure", (2, 1): "sure", (1, 2): "sure", (3, 3): "possible", (3, 4): "sure", (4, 5): "none"
    }  # fmt: skip
    assert result.judged is not None
    assert result.judged.own.recall == 4 / 5
    assert result.judged.own.precision == 5 / 6


def test_words_are_timed_better_than_as_published(listener: at.Model, files: Path) -> None:
    result = listener.read(audio=SOUND).align(gold=files / "judge" / "times.tsv")
    assert isinstance(result, Timing)
    assert result.judged is not None
    begins = {each.name: each.begin_median for each in result.judged.scores}
    assert begins["these times"] < 25
    assert begins["as published"] > 120
    assert begins["equal pieces"] > 90
    assert result.judged.own.begin_within > 0.93
    assert result.judged.own.end_median < 45


def test_times_are_as_sure_as_they_are_right(listener: at.Model, files: Path) -> None:
    result = listener.read(audio=SOUND).align(
        learn=files / "learn" / "times.tsv", gold=files / "judge" / "times.tsv"
    )
    assert result.judged is not None
    said = sum(each.count * each.said for each in result.judged.reliability)
    right = sum(each.count * each.right for each in result.judged.reliability)
    assert said == pytest.approx(right, abs=0.06 * result.judged.words)


def random_copy(name: str, path: Path, config: hf.PretrainedConfig, kind: type) -> at.Model:
    """A model of another family, or untrained, with the tokenizer and processor of a bundled one."""
    shutil.copytree(folder(name), path, ignore=shutil.ignore_patterns("model.safetensors", "config.json"))
    torch.manual_seed(0)
    kind(config).save_pretrained(path)
    return at.load(str(path))


def test_a_model_that_knows_nothing_says_so(files: Path, tmp_path: Path) -> None:
    config = hf.T5Config(
        vocab_size=3066, pad_token_id=0, bos_token_id=2, eos_token_id=3, decoder_start_token_id=2,
        d_model=32, d_kv=8, num_layers=2, num_heads=4, d_ff=32,
    )  # fmt: skip
    model = random_copy("demo-translate", tmp_path / "random", config, hf.T5ForConditionalGeneration)
    reading = model.read(
        "the red door of the house was not very dirty .", target="la porte rouge n'était pas très sale ."
    )
    assert reading.align().case is Case.NOTHING
    learnt = reading.align(learn=files / "few.txt")
    assert learnt.judged is not None
    assert all(each.said < 0.9 or each.right > 0.8 for each in learnt.judged.reliability)
    assert learnt.judged.own.recall < 0.3


def test_a_recogniser_that_knows_nothing_says_so(tmp_path: Path) -> None:
    config = hf.AutoConfig.from_pretrained(folder("demo-speech"))
    model = random_copy("demo-speech", tmp_path / "random", config, hf.WhisperForConditionalGeneration)
    result = model.read(audio=SOUND, target="sataita sisu mamai").align()
    assert (result.case, len(result.times)) == (Case.NOTHING, 3)


def test_heads_that_agree_over_many_frames_tell_something_however_little_each_frame_has() -> None:
    """Rows of 200 frames, as Whisper's: a word's weight lies over some twenty of them."""
    result, seeds = at.load("demo-speech").read(audio=SOUND, target="sataita sisu mamai").align(), range(3)
    frames, shares = np.arange(200), judging.even(6)
    for seed in seeds:
        centres = np.linspace(10, 190, 9) + np.random.default_rng(seed).normal(0, 4, (6, 9))
        follow = np.exp(-0.5 * ((frames - centres[..., None]) / 9) ** 2) + 0.05
        follow /= follow.sum(axis=2, keepdims=True)
        own = np.random.default_rng(seed).permuted(np.tile(np.arange(9), (6, 1)), axis=1)
        for rows, tells in ((follow, True), (follow[np.arange(6)[:, None], own], False)):
            found, others = judging.agreement(rows, shares), judging.shuffled(rows, shares)
            assert found < 0.05
            assert replace(result, agreement=found, shuffled=others).tells is tells
    nearly = replace(result, agreement=0.0102, shuffled=np.full(99, 0.01))
    assert nearly.p == 0.01
    assert not nearly.tells, "a random model's heads are alike by a hundredth: their rows begin alike"


def test_what_of_a_sound_is_filled_up_is_said_of_whatever_has_frames_as_keys(tmp_path: Path) -> None:
    """demo-speech reads 3 s, so that a sound of 1.23 s is filled up with silence; one of 3 s is not."""
    model, rate = at.load("demo-speech"), 16_000
    samples, _ = soundfile.read(SOUND)
    for seconds, said in ((1.23, True), (3.0, False), (3.5, False)):
        file = tmp_path / f"{seconds}.wav"
        soundfile.write(file, np.resize(samples, int(seconds * rate)), rate)
        reading = model.read(audio=file, target="sataita sisu mamai")
        found = reading.find("sisu", "0.40s", kind="cross", controls=1)
        frames = found.key_tokens
        silent = sum(float(name.removesuffix("s")) >= seconds for name in frames.names)
        assert bool(silent) is said
        told = [note for note in found.notes if "silence after its end" in note]
        assert [note.split()[:3] for note in told] == [[str(silent), "of", str(len(frames))]] * said
        if said:
            assert {*told} <= {*reading.tsne(1, 2, kind="cross", max_iter=250).head.notes}


def test_heads_that_a_model_names_or_that_are_given_are_used_just_so(tmp_path: Path) -> None:
    shutil.copytree(folder("demo-speech"), tmp_path / "named")
    settings = hf.GenerationConfig.from_pretrained(tmp_path / "named")
    settings.alignment_heads = [[1, 3], [0, 2]]
    settings.save_pretrained(tmp_path / "named")
    by_model = at.load(str(tmp_path / "named")).read(audio=SOUND).align()
    assert by_model.weighing is Weighing.MODEL
    assert {(each.layer, each.head): each.share for each in by_model.weighed} == {(1, 3): 0.5, (0, 2): 0.5}
    assert "alignment_heads" in by_model.text()
    reading = at.load("demo-speech").read(audio=SOUND)
    given = reading.align(heads="L1H3,L0H2")
    assert given.weighing is Weighing.GIVEN
    assert given.weighed == by_model.weighed
    assert given.times == by_model.times
    assert given.agreement == pytest.approx(by_model.agreement)
    assert reading.align(heads="L1H3").weighed == reading.align(layers=1, heads=3).weighed
    assert given.times != reading.align(heads="L1H2,L0H3").times
    assert reading.align(layers=1).weighing is Weighing.SHARPNESS
    status, shown, _ = run("--audio", str(SOUND), "-m", str(tmp_path / "named"), "--head", "L1H2,L0H3")
    assert (status, "were given count alike: 2" in " ".join(shown.split())) == (0, True)
    assert reading.align(heads="L1H3").case is Case.ONE_HEAD, "which no head agrees with"


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["align", *arguments])
    return done.exit_code, done.stdout, done.stderr.strip().splitlines()[-1] if done.stderr else ""


def test_files_are_what_other_tools_read(tmp_path: Path) -> None:
    out = [str(tmp_path / f"a{suffix}") for suffix in (".pharaoh", ".tsv", ".json", ".csv", ".npz")]
    code, _, _ = run(SENTENCE, "-m", "demo-translate", "-q", *(word for each in out for word in ("-o", each)))
    assert code == 0
    assert (tmp_path / "a.pharaoh").read_text() == "0-0 1-2 2-1 3-3 3-4 4-5\n"
    assert (tmp_path / "a.tsv").read_text().splitlines()[2].split("\t")[:4] == ["2", "1", "door", "porte"]
    again = at.results.load(tmp_path / "a.json")
    assert isinstance(again, Alignment)
    assert again.pharaoh == "0-0 1-2 2-1 3-3 3-4 4-5"
    out = [str(tmp_path / f"s{suffix}") for suffix in (".srt", ".vtt", ".tsv", ".json")]
    code, _, _ = run(
        "--audio", str(SOUND), "-m", "demo-speech", "-q", *(word for each in out for word in ("-o", each))
    )
    assert code == 0
    srt, vtt = (tmp_path / "s.srt").read_text(), (tmp_path / "s.vtt").read_text()
    assert srt.startswith("1\n00:00:00,360 --> 00:00:00,920\nsataita\n\n2\n")
    assert vtt.startswith("WEBVTT\n\n00:00:00.360 --> 00:00:00.920\nsataita\n")
    word, begin, end = (tmp_path / "s.tsv").read_text().splitlines()[1].split("\t")
    assert (word, float(begin), float(end)) == ("sisu", 1.08, 1.44)
    code, shown, _ = run("--audio", str(SOUND), "-m", "demo-speech", "--gold", out[2])
    assert code == 0
    assert "at most 0 ms" in shown


def test_what_cannot_be_aligned_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "far.txt").write_text("0-0 7-1\n")
    (tmp_path / "learn.txt").write_text("a dog ||| un chien ||| 0-0 1-1\n" * 2)
    (tmp_path / "words.tsv").write_text("sataita\t0.3\t0.9\nsosu\t1\t1.4\nmamai\t1.8\t2.1\n")
    there, far = ("-m", "demo-translate"), str(tmp_path / "far.txt")
    cases = {
        (SENTENCE, "-m", "demo"): "demo has no cross-attention, only encoder attention: attnscope find TEXT",
        (SENTENCE, "-m", "demo-translate", "--kind", "encoder"): "reads cross-attention, not encoder",
        (SENTENCE, "-m", "demo-translate", "--target", " "): "the target text is empty",
        (SENTENCE, *there, "--gold", far): "far.txt:1: link 7-1 does not",
        (SENTENCE, *there, "--learn", far): "learnt on source |||",
        (SENTENCE, "-m", "demo-translate", "-o", "x.srt"): "the name must end in",
        (SENTENCE, "-m", "demo-translate", "--gold", "nowhere.txt"): "nowhere.txt': no such file",
        ("--audio", str(SOUND), "-m", "demo-speech", "--gold", str(tmp_path / "words.tsv")):
            "word 1 of the gold is 'sosu', of what is timed 'sisu'",
        ("--image", str(SOUND), "-m", "demo-caption"): "align takes a text or a sound",
        (SENTENCE, *there, "--head", "L1H2,L0H3", "--learn", str(tmp_path / "learn.txt")): "count alike",
    }  # fmt: skip
    for arguments, told in cases.items():
        code, shown, line = run(*arguments)
        assert (code, shown) == (2, ""), line
        assert told in line


def test_a_sound_without_speech_is_told(tmp_path: Path) -> None:
    import wave

    random = np.random.default_rng(0)
    for name, samples in (("silence", np.zeros(24000)), ("hiss", random.uniform(-0.001, 0.001, 24000))):
        with wave.open(str(tmp_path / f"{name}.wav"), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes((samples * 32767).astype("<i2").tobytes())
    assert run("--audio", str(tmp_path / "silence.wav"), "-m", "demo-speech")[2].endswith("no speech to time")
    assert "hears no word in hiss.wav" in run("--audio", str(tmp_path / "hiss.wav"), "-m", "demo-speech")[2]


def test_a_translation_with_a_piece_that_nobody_can_spell_is_linked_word_by_word_too(
    translator: at.Model,
) -> None:
    found = translator.read("the old man saw the red dog .").align()
    assert "[UNK]" in [each.piece for each in found.query_tokens.items]
    words = [each.text for each in found.query_tokens.items]
    assert [word for word in ("l'homme", "vu", "chien") if word not in words] == []
