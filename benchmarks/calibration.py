"""How often each sentence that says "more than chance" is said where there is nothing but chance.

    python benchmarks/calibration.py --kind pair --questions 200 --seed 0 --into calibration.jsonl
    python benchmarks/calibration.py --table --into calibration.jsonl

Every question goes to a model with random weights, a new one each time, of random sizes (BERT-like,
GPT-2-like, Llama-like; translators where there are two texts), and to a text of 6 to 60 tokens drawn from its
vocabulary.
Nothing links its words, so whatever is claimed is claimed by luck. Whether something is claimed is read from
what the sentence itself goes by. A line of the file is one question; what stands there is not asked again, so
a run that was cut off goes on where it was. Number and seed repeat a question.

The table says for each claim how often it is made, with the 95 % interval of that share (Clopper and Pearson
1934), and what is promised: 1 in 20 where the sentence says nothing else. `place` is where the text lies
among its own controls, from 0 to 1: in the mean .50 where it can be exchanged with any of them.
"""

import argparse
import copy
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.io import wavfile
from scipy.stats import beta, binom
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSpeechSeq2Seq,
    AutoProcessor,
)

import attnscope as at
from attnscope.analysis.inputs.replacing import trusted
from attnscope.demo import folder as folder_named
from attnscope.errors import AttnscopeError
from attnscope.results import Finding
from attnscope.results.base.evidence import LEAST
from attnscope.results.claims.prompts import Case as Overall
from attnscope.results.claims.ranking import Group
from attnscope.session.listener import Quiet
from attnscope.session.request import ModelRequest
from attnscope.verbs.ablate.result import Case as Moved
from attnscope.verbs.cite.result import Case as Cited
from attnscope.verbs.compare.question import InTexts
from attnscope.verbs.compare.texts_result import DriftCase as Drifted
from attnscope.verbs.compare.texts_result import SensesCase as Parted
from attnscope.verbs.compose.result import Case as Composed
from attnscope.verbs.corpus.result import Case as Apart
from attnscope.verbs.dependencies.result import Case as Related
from attnscope.verbs.find.needles import Fact
from attnscope.verbs.find.result import Case as Found
from attnscope.verbs.flow.result import Case as Flowed
from attnscope.verbs.why.result import Side

PROMISED = 0.05
CONTROLS = 39  # of which one may reach as far: 2 in 40
SHORTEST, LONGEST = 6, 60  # tokens of a text
SPREADS = 0.1, 0.2, 0.4  # of random weights: attention from nearly even to peaked
ENCODERS = "bert", "roberta", "distilbert"
DECODERS = "gpt2", "gpt_neox", "opt", "llama", "qwen3", "gemma2"
TRANSLATORS = "bart", "marian", "pegasus"


@dataclass(frozen=True)
class Told:
    """What was claimed, by claim; `rank` is the share of the controls that the text itself lies above."""

    claims: Mapping[str, bool]
    rank: float | None = None


def random_model(
    drawn: random.Random,
    families: Sequence[str] = ENCODERS + DECODERS,
    layers: Sequence[int] = (1, 2, 3),
    heads: Sequence[int] = (2, 3, 4, 6),
) -> at.Model:
    """One of 1 to 3 layers of 2 to 6 heads, with the tokenizer of a bundled model."""
    family, layers, heads = drawn.choice(families), drawn.choice(layers), drawn.choice(heads)
    name = "demo" if family in ENCODERS else "demo-translate" if family in TRANSLATORS else "demo-causal"
    tokenizer = bundled(name).tokenizer
    width = heads * drawn.choice((4, 8, 16))
    size = {
        **dict.fromkeys(("hidden_size", "n_embd", "dim", "word_embed_proj_dim", "d_model"), width),
        **dict.fromkeys(
            ("num_hidden_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers"), layers
        ),
        **dict.fromkeys(("num_attention_heads", "n_head", "n_heads"), heads),
        **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), heads),
        **dict.fromkeys(
            ("intermediate_size", "hidden_dim", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim"), 2 * width
        ),
        **dict.fromkeys(("initializer_range", "init_std"), drawn.choice(SPREADS)),
        **dict.fromkeys(("max_position_embeddings", "n_positions"), 2 * LONGEST),
        "num_key_value_heads": drawn.choice([each for each in range(1, heads + 1) if heads % each == 0]),
        "head_dim": width // heads,
    }
    named = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") or 0 for name in ("pad", "bos", "eos")
    }
    named["decoder_start_token_id"] = named["bos_token_id"]
    torch.manual_seed(drawn.getrandbits(32))
    config = AutoConfig.for_model(family, vocab_size=len(tokenizer), **size, **named)
    made = AutoModelForCausalLM
    if family not in DECODERS:
        made = AutoModelForMaskedLM if family in ENCODERS else AutoModelForSeq2SeqLM
    return at.wrap(made.from_config(config, attn_implementation="eager").eval(), tokenizer)


@cache
def bundled(name: str) -> at.Model:
    return at.load(name)


@cache
def words_of(tokenizer: Any) -> tuple[str, ...]:
    """Words that are one token."""
    return tuple(sorted(each for each in tokenizer.get_vocab() if each.isalpha() and each.islower()))


def random_text(
    model: at.Model, drawn: random.Random, *, most: int = LONGEST, again: bool | None = None
) -> str:
    """Words in no order; `again` says whether some stand there several times: by default in half of texts."""
    count = round(math.exp(drawn.uniform(math.log(SHORTEST), math.log(most)))) - 2
    every, again = words_of(model.tokenizer), drawn.random() < 0.5 if again is None else again
    return " ".join(
        drawn.choices(drawn.sample(every, max(2, count // 2)), k=count)
        if again
        else drawn.sample(every, count)
    )


def read(drawn: random.Random, again: bool | None = None, answers: bool = False, **size: Any) -> at.Reading:
    """A random text under a random model; where it `answers`, with a mask in a model that fills one."""
    model = random_model(drawn, **size)
    words = random_text(model, drawn, again=again).split()
    if answers and (mask := model.tokenizer.mask_token) is not None:
        words[drawn.randrange(len(words))] = mask
    return model.read(" ".join(words))


def random_translator(drawn: random.Random) -> at.Reading:
    model = random_model(drawn, TRANSLATORS)
    return model.read(random_text(model, drawn, most=30), target=random_text(model, drawn, most=30))


@contextmanager
def folder_of(model: at.Model) -> Iterator[str]:
    """The model as a checkpoint, for what takes a name."""
    with tempfile.TemporaryDirectory() as folder:
        model.module.save_pretrained(folder)
        model.tokenizer.save_pretrained(folder)
        yield folder


def a_head(reading: at.Reading, drawn: random.Random, first: int = 0) -> tuple[int, int]:
    """A layer, from the `first` on, and a head."""
    values = reading.overview().main.values
    return drawn.randrange(first, values.shape[0]), drawn.randrange(values.shape[1])


def ordinary(reading: at.Reading) -> list[int]:
    return [i for i, each in enumerate(reading.tokens.items) if not each.special]


def two_places(reading: at.Reading, drawn: random.Random) -> tuple[int, int]:
    """A query and a key that it may look at."""
    key, query = sorted(drawn.sample(ordinary(reading), 2))
    return query, key


def ranked(own: float, controls: np.ndarray) -> float:
    """The share of the controls below it, of as much as it half."""
    return float(((controls < own - 1e-9).mean() + (controls <= own + 1e-9).mean()) / 2)


def told_of(found: Finding) -> Told:
    claims = found.case in (Found.ONE, Found.SEVERAL)
    return Told({"": claims}, ranked(float(np.nanmax(found.evidence.excess)), found.controls.best_excess))


def pair(drawn: random.Random) -> Told:
    """`find TEXT --from A --to B`: heads look there far more than in control texts."""
    reading = read(drawn)
    query, key = two_places(reading, drawn)
    return told_of(reading.find(query, key, controls=CONTROLS, seed=drawn.getrandbits(16)))


def second_sink(drawn: random.Random) -> Told:
    """`find TEXT --from A --to B`, B drawing weight wherever it stands, as it is ten times as long."""
    model = random_model(drawn, DECODERS)
    text = random_text(model, drawn, again=False)
    reading = model.read(text)
    query, key = two_places(reading, drawn)
    with torch.no_grad():
        model.module.get_input_embeddings().weight[reading.tokens.ids[key]] *= 10
    return told_of(model.read(text).find(query, key, controls=CONTROLS, seed=drawn.getrandbits(16)))


def prompts(drawn: random.Random) -> Told:
    """`find PROMPTS --from field:a --to field:b`: over all prompts a head looks there beyond its controls."""
    model, every = random_model(drawn), []
    for _ in range(drawn.randint(6, 10)):
        words = random_text(model, drawn, most=20, again=False).split()
        key, query = sorted(drawn.sample(range(len(words)), 2))
        every.append({"text": " ".join(words), "spans": {"a": words[query], "b": words[key]}})
    found = model.prompts(every).find("field:a", "field:b", controls=9, seed=drawn.getrandbits(16))
    return Told({"": found.case is Overall.HOLDS})


def pattern(drawn: random.Random) -> Told:
    """`find TEXT --pattern P`: heads look at these keys far more than in controls, but in this text alone.

    Random weights may well prefer a token that is the query's own, in every text: no luck is what the head
    that is named does in a second text too, beyond its own controls there.
    """
    model, name = random_model(drawn), drawn.choice(("induction", "same"))
    first, second = (
        model.read(random_text(model, drawn, again=True)).find(
            pattern=name, controls=CONTROLS, seed=drawn.getrandbits(16)
        )
        for _ in range(2)
    )
    told = told_of(first)
    there = second.evidence.group(first.ranking[0]) in (Group.STANDS_OUT, Group.ABOVE_ITS_OWN)
    return Told({"in one text alone": told.claims[""] and not there}, told.rank)


def like(drawn: random.Random) -> Told:
    """`find TEXT --like HEAD`: heads are more like it here than in control texts."""
    reading = read(drawn)
    return told_of(reading.find(like=a_head(reading, drawn), controls=CONTROLS, seed=drawn.getrandbits(16)))


def links(drawn: random.Random) -> Told:
    """`find TEXT`: links stand out of all links of control texts."""
    found = read(drawn).links(controls=CONTROLS, seed=drawn.getrandbits(16))
    own = found.links[0].evidence if found.links else 0.0
    controls = np.where(found.best_of_controls < LEAST, 0.0, found.best_of_controls)
    return Told({"": found.standing_out > 0}, ranked(own, controls))


def explain(drawn: random.Random) -> Told:
    """`explain TEXT --from A --to B`: heads look there beyond controls; two earlier heads are why."""
    reading = read(drawn)
    found = reading.explain(*two_places(reading, drawn), controls=CONTROLS, seed=drawn.getrandbits(16))
    return Told({"heads look there": bool(found.standing_out), "because of two heads": bool(found.circuits)})


def why(drawn: random.Random) -> Told:
    """`why TEXT --head H --from A --to B` of a head's strongest key: it looks there because of a part."""
    reading = read(drawn, layers=(2, 3), heads=(4, 6))
    layer, head = a_head(reading, drawn, first=1)
    query, _ = two_places(reading, drawn)
    weights = reading.head(layer, head).weights[query]
    key = max((i for i in ordinary(reading) if i != query), key=lambda i: float(np.nan_to_num(weights[i])))
    found = reading.why(layer, head, query, key)
    heads = any(part.head is not None for side in Side for part in found.reasons_of(side))
    return Told({"because of a part": any(map(found.reasons_of, Side)), "because of a head": heads})


def ablate(drawn: random.Random) -> Told:
    """`ablate TEXT`: of all heads one moves the answer most."""
    return Told({"": read(drawn, answers=True).ablate().case is Moved.EACH})


def ablate_one(drawn: random.Random) -> Told:
    """`ablate TEXT --head H`: it moves the answer far more than the typical head, and more than any other."""
    reading = read(drawn, answers=True)
    layer, head = a_head(reading, drawn)
    return Told({"": reading.ablate(layer, head).case is Moved.MOVES})


def ablate_group(drawn: random.Random) -> Told:
    """`ablate TEXT --heads ...`, of two or three: nothing is claimed, other groups stand beside it."""
    reading = read(drawn, answers=True, layers=(2, 3), heads=(4, 6))
    heads = {a_head(reading, drawn) for _ in range(drawn.choice((2, 3)) + 1)}
    group = reading.ablate(heads=",".join(f"L{i}H{j}" for i, j in sorted(heads))).group
    assert group is not None, "several heads"
    return Told({}, group.below / group.controls if group.controls else None)


def ablate_places(drawn: random.Random) -> Told:
    """`ablate TEXT --part P --at pos:each`: of all places one moves the answer most."""
    found = read(drawn, answers=True).ablate(
        each=True, part=drawn.choice(("mlp", "attention", "head")), at="pos:each"
    )
    return Told({"": found.case is Moved.EACH})


def flow(drawn: random.Random) -> Told:
    """`flow TEXT --from A`: a method ranks tokens as replacing them does, which was done in another model.

    In one model gradients foretell what replacing does, whatever its weights are.
    """
    family = drawn.choice((ENCODERS, DECODERS))
    models = [random_model(drawn, family) for _ in range(2)]
    words = [drawn.choices(words_of(models[0].tokenizer), k=drawn.randint(8, 40))]
    words.append(drawn.choices(words_of(models[1].tokenizer), k=len(words[0])))
    query = len(words[0]) - drawn.randrange(2)
    mine, others = (each.read(" ".join(text)).flow(query) for each, text in zip(models, words, strict=True))
    assert mine.ablated is not None, "words can be replaced"
    assert others.ablated is not None, "and so they can there"
    away = np.abs(np.arange(len(mine.tokens)) - query)
    held = trusted(mine.methods, others.ablated.effects, -away.astype(float), drawn.getrandbits(16))
    beside = {"best_of_shuffled": held.best_of_shuffled, "as_far": held.as_far}
    told = replace(mine.ablated, effects=others.ablated.effects, trust=held.methods, **beside)
    claims = replace(mine, ablated=told).case is Flowed.AGREES
    return Told({"": claims}, None if told.best is None else 1 - told.as_far / told.controls)


def cite(drawn: random.Random) -> Told:
    """`cite TEXT --answer ANSWER`: a sentence of the answer comes from a passage."""
    model = random_model(drawn, DECODERS)
    passages = [random_text(model, drawn, most=12) for _ in range(drawn.randint(2, 5))]
    reading = model.read(" . ".join([*passages, random_text(model, drawn, most=8)]))
    found = reading.cite(random_text(model, drawn, most=10), by="sentence", gradients=False)
    return Told({"": Cited.FROM in found.cases})


def retrieval(drawn: random.Random) -> Told:
    """`find --pattern retrieval`: heads fetch a fact, of a model that knows each answer without its text."""
    model = random_model(drawn, ("gpt2", "opt"), heads=(3, 4, 6))
    every, ids = words_of(model.tokenizer), model.tokenizer.get_vocab()
    named = drawn.sample(every, 40)
    with torch.no_grad():
        head, words = model.module.lm_head, model.module.get_input_embeddings().weight
        head.weight = torch.nn.Parameter(head.weight.clone())
        for name, answer in zip(named[::2], named[1::2], strict=True):
            words[ids[name]] *= 10
            head.weight[ids[answer]] = words[ids[name]]
    filling = [each for each in every if each not in named]
    facts = [
        Fact(
            f"{' '.join(drawn.sample(filling, 2))} {name} {answer} .",
            f"{drawn.choice(filling)} {name}",
            answer,
        )
        for name, answer in zip(named[::2], named[1::2], strict=True)
    ]
    hay = " ".join(f"{' '.join(drawn.sample(filling, 4))} ." for _ in range(12))
    found = model.retrieval(hay, facts, lengths=(50,), needles=20, seed=drawn.getrandbits(16))
    return Told({"": bool(found.named)})


def senses(drawn: random.Random) -> Told:
    """`compare WORD --texts FILE` with labels drawn by lot: the labels part the word."""
    model = random_model(drawn)
    word, count = drawn.choice(words_of(model.tokenizer)), drawn.randint(8, 16)
    labels = drawn.sample(["a"] * (count // 2) + ["b"] * (count - count // 2), count)
    texts = list[str]()
    for label in labels:
        words = random_text(model, drawn, most=30).split()
        words[drawn.randrange(len(words))] = word
        once = [each for i, each in enumerate(words) if each != word or i == words.index(word)]
        texts.append(f"{label}\t{' '.join(once)}")
    with folder_of(model) as folder:
        file = Path(folder) / "texts.txt"
        file.write_text("\n".join(texts), "utf-8", newline="\n")
        asked = InTexts(word=word, texts=file, controls=199, seed=drawn.getrandbits(16))
        found = asked.answer(ModelRequest(folder), Quiet()).result
    parted = found.separation
    assert parted is not None, "there are labels"
    return Told({"": found.case is Parted.PARTED}, 1 - parted.reached / parted.controls)


def drift(drawn: random.Random) -> Told:
    """`compare --texts FILE -m A --model-b B`, B being A stored in bfloat16: heads moved beyond rounding."""
    model = random_model(drawn)
    other = at.wrap(copy.deepcopy(model.module).to(torch.bfloat16).to(torch.float32), model.tokenizer)
    found = model.compare(other, [random_text(model, drawn) for _ in range(drawn.randint(6, 10))])
    return Told({"": found.case is Drifted.MOVED})


def corpora(drawn: random.Random) -> Told:
    """`compare A.json B.json` of two samples of one source: heads differ by more than luck."""
    model = random_model(drawn)
    with folder_of(model) as folder:
        sides = []
        for side in "ab":
            file = Path(folder) / f"{side}.txt"
            file.write_text(
                "".join(f"{random_text(model, drawn)}\n" for _ in range(30)), encoding="utf-8", newline="\n"
            )
            sides.append(at.corpus(file, folder, measures="entropy", workers=0, progress=False))
    return Told({"": at.difference(*sides).case is Apart.APART})


def dependencies(drawn: random.Random) -> Told:
    """`dependencies FILE.conllu` of random trees: relations are found better by a head than by a distance."""
    model = random_model(drawn)
    lines = list[str]()
    for _ in range(60):
        words = random_text(model, drawn, most=20).split()
        root = drawn.randrange(len(words))
        for i, word in enumerate(words):
            above = drawn.choice([each for each in range(len(words)) if each != i])
            of = (
                ("0", "root")
                if i == root
                else (str(above + 1), drawn.choice(("det", "nsubj", "obj", "amod")))
            )
            lines.append("\t".join([str(i + 1), word, word, "X", "_", "_", *of, "_", "_"]))
        lines.append("")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "random.conllu"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        found = model.dependencies(file)
    return Told({"": found.case is Related.FOUND})


def align(drawn: random.Random) -> Told:
    """`align SOURCE --target TARGET`: heads agree on links more than with their rows shuffled."""
    reading = random_translator(drawn)
    found = reading.align()
    return Told({"": found.tells}, ranked(found.agreement, found.shuffled))


def align_audio(drawn: random.Random) -> Told:
    """`align --audio FILE` of noise that swells and fades: heads agree more than with words shuffled."""
    config = copy.deepcopy(bundled("demo-speech").module.config)
    config.init_std = drawn.choice(SPREADS)
    torch.manual_seed(drawn.getrandbits(32))
    noise = torch.randn(24_000) * torch.rand(24).repeat_interleave(1_000)
    made = AutoModelForSpeechSeq2Seq.from_config(config, attn_implementation="eager").eval()
    model = at.wrap(made, AutoProcessor.from_pretrained(folder_named("demo-speech")))
    words = drawn.choices(words_of(bundled("demo-speech").tokenizer), k=drawn.randint(3, 6))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "noise.wav"
        wavfile.write(file, 16_000, (noise / noise.abs().max()).numpy())
        found = model.read(audio=file, target=" ".join(words)).align()
    return Told({"": found.tells}, ranked(found.agreement, found.shuffled))


def compose(drawn: random.Random) -> Told:
    """`compose`: earlier heads write what later ones read, more than random circuits."""
    found = random_model(drawn, DECODERS, layers=(2, 3)).composition(seed=drawn.getrandbits(16))
    return Told({"": found.case in (Composed.ONE, Composed.SEVERAL)})


KINDS: dict[str, Callable[[random.Random], Told]] = {
    each.__name__.replace("_", " "): each
    for each in (
        pair, second_sink, prompts, pattern, like, retrieval, links, explain, why, ablate, ablate_one,
        ablate_group, ablate_places,
        flow, cite, senses, corpora, drift, dependencies, align, align_audio, compose,
    )
}  # fmt: skip


def asked(kind: str, number: int, seed: int) -> dict[str, Any]:
    """One question and its answer, or why it has none: what a line of the file says."""
    begun = time.process_time()
    line: dict[str, Any] = {"kind": kind, "seed": seed, "number": number}
    try:
        told = KINDS[kind](random.Random(f"{kind} {seed} {number}"))
        line |= {"claims": dict(told.claims)} | ({} if told.rank is None else {"rank": round(told.rank, 4)})
    except AttnscopeError as error:
        line["refused"] = str(error)
    return line | {"seconds": round(time.process_time() - begun, 2)}


def questions(
    kind: str, count: int, seed: int, known: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """As many as are still missing of so many that have an answer; at most half of them may have none."""
    own = [each for each in known if (each["kind"], each["seed"]) == (kind, seed)]
    answered, number = sum("claims" in each for each in own), len(own)
    while answered < count and number < 2 * count + 10:
        line = asked(kind, number, seed)
        answered, number = answered + ("claims" in line), number + 1
        yield line


def interval(hits: int, of: int) -> tuple[float, float]:
    """Of a share, with 95 % (Clopper and Pearson 1934)."""
    low = float(beta.ppf(0.025, hits, of - hits + 1)) if hits else 0.0
    return low, float(beta.ppf(0.975, hits + 1, of - hits)) if hits < of else 1.0


def most_by_luck(of: int, promised: float = PROMISED, luck: float = 0.001) -> int:
    """The most claims of so many questions that a rate as promised exceeds in fewer than 1 of 1,000 runs."""
    return int(binom.ppf(1 - luck, of, promised))


def table(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "| claim | questions | claimed | rate | 95 % interval | promised | place |"
    yield "|---|---|---|---|---|---|---|"
    for kind in KINDS:
        own = [each for each in lines if each["kind"] == kind and "claims" in each]
        ranks = [each["rank"] for each in own if "rank" in each]
        place = f"{np.mean(ranks):.2f} ± {1.96 * np.std(ranks) / len(ranks) ** 0.5:.2f}" if ranks else "–"
        for claim in own[0]["claims"] if own else ():
            hits, of = sum(each["claims"][claim] for each in own), len(own)
            low, high = interval(hits, of)
            name = f"{kind}: {claim}" if claim else kind
            rate = f"{hits / of:.3f} | {low:.3f} to {high:.3f}"
            yield f"| {name} | {of} | {hits} | {rate} | {PROMISED} | {place} |"
        if own and not own[0]["claims"]:
            yield f"| {kind} | {len(own)} | – | – | – | – | {place} |"


def lines_in(file: Path) -> list[dict[str, Any]]:
    return (
        [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS, nargs="*", default=[*KINDS])
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--into", type=Path, default=Path("calibration.jsonl"))
    parser.add_argument("--table", action="store_true", help="only print what the file has")
    given = parser.parse_args()
    for kind in () if given.table else given.kind:
        with given.into.open("a", encoding="utf-8", newline="\n") as file:
            for line in questions(kind, given.questions, given.seed, lines_in(given.into)):
                print(json.dumps(line), file=file, flush=True)
    print("\n".join(table(lines_in(given.into))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
