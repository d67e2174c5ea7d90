"""The four jobs of docs/guide/jobs.md beside plain scripts of the same figures, models open.

    python benchmarks/jobs.py [RUNS]

Each script has its figures from plain transformers (`output_attentions`, hooks on the way out of the heads)
and NumPy, and they must be those of attnscope. Of `cite` and of drift there are two scripts: one of the
figures that people ask for first, one of all that ours has beside them (`cite.py`, `drift.py`). User time of
the processor, both sides in one process in turn on one thread, medians; ours certifies every head besides.
"""

import logging
import re
import resource
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import cite
import drift
import numpy as np
import soundfile
import torch
import transformers

import attnscope
from attnscope.analysis.claims.finding.needles import Planted
from attnscope.demo import folder as demo_folder
from attnscope.session.questions.claims.retrieving import Retrieving

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "specimens"))

SOURCE, TARGET = "The red door opened.", "la porte rouge s'est ouverte."
FACTS = (
    "The key of Norris is blue. The lamp of Holso is green. The hat of Kormel is white. Velmir has a red cup."
)
ASKED = FACTS + " Question: what is the cup of Velmir? Answer:"
LENGTH = 128
Work = Callable[[], Any]


def main() -> None:
    """Every job, the script and ours in turn."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    logging.getLogger("attnscope").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    for job in JOBS:
        ours, script = job()
        spent: list[list[float]] = [[], []]
        for _ in range(runs):
            for side, work in zip(spent, (ours, script), strict=True):
                before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
                work()
                side.append(resource.getrusage(resource.RUSAGE_SELF).ru_utime - before)
        own, plain = map(statistics.median, spent)
        print(
            f"{job.__name__:<17} ours {own:6.2f} s  script {plain:6.2f} s  {own / plain:5.2f} x", flush=True
        )


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
        read = model.tokenizer(SOURCE, return_offsets_mapping=True)
        write = model.tokenizer(text_target=TARGET, return_offsets_mapping=True)
        ids = torch.tensor([[2, *write["input_ids"][:-1]]])
        with torch.no_grad():
            made = model.module(
                torch.tensor([read["input_ids"]]), decoder_input_ids=ids, output_attentions=True
            )
        weights = torch.cat(made.cross_attentions).flatten(0, 1).double().numpy()
        rows = [weights[:, each].mean(1) for each in _pieces(TARGET, write["offset_mapping"])]
        words = [np.stack(rows, 1)[..., each].sum(-1) for each in _pieces(SOURCE, read["offset_mapping"])]
        said = np.stack(words, 2)
        shares = _by_sharpness(said)
        says = np.sqrt(said * said / (said.sum(1, keepdims=True) + 0.1))
        draw, each = np.random.default_rng(0), np.arange(len(said))[:, None]
        orders = [np.argsort(draw.random(said.shape[:2]), 1) for _ in range(99)]
        by_luck = [np.tensordot(shares, says[each, order], 1).max(1).mean() for order in orders]
        return np.tensordot(shares, says, 1), by_luck

    same(ours().strengths, script()[0], "strengths of links")
    return ours, script


def _pieces(text: str, offsets: Any) -> list[list[int]]:
    """The tokens of every word; a mark at its end is a word of its own."""
    spans = [each.span() for each in re.finditer(r"\w(?:\S*\w)?|[^\w\s]", text)]
    return [
        [i for i, (start, end) in enumerate(offsets) if end > start and low <= start < high]
        for low, high in spans
    ]


def _by_sharpness(said: Any) -> Any:
    whole = np.concatenate([said, np.clip(1 - said.sum(2, keepdims=True), 0, None)], 2)
    entropy = -(whole * np.log(whole + 1e-12)).sum(2).mean(1)
    centres = said @ np.arange(said.shape[2]) / (said.sum(2) + 1e-12)
    follows = [np.corrcoef(each, np.arange(said.shape[1]))[0, 1] for each in centres]
    strength = np.sqrt(np.clip(1 - entropy / np.log(whole.shape[2]), 0, None) * np.clip(follows, 0, None))
    return strength / strength.sum()


def times() -> tuple[Work, Work]:
    """Ten seconds of sound read, written and timed, beside the recogniser, which writes the same alone.

    Its weights are random (6 + 6 layers of 512); what it writes is exchanged for words that can be timed.
    """
    folder, sound = _recogniser()
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


def _recogniser() -> tuple[str, str]:
    """The folders of a Whisper-shaped model with the bundled one's words, and a sound."""
    demo, folder = demo_folder("demo-speech"), tempfile.mkdtemp()
    own, sides = transformers.AutoConfig.from_pretrained(demo).to_dict(), ("encoder", "decoder")
    ids = {name: own[name] for name in own if name.endswith("token_id")}
    sizes = {
        f"{side}_{name}": size for side in sides for name, size in (("layers", 6), ("attention_heads", 8))
    }
    wide = {f"{side}_ffn_dim": 2048 for side in sides}
    torch.manual_seed(0)
    config = transformers.WhisperConfig(
        **ids, **sizes, **wide, d_model=512, suppress_tokens=None, begin_suppress_tokens=None
    )
    transformers.WhisperForConditionalGeneration(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(demo, model_max_length=448).save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=80).save_pretrained(folder)
    samples = np.random.default_rng(0).normal(0, 0.1, 160_000).astype("float32")
    soundfile.write(sound := f"{folder}/ten.wav", samples, 16_000)
    return folder, sound


def cite_losses(gradients: bool = True, base: bool = False) -> tuple[Work, Work]:
    """The log probability of an answer, and what it loses without each passage."""
    model = attnscope.load("demo-reader", attn="eager")
    if base:
        model = attnscope.wrap(cite.of_base_size(len(model.tokenizer)), model.tokenizer)

    def ours() -> Any:
        return model.read(ASKED).cite("red", gradients=gradients)

    found = ours()

    def script() -> list[float]:
        *ids, answer = found.tokens.ids

        @torch.no_grad()
        def chance(left: list[int]) -> float:
            return float(model.module(torch.tensor([left])).logits[0, -1].log_softmax(-1)[answer])

        gone = [{*each.positions} for each in found.passages]
        without = [chance([id for i, id in enumerate(ids) if i not in each]) for each in gone]
        before = chance(ids)
        return [before - each for each in without]

    same(found.lost[0], script(), "losses without a passage")
    return ours, script


def cite_attention() -> tuple[Work, Work]:
    """The same, ours without gradients."""
    return cite_losses(gradients=False)


def cite_base() -> tuple[Work, Work]:
    """The same of a model of bert-base size."""
    return cite_losses(gradients=False, base=True)


def cite_everything() -> tuple[Work, Work]:
    """All columns of `cite` but AttnLRP, random halves taken away as well."""
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

    found = ours()
    done = found.confirmation
    groups = [each.heads for each in (done.found, *done.others)]

    def script() -> tuple[Any, Any, list[int]]:
        asked = Retrieving(lengths=(LENGTH,))
        texts, others = (asked.texts(again, lambda text: len(_ids(model, text)) - 1) for again in (0, 1))
        looks = [_looks(model, each) for each in texts]
        right = [[_answers(model, each, group) for each in others] for group in groups]
        first, other = np.moveaxis(np.array(looks), 1, 0)
        return first, other, [sum(each) for each in right]

    first, other, right = script()
    same(np.moveaxis(found.first, 2, 0), first, "looks at the fact")
    same(np.moveaxis(found.first_other, 2, 0), other, "looks at the other fact")
    same([each.right for each in (done.found, *done.others)], right, "answers without heads")
    return ours, script


def _ids(model: Any, text: str) -> list[int]:
    return list(model.tokenizer(text)["input_ids"])


def _looks(model: Any, each: Planted) -> tuple[Any, Any]:
    read = model.tokenizer(each.text, return_offsets_mapping=True)
    with torch.no_grad():
        made = model.module(torch.tensor([read["input_ids"]]), output_attentions=True)
    places = torch.stack(made.attentions)[:, 0, :, -1].argmax(-1)
    middles = np.array([(start + end) / 2 for start, end in read["offset_mapping"]])[places.numpy()]
    fact, other = ((middles > low) & (middles < high) for low, high in (each.at, each.other_at))
    return fact, other


def _answers(model: Any, each: Planted, without: Any) -> bool:
    def put(layer: int) -> Callable[..., Any]:
        def zeros(_: Any, given: Any) -> Any:
            values = given[0].clone()
            for at, head in without:
                if at == layer:
                    values[..., 32 * head : 32 * head + 32] = 0
            return (values,)

        return zeros

    with ExitStack() as stack, torch.no_grad():
        for number, layer in enumerate(model.module.model.layers):
            hook = layer.self_attn.o_proj.register_forward_pre_hook(put(number))
            stack.callback(hook.remove)
        ids = _ids(model, each.text)
        said = model.module(torch.tensor([ids])).logits[0, -1].argmax()
    return bool(said == _ids(model, f"{each.text} {each.fact.answer}")[len(ids)])


def _tuned() -> tuple[Any, Any, list[str]]:
    from planted import tuned

    model, texts = drift.encoder(), [" ".join(drift.SENTENCES[i:] + drift.SENTENCES[:i]) for i in range(6)]
    return model, tuned(model, 2, 5, 0.5), texts


def drift_moved() -> tuple[Work, Work]:
    """How far the weights of every head moved, the mean over queries and texts."""
    model, other, texts = _tuned()
    ours, _ = drift_everything()

    def script() -> Any:
        moved = []
        for text in texts:
            ids = drift.numbered()(text, return_tensors="pt")
            with torch.no_grad():
                old, new = (each(**ids, output_attentions=True).attentions for each in (model, other))
            moved.append(drift.apart(old, new).numpy())
        return np.mean(moved, 0)

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


JOBS = (
    align, times, cite_losses, cite_attention, cite_base, cite_everything, retrieval, drift_moved,
    drift_everything,
)  # fmt: skip

if __name__ == "__main__":
    main()
