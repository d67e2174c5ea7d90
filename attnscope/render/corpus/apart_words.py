"""What is said about two corpora."""

import numpy as np

from attnscope.render.corpus.words import Place, counted_in, small
from attnscope.render.kit.words.header import attention_words, model_words
from attnscope.results import CorpusDifference
from attnscope.results.claims.corpus import ScoresApart
from attnscope.tokens import printable

STRONG = 3.0  # errors from which on a head is counted


def subject(result: CorpusDifference) -> str:
    """`news.txt less tales.txt`."""
    a, b = (printable(each.name) for each in result.reads)
    return f"corpora: B less A, A {a}, B {b}"


def setting(result: CorpusDifference) -> str:
    """The models and the attention."""
    models = dict.fromkeys(model_words(each) for each in result.provenances)
    part = f" of {printable(result.tower)}" if result.tower else ""
    return f"{' and '.join(models)} · {attention_words(result.kind)}{part}"


def read_words(result: CorpusDifference) -> str:
    """How much each of them is."""
    lengths = [f"{read.tokens / max(read.texts, 1):.1f} tokens in the mean" for read in result.reads]
    texts = [counted_in(read.texts, "text") for read in result.reads]
    return " · ".join(f"{name} {n} of {mean}" for name, n, mean in zip("AB", texts, lengths, strict=True))


def ranked(scores: ScoresApart) -> list[Place]:
    """Every head that has a difference, those that differ by most errors first."""
    reached = np.abs(np.nan_to_num(scores.reached, nan=-1.0))
    order = np.argsort(-reached, axis=None, kind="stable")
    places = ((int(i), int(j)) for i, j in zip(*np.unravel_index(order, reached.shape), strict=True))
    return [place for place in places if not np.isnan(scores.reached[place])]


def head_name(result: CorpusDifference, place: Place) -> str:
    return f"L{result.layers[place[0]]} H{result.heads[place[1]]}"


def signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{small(abs(value))}"


def beyond_words(scores: ScoresApart) -> str:
    """How many heads differ by more than chance makes one of them differ."""
    reached = np.abs(scores.reached[~np.isnan(scores.reached)])
    over = int((reached > scores.chance).sum())
    return (
        f"{over} of {reached.size} heads differ by more than {scores.chance:.1f} errors, "
        "as one of them would by chance alone"
    )
