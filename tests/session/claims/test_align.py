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
from attnscope.analysis.claims.alignment import weighing
from attnscope.analysis.claims.alignment.linking import by_words, strongest
from attnscope.analysis.claims.alignment.weighing import by_sharpness, mixed
from attnscope.cli.app import app
from attnscope.demo import folder
from attnscope.demo.train.corpora import translation
from attnscope.demo.train.evaluation import alignment as figures
from attnscope.demo.train.evaluation import gold as generated
from attnscope.demo.train.evaluation.speech import evaluated
from attnscope.results import Alignment, Timing, Verdict
from attnscope.results.claims.alignment import Case, Weighing

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
    for part, count in (("learn", 60), ("judge", 60)):
        (path / f"{part}.txt").write_text("\n".join(generated.links(count, part)) + "\n")
    for part, count in (("learn", 30), ("judge", 30)):
        (path / part).mkdir()
        lines = "\n".join(generated.times(count, part, path / part))
        (path / part / "times.tsv").write_text(lines + "\n")
    return path


def test_words_are_linked_as_a_plain_script_does_and_better() -> None:
    """Mean of heads and argmax by transformers alone; what both sides of every head say finds more."""
    tokenizer = hf.AutoTokenizer.from_pretrained(folder("demo-translate"))
    model = hf.BartForConditionalGeneration.from_pretrained(
        folder("demo-translate"), attn_implementation="eager"
    ).eval()
    plain, ours, words = 0, 0, 0
    for pair in translation.held_out_sentences(figures.REPORTED, 100):
        weights = figures.cross_weights(model, tokenizer, pair).double().flatten(0, 1).numpy()
        mean = weights.mean(0)[:-1, :-1]  # the row before writes the word; [EOS] is no word
        groups = tuple((i + 1,) for i in range(len(pair.french)))
        seen = by_words(weights, groups, tuple((j,) for j in range(len(pair.english))))
        assert seen.writes.mean(axis=0) == pytest.approx(mean)
        strengths = mixed(seen.says, by_sharpness(seen.writes))
        for i, sources in enumerate(pair.sources):
            if sources:
                words += 1
                plain += mean[i].argmax() in sources
                ours += strengths[i].argmax() in sources
    assert 0.94 < plain / words < 0.965
    assert ours / words > plain / words + 0.01


def test_the_links_of_a_sentence_are_those_that_its_words_have(translator: at.Model) -> None:
    result = translator.read(SENTENCE).align()
    assert isinstance(result, Alignment)
    assert result.query_tokens.names == ("la", "porte", "rouge", "s'est", "ouverte", ".")
    assert result.pharaoh == "0-0 1-2 2-1 3-3 3-4 4-5"
    assert result.tells
    assert result.verdict is Verdict.CERTIFIED
    assert result.weighing is Weighing.SHARPNESS
    assert sum(each.share for each in result.weighed) == pytest.approx(1)
    assert all(link.confidence is None for link in result.links)


def test_strengths_are_made_of_the_weights_that_transformers_returns(translator: at.Model) -> None:
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
    judged = translator.read(SENTENCE).align(learn=files / "learn.txt").judged
    assert judged is not None
    assert judged.held_out
    assert judged.cases == 60
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


def test_the_example_is_timed_where_its_words_are(listener: at.Model) -> None:
    clip = evaluated("example", 1, first=7)[0]
    times = listener.read(audio=SOUND).align().times
    for found, (_, begin, end) in zip(times, generated.word_times(clip), strict=True):
        assert abs(found.begin - begin) < 0.1
        assert abs(found.end - end) < 0.15


def random_copy(name: str, path: Path, config: hf.PretrainedConfig, kind: type) -> at.Model:
    """A model of another family, or untrained, with the tokenizer and processor of a bundled one."""
    shutil.copytree(folder(name), path, ignore=shutil.ignore_patterns("model.safetensors", "config.json"))
    torch.manual_seed(0)
    kind(config).save_pretrained(path)
    return at.load(str(path))


def of_translator(kind: type, **more: object) -> hf.PretrainedConfig:
    size = {
        "vocab_size": 3066,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "decoder_start_token_id": 2,
    }
    return kind(**size, **more)


_HEADS = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_position_embeddings": 64}
_WIDE = {"d_model": 32, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
_T5 = {"d_model": 32, "d_kv": 8, "num_layers": 2, "num_heads": 4, "d_ff": 32}
FAMILIES = {
    "Marian": (
        hf.MarianMTModel,
        hf.MarianConfig,
        {"encoder_layers": 2, "decoder_layers": 2, **_HEADS, **_WIDE},
    ),
    "T5": (hf.T5ForConditionalGeneration, hf.T5Config, _T5),
    "BART": (
        hf.BartForConditionalGeneration,
        hf.BartConfig,
        {"encoder_layers": 1, "decoder_layers": 3, **_HEADS, **_WIDE},
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_that_knows_nothing_says_so(family: str, files: Path, tmp_path: Path) -> None:
    kind, config, sizes = FAMILIES[family]
    model = random_copy("demo-translate", tmp_path / "random", of_translator(config, **sizes), kind)
    source, target = (
        "the red door of the house was not very dirty .",
        "la porte rouge n'était pas très sale .",
    )
    result = model.read(source, target=target).align()
    assert result.case is Case.NOTHING
    learnt = model.read(source, target=target).align(learn=files / "learn.txt")
    assert learnt.judged is not None
    assert all(each.said < 0.9 or each.right > 0.8 for each in learnt.judged.reliability)
    assert learnt.judged.own.recall < 0.3


def test_a_recogniser_that_knows_nothing_says_so(tmp_path: Path) -> None:
    config = hf.AutoConfig.from_pretrained(folder("demo-speech"))
    model = random_copy("demo-speech", tmp_path / "random", config, hf.WhisperForConditionalGeneration)
    result = model.read(audio=SOUND, target="sataita sisu mamai").align()
    assert result.case is Case.NOTHING
    assert len(result.times) == 3


def test_heads_that_agree_over_many_frames_tell_something_however_little_each_frame_has() -> None:
    """Rows of 200 frames, as Whisper's: a word's weight lies over some twenty of them."""
    result, seeds = at.load("demo-speech").read(audio=SOUND, target="sataita sisu mamai").align(), range(3)
    frames, shares = np.arange(200), weighing.even(6)
    for seed in seeds:
        centres = np.linspace(10, 190, 9) + np.random.default_rng(seed).normal(0, 4, (6, 9))
        follow = np.exp(-0.5 * ((frames - centres[..., None]) / 9) ** 2) + 0.05
        follow /= follow.sum(axis=2, keepdims=True)
        own = np.random.default_rng(seed).permuted(np.tile(np.arange(9), (6, 1)), axis=1)
        for rows, tells in ((follow, True), (follow[np.arange(6)[:, None], own], False)):
            found, others = weighing.agreement(rows, shares), weighing.shuffled(rows, shares)
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


def test_heads_that_a_model_names_itself_are_used(tmp_path: Path) -> None:
    shutil.copytree(folder("demo-speech"), tmp_path / "named")
    settings = hf.GenerationConfig.from_pretrained(tmp_path / "named")
    settings.alignment_heads = [[1, 3], [0, 3]]
    settings.save_pretrained(tmp_path / "named")
    result = at.load(str(tmp_path / "named")).read(audio=SOUND).align()
    assert result.weighing is Weighing.MODEL
    assert {(each.layer, each.head): each.share for each in result.weighed} == {(1, 3): 0.5, (0, 3): 0.5}
    assert "alignment_heads" in result.text()


def test_heads_that_are_given_are_used_just_so(tmp_path: Path) -> None:
    shutil.copytree(folder("demo-speech"), tmp_path / "named")
    settings = hf.GenerationConfig.from_pretrained(tmp_path / "named")
    named = settings.alignment_heads = [[1, 3], [0, 2]]
    settings.save_pretrained(tmp_path / "named")
    by_model = at.load(str(tmp_path / "named")).read(audio=SOUND).align()
    reading = at.load("demo-speech").read(audio=SOUND)
    given = reading.align(heads="L1H3,L0H2")
    assert given.weighing is Weighing.GIVEN
    assert {(each.layer, each.head) for each in given.weighed} == {tuple(each) for each in named}
    assert given.times == by_model.times
    assert given.agreement == pytest.approx(by_model.agreement)
    assert reading.align(heads="L1H3").weighed == reading.align(layers=1, heads=3).weighed
    assert given.times != reading.align(heads="L1H2,L0H3").times
    assert reading.align(layers=1).weighing is Weighing.SHARPNESS
    status, shown, _ = run("--audio", str(SOUND), "-m", str(tmp_path / "named"), "--head", "L1H2,L0H3")
    assert (status, "were given count alike: 2" in " ".join(shown.split())) == (0, True)
    assert reading.align(heads="L1H3").case is Case.ONE_HEAD, "which no head agrees with"


def test_heads_one_by_one_and_what_is_learnt_of_heads_do_not_go_together(files: Path) -> None:
    learn = ("--learn", str(files / "learn" / "times.tsv"))
    status, _, told = run("--audio", str(SOUND), "-m", "demo-speech", "--head", "L1H2,L0H3", *learn)
    assert (status, "count alike" in told) == (2, True)


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
