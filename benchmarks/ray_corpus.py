"""`attnscope corpus --engine ray` with one worker and with two, beside processes without Ray, in turn.

    python benchmarks/ray_corpus.py [TEXTS] [MODEL [ROUNDS]]

All four measure the same texts, whose lengths are those of the English Web Treebank, and must give the same
bytes. The rate is that from the first split that is through to the last: opening the model, starting Ray and
making the actors are told apart, since they do not grow with the corpus. On a machine that others use too,
seconds of the processor for a thousand tokens, which hardly depend on them, say what a core gives.
"""

import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from attnscope.measures import parse_measures
from attnscope.measures.registry import measurable
from attnscope.session.listener import Quiet
from attnscope.session.request import ModelRequest
from attnscope.session.wanted import Wanted
from attnscope.verbs.corpus.answer import CorpusRecipe
from attnscope.verbs.corpus.engine import Engine, Finished, Span, Split
from attnscope.verbs.corpus.engine.local import local
from attnscope.verbs.corpus.engine.ray.cluster import cluster, descendants
from attnscope.verbs.corpus.engine.ray.nodes import Needs
from attnscope.verbs.corpus.engine.ray.pool import on_ray
from attnscope.verbs.corpus.source import Form, Source
from attnscope.verbs.corpus.texts import fetched

ROUNDS = 3
SPLIT = 32  # texts
WORDS = ("the", "a", "door", "dog", "boat", "was", "is", "opened", "barks", "old", "on", "it", "she")
WORKER = b"attnscope.verbs.corpus.engine.worker"


@dataclass(frozen=True)
class Measured:
    """Seconds until the first split, tokens a second after it, processor seconds for a thousand of them."""

    first: float
    rate: float
    processor: float
    digest: str


def splits(texts: int) -> Iterator[Split]:
    """Sentences of 2 to 60 words, 13 on average, half of them short."""
    draw = random.Random(0)
    lengths = [min(2 + int(draw.expovariate(1 / 11)), 60) for _ in range(texts)]
    said = [" ".join(draw.choices(WORDS, k=n)) for n in lengths]
    source = Source(Path("texts"), "texts", Form.LINES)
    for number, at in enumerate(range(0, texts, SPLIT)):
        held = "\n".join(said[at : at + SPLIT]).encode()
        yield Split(number, (Span(0, source, held=held),), len(held))


def processor() -> float:
    """Seconds of the processor that all workers have taken so far."""
    ticks = 0
    for each in descendants(os.getpid()):
        try:
            place = Path(f"/proc/{each}")
            if WORKER in (place / "cmdline").read_bytes():
                ticks += sum(map(int, (place / "stat").read_text("utf-8").rpartition(")")[2].split()[11:13]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(engine: Engine, recipe: CorpusRecipe, texts: int) -> Measured:
    begun = time.perf_counter()
    found: dict[int, Finished] = {}
    times, spent = [], []
    for finished in engine(recipe, splits(texts), Quiet()):
        found[finished.number] = finished
        times.append(time.perf_counter())
        spent.append(processor())  # at each, since workers may have left when the last one comes
    several = [found[number].tokens for number in sorted(found)]
    later = sum(several) - several[0]
    whole = " ".join(found[number].name for number in sorted(found))  # of digests
    return Measured(
        times[0] - begun, later / (times[-1] - times[0]), (max(spent) - spent[0]) / later * 1000, whole
    )


def main() -> None:
    """Every engine in turn, so that a change in what else the machine does reaches all of them."""
    texts = int(sys.argv[1]) if len(sys.argv) > 1 else 960
    model = sys.argv[2] if len(sys.argv) > 2 else "demo"
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else ROUNDS
    recipe = CorpusRecipe(ModelRequest(model, device="cpu"), Wanted(), measurable(parse_measures("all")))
    engines: dict[str, Callable[[], Engine]] = {
        "processes, 1": lambda: local(1),
        "processes, 2": lambda: local(2),
        "Ray, 1 worker": lambda: on_ray(None, 1, Needs({"CPU": 1.0}), "cpu", fetched),
        "Ray, 2 workers": lambda: on_ray(None, 2, Needs({"CPU": 1.0}), "cpu", fetched),
    }
    begun = time.perf_counter()
    with cluster(None, {"CPU": 2}, Quiet()), TemporaryDirectory() as home:
        up = time.perf_counter() - begun
        print(f"{texts} texts under {Path(model).parent.name or model}; Ray up in {up:.0f} s")
        runs: dict[str, list[Measured]] = {name: [] for name in engines}
        for _ in range(rounds):
            for name, made in engines.items():
                runs[name].append(measured(made(), replace(recipe, into=f"{home}/{name}"), texts))
    if len({each.digest for several in runs.values() for each in several}) != 1:
        raise SystemExit("not the same numbers")
    middle = {name: statistics.median(each.rate for each in several) for name, several in runs.items()}
    for name, several in runs.items():
        rates = ", ".join(f"{each.rate:,.0f}" for each in several)
        spent = statistics.median(each.processor for each in several)
        first = statistics.median(each.first for each in several)
        told = f"{spent:.2f} CPU s a thousand; first after {first:.0f} s"
        print(f"{name:15s} {middle[name]:7,.0f} tokens/s ({rates}); {told}")
    for kind in ("processes, ", "Ray, "):
        one, two = (middle[name] for name in engines if name.startswith(kind))
        pairs = [name for name in engines if name.startswith(kind)]
        ratios = [b.rate / a.rate for a, b in zip(*(runs[name] for name in pairs), strict=True)]
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"{kind}2 to 1: {two / one:.2f} (round by round {each})")
    print("the same bytes from all of them")


if __name__ == "__main__":
    main()
