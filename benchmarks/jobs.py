"""The four jobs of docs/guide/jobs.md beside plain scripts of the same figures (`job_scripts.py`).

    python benchmarks/jobs.py [RUNS]               models open: what remains once they are
    python benchmarks/jobs.py [RUNS] --processes   commands: what a person at the terminal waits for

Each script has its figures from plain transformers (`output_attentions`, hooks on the way out of the heads)
and NumPy, and they must be those of attnscope. Of `cite` and of drift there are two scripts: one of the
figures that people ask for first, one of all that ours has beside them (`cite.py`, `drift.py`). Models open:
user time of the processor, both sides in one process in turn on one thread, medians. As commands: the
processor and the clock of whole processes on one thread, in turn, medians; both print their answer, nothing
is kept from one to the next, and everything is counted, importing and loading too. Ours certifies heads
besides.
"""

import argparse
import json
import logging
import resource
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cite
import drift
import job_scripts
import numpy as np
import soundfile
import torch
import transformers
from pairs import ATTNSCOPE, cost
from startup import settings

import attnscope
from attnscope.demo import folder as demo_folder
from attnscope.demo.train.evaluation import gold
from attnscope.verbs.find.question import Retrieve
from attnscope.verbs.find.retrieving import texts_of

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "specimens"))

SOURCE, TARGET = "The red door opened.", "la porte rouge s'est ouverte."
PAIR = {"source": SOURCE, "target": TARGET}
FACTS = (
    "The key of Norris is blue. The lamp of Holso is green. The hat of Kormel is white. Velmir has a red cup."
)
ASKED = FACTS + " Question: what is the cup of Velmir? Answer:"
LENGTH, PAIRS = 128, 200
Work = Callable[[], Any]


def main() -> None:
    """Every job, the script and ours in turn."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=int, nargs="?", default=3)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--only", nargs="*", help="the names of jobs, as they are printed")
    given = parser.parse_args()
    logging.getLogger("attnscope").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    for name, job in () if given.processes else JOBS.items():
        if given.only and name not in given.only:
            continue
        ours, script = job()
        spent: list[list[float]] = [[], []]
        for _ in range(given.runs):
            for side, work in zip(spent, (ours, script), strict=True):
                before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
                work()
                side.append(resource.getrusage(resource.RUSAGE_SELF).ru_utime - before)
        tell(name, "processor", *spent)
    if given.processes:
        as_processes(given.runs, given.only)


def tell(name: str, what: str, ours: list[float], script: list[float]) -> None:
    """Medians of both, and of their ratios."""
    own, plain = map(statistics.median, (ours, script))
    ratio = statistics.median(a / b for a, b in zip(ours, script, strict=True))
    print(f"{name:<17} {what:<9} ours {own:6.2f} s  script {plain:6.2f} s  {ratio:5.2f} x", flush=True)


def as_processes(runs: int, only: list[str] | None) -> None:
    """Every command beside its script."""
    with tempfile.TemporaryDirectory() as work:
        for name, script, command, given in commands(Path(work)):
            if only and name not in only:
                continue
            file = Path(work) / f"{name}.json"
            file.write_text(json.dumps(given), "utf-8", newline="\n")
            sides = [ATTNSCOPE, *command], [sys.executable, job_scripts.__file__, script, str(file)]
            for each in sides:  # byte code is made, files are in memory
                cost(each, **settings(work))
            spent = [[cost(each, **settings(work)) for each in sides] for _ in range(runs)]
            for what, of in (("processor", "cpu"), ("clock", "seconds")):
                tell(name, what, *([getattr(pair[i], of) for pair in spent] for i in (0, 1)))


def commands(work: Path) -> Iterator[tuple[str, str, list[str], dict[str, Any]]]:
    """What each is called, its script, our command, and what the script is given."""
    translator = {"folder": str(demo_folder("demo-translate")), "kind": "BartForConditionalGeneration"}
    pair = ["align", SOURCE, "--target", TARGET, "-m", "demo-translate"]
    yield "align", "align", pair, translator | PAIR
    lines, file = [*gold.links(PAIRS, "judge")], work / "gold.txt"
    file.write_text("\n".join(lines) + "\n", "utf-8", newline="\n")
    yield "align_gold", "gold", [*pair, "--gold", str(file)], translator | {"lines": lines}
    speech = demo_folder("demo-speech")
    heard = {"folder": str(speech), "kind": "WhisperForConditionalGeneration"}
    heard["sound"] = sound = str(speech / "example.wav")
    for script in ("timed", "heard"):
        yield script, script, ["align", "--audio", sound, "-m", "demo-speech"], heard
    reader = str(demo_folder("demo-reader"))
    for name, folder in (("", reader), ("_base", _saved(work / "reader", of_base_size(), reader))):
        model = {"folder": folder, "kind": "LlamaForCausalLM"}
        asked = ["cite", ASKED, "--answer", "red", "-m", folder]
        said = {"text": ASKED, "answer": "red"}
        yield f"cite{name}", "cite", asked, model | said
        yield f"cite_attention{name}", "cite", [*asked, "--no-gradients"], model | said
        finding = ["find", "--pattern", "retrieval", "--lengths", str(LENGTH), "-m", folder]
        yield f"retrieval{name}", "retrieval", finding, model | facts_in(attnscope.load(folder, attn="eager"))
    from planted import random_bert, tuned

    texts, file = texts_of_drift(), work / "texts.txt"
    file.write_text("\n".join(texts) + "\n", "utf-8", newline="\n")
    sizes = {"": drift.encoder(), "_base": random_bert(0, len(drift.numbered()), 768)}
    for name, old in sizes.items():
        first, second = (
            _saved(work / f"{which}{name}", each, str(drift.ENCODER))
            for which, each in (("old", old), ("new", tuned(old, 2, 5, 0.5)))
        )
        comparing = ["compare", "--texts", str(file), "-m", first, "--model-b", second]
        both = {"folder": first, "second": second, "kind": "BertForMaskedLM", "texts": texts}
        yield f"drift{name}", "drift", comparing, both


def _saved(folder: Path, model: Any, tokenizer: str) -> str:
    """The folder of a checkpoint with the tokenizer of another one."""
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(tokenizer).save_pretrained(folder)
    return str(folder)


def same(ours: Any, plain: Any, what: str) -> None:
    """Stops where both do not have the same figures."""
    far = float(np.abs(np.asarray(ours, float) - np.asarray(plain, float)).max())
    if not far < 1e-5:
        sys.exit(f"{what}: off by {far:.2g}")


def align() -> tuple[Work, Work]:
    """How strongly words are linked, and how far heads agree, in the text and with their rows shuffled."""
    model = attnscope.load("demo-translate", attn="eager")

    def ours() -> Any:
        return model.read(SOURCE, target=TARGET).align()

    def script() -> tuple[Any, Any]:
        return job_scripts.align(model.module, model.tokenizer, PAIR)

    same(ours().strengths, script()[0], "strengths of links")
    return ours, script


def times() -> tuple[Work, Work]:
    """Ten seconds of sound read, written and timed, beside the recogniser, which writes the same alone.

    Its weights are random (6 + 6 layers of 512); what it writes is exchanged for words that can be timed.
    """
    folder, sound = job_scripts.recogniser(str(demo_folder("demo-speech")))
    model = attnscope.load(folder, attn="eager")
    words = torch.tensor(model.tokenizer("sataita sisu mamai " * 4)["input_ids"])
    write, settings = model.module.generate, model.module.generation_config
    settings.min_new_tokens = settings.max_new_tokens = len(words)

    def written(**given: Any) -> Any:
        made = write(**given | {"max_new_tokens": len(words)})
        made.sequences[0, -len(words) :] = words
        return made

    model.module.generate = written
    extractor = transformers.WhisperFeatureExtractor.from_pretrained(folder)

    def script() -> Any:
        samples, rate = soundfile.read(sound, dtype="float32")
        heard = extractor(samples, sampling_rate=rate, return_tensors="pt")["input_features"]
        with torch.no_grad():
            return write(input_features=heard, max_new_tokens=len(words), do_sample=False)

    return lambda: model.read(audio=sound).align(), script


def cite_losses(gradients: bool = True, base: bool = False) -> tuple[Work, Work]:
    """The log probability of an answer, and what it loses without each passage."""
    model = attnscope.load("demo-reader", attn="eager")
    if base:
        model = attnscope.wrap(of_base_size(), model.tokenizer)

    def ours() -> Any:
        return model.read(ASKED).cite("red", gradients=gradients)

    def script() -> list[float]:
        return job_scripts.cite(model.module, model.tokenizer, {"text": ASKED, "answer": "red"})

    same(ours().lost[0], script(), "losses without a passage")
    return ours, script


def of_base_size() -> Any:
    """A reader of bert-base size with the bundled one's words."""
    return cite.of_base_size(len(transformers.AutoTokenizer.from_pretrained(demo_folder("demo-reader"))))


def cite_everything() -> tuple[Work, Work]:
    """All columns of `cite`, random halves taken away as well."""
    ours, _ = cite_losses()
    model, found = attnscope.load("demo-reader", attn="eager"), ours()
    controls = len(found.statements[0].controls)
    same(found.lost[0, -1], cite.by_hand(model.module, found, controls), "the loss without the source")
    return ours, lambda: cite.by_hand(model.module, found, controls)


def retrieval() -> tuple[Work, Work]:
    """How often heads look first at either fact; what is answered without those that fetch, and others."""
    model = attnscope.load("demo-reader", attn="eager")

    def ours() -> Any:
        return model.retrieval(lengths=(LENGTH,))

    found, given = ours(), facts_in(model)
    done = found.confirmation

    def script() -> tuple[Any, Any, list[int]]:
        return job_scripts.retrieval(model.module, model.tokenizer, given)

    first, other, right = script()
    same(np.moveaxis(found.first, 2, 0), first, "looks at the fact")
    same(np.moveaxis(found.first_other, 2, 0), other, "looks at the other fact")
    same([each.right for each in (done.found, *done.others)], right, "answers without heads")
    return ours, script


def facts_in(model: Any) -> dict[str, Any]:
    """The texts of a retrieval, and the groups of heads that ours takes away."""
    asked, done = Retrieve(lengths=(LENGTH,)), model.retrieval(lengths=(LENGTH,)).confirmation

    def size(text: str) -> int:
        return len(model.tokenizer(text, add_special_tokens=False)["input_ids"])

    texts, others = (
        [
            {"text": each.text, "at": each.at, "other_at": each.other_at, "answer": each.fact.answer}
            for each in texts_of(asked, again, size, goes_on=False)
        ]
        for again in (False, True)
    )
    groups = [] if done is None else [each.heads for each in (done.found, *done.others)]
    return {"texts": texts, "others": others, "groups": groups}


def texts_of_drift() -> list[str]:
    return [" ".join(drift.SENTENCES[i:] + drift.SENTENCES[:i]) for i in range(6)]


def _tuned() -> tuple[Any, Any, list[str]]:
    from planted import tuned

    model = drift.encoder()
    return model, tuned(model, 2, 5, 0.5), texts_of_drift()


def drift_moved() -> tuple[Work, Work]:
    """How far the weights of every head moved, the mean over queries and texts."""
    model, other, texts = _tuned()
    ours, _ = drift_everything()

    def script() -> Any:
        return job_scripts.drift(model, drift.numbered(), {"other": other, "texts": texts})

    same(ours().mean, script(), "how far heads moved")
    return ours, script


def drift_everything() -> tuple[Work, Work]:
    """That, rounding, each layer on the same inputs, what heads write, and old heads put back."""
    model, other, texts = _tuned()
    first, second = (attnscope.wrap(each, drift.numbered()) for each in (model, other))

    def ours() -> Any:
        return first.compare(second, texts)

    def script() -> Any:
        return drift.by_hand(model, other, drift.numbered(), texts)

    same(ours().mean, script()[0].mean(0), "how far heads moved")
    return ours, script


JOBS = {
    "align": align,
    "times": times,
    "cite": cite_losses,
    "cite_attention": partial(cite_losses, gradients=False),
    "cite_base": partial(cite_losses, gradients=False, base=True),
    "cite_everything": cite_everything,
    "retrieval": retrieval,
    "drift": drift_moved,
    "drift_everything": drift_everything,
}

if __name__ == "__main__":
    main()
