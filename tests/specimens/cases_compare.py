"""A result for every case and every optional part of what `compare` says of one word."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import made_results as made
import numpy as np

from attnscope.analysis.heads.view import viewed
from attnscope.results import (
    Between,
    Comparison,
    Divergence,
    HeadAttention,
    Side,
    Similarity,
    Special,
    Verdict,
)
from attnscope.verbs.compare import sheet as comparison
from attnscope.verbs.compare.result import Case
from attnscope.vocabulary import Unit

RIVER = ["[CLS]", "we", "sat", "on", "the", "bank", ".", "[SEP]"]
MONEY = ["[CLS]", "the", "bank", "gave", "her", "some", "money", "without", "an", "account", "[SEP]"]
SELF, CROSS = ("query", "key", "value", "output"), ("query", "output")


def side(head: HeadAttention, position: int, layers: int, heads: int, verdict: Verdict) -> Side:
    certificates = [[head.certificate] * heads for _ in range(layers)]
    certificates[-1][0] = made.certificate(verdict)
    return Side(head, position, tuple(map(tuple, certificates)))


def similarities(names: Sequence[str], layers: int, heads: int) -> tuple[Similarity, ...]:
    random = np.random.default_rng(3)
    found = []
    for name in names:
        values = random.uniform(-0.6, 1, size=(layers, heads))
        found.append(Similarity(name, values, values.mean(axis=1)))
    return tuple(found)


def of(heads: int) -> dict[str, int]:
    """Head 1 of so many, each with a key head of its own."""
    return {"heads": heads, "key_heads": heads, "key_head": 1}


def divergence(layers: int, heads: int) -> Divergence:
    random = np.random.default_rng(4)
    return Divergence(random.uniform(0, 0.69, (layers, heads)), random.uniform(0, 1, (layers, heads)))


def texts(
    a: Sequence[str] = RIVER,
    b: Sequence[str] = MONEY,
    places: tuple[int, int] = (5, 2),
    *,
    layers: int = 4,
    heads: int = 6,
    vectors: Sequence[str] = SELF,
    chosen: bool = True,
    verdict: Verdict = Verdict.CERTIFIED,
    **changed: object,
) -> Comparison:
    """One word in two texts, the head `L3 H1` in full; `verdict` is that of one head of the second side."""
    fields = {"layer": layers - 1, "head": 1, **of(heads), **changed}
    first, second = made.head(a, **fields), made.head(b, spread=1.0, **fields)
    return Comparison(
        between=Between.TEXTS,
        a=side(first, places[0], layers, heads, Verdict.CERTIFIED),
        b=side(second, places[1], layers, heads, verdict),
        layers=tuple((layer, layer) for layer in range(layers)),
        heads=tuple(range(heads)),
        similarities=similarities(vectors, layers, heads),
        divergence=None,
        chosen=chosen,
    )


def cross() -> Comparison:
    """A word of two targets, whose keys are the tokens of two sources."""
    first = made.head(RIVER, ["la", "rive", "."], layer=2, head=1, **of(2))
    second = made.head(MONEY, ["une", "banque", "riche"], layer=2, head=1, **of(2))
    base = texts(layers=3, heads=2, vectors=CROSS)
    sides = (side(head, place, 3, 2, Verdict.CERTIFIED) for head, place in ((first, 5), (second, 2)))
    return replace(base, **dict(zip("ab", sides, strict=True)))


def layers(heads: int = 6) -> Comparison:
    """One word of one text in layers 1 and 3."""
    first, second = made.head(RIVER, layer=1, head=2), made.head(RIVER, layer=3, head=2, spread=0.7)
    return Comparison(
        between=Between.LAYERS,
        a=side(first, 5, 1, heads, Verdict.CERTIFIED),
        b=side(second, 5, 1, heads, Verdict.CERTIFIED),
        layers=((1, 3),),
        heads=tuple(range(heads)) if heads > 1 else (2,),
        similarities=(),
        divergence=divergence(1, heads),
        chosen=heads > 1,
    )


def models(*, one_space: bool = True) -> Comparison:
    """One word under two models of 4 layers with 6 heads."""
    first = made.head(RIVER, layer=3, head=1, **of(6))
    second = made.head(RIVER, layer=3, head=1, spread=0.7, provenance=made.provenance(demo=True), **of(6))
    return Comparison(
        between=Between.MODELS,
        a=side(first, 5, 4, 6, Verdict.CERTIFIED),
        b=side(second, 5, 4, 6, Verdict.CERTIFIED),
        layers=tuple((layer, layer) for layer in range(4)),
        heads=tuple(range(6)),
        similarities=similarities(SELF, 4, 6) if one_space else (),
        divergence=divergence(4, 6),
        chosen=True,
    )


def by_words(special: Special = Special.RENORMALISE) -> Comparison:
    """One word of two texts that is cut into pieces, without special tokens."""
    base = texts(places=(4, 2))
    sides = []
    for each, cut in zip(base.sides, ((4, 5), (1, 2, 3)), strict=True):
        tokens = each.head.query_tokens
        items = [
            replace(item, word=None if item.word is None else 100 + i) for i, item in enumerate(tokens.items)
        ]
        text = tokens.texts[0]
        start, end = items[cut[0]].span[0], items[cut[-1]].span[1]
        text = text[:start] + text[start:end].replace(" ", "-") + text[end:]
        items = [replace(item, word=7) if i in cut else item for i, item in enumerate(items)]
        tokens = replace(tokens, texts=(text,), items=tuple(items))
        head = replace(each.head, query_tokens=tokens, key_tokens=tokens)
        view = viewed(head, by=Unit.WORD, special=special)
        sides.append(replace(each, head=head, position=cut[0], view=view))
    return replace(base, a=sides[0], b=sides[1])


SAID, CASES = comparison.said, Case
ROTARY = ("query", "key", "unrotated key", "value", "output")


def same(found: Comparison) -> Comparison:
    """The same on both sides, in all vectors and all rows."""
    alike = [
        replace(each, heads=np.ones_like(each.heads), together=np.ones_like(each.together))
        for each in found.similarities
    ]
    rows = found.divergence
    none = rows and replace(
        rows, **{name: np.zeros((4, 6)) for name in ("jensen_shannon", "total_variation")}
    )
    return replace(found, similarities=tuple(alike), divergence=none)


def parting(*heads: int, layer: int = 3) -> Comparison:
    """Two models that are the same before `layer`, of which these heads differ there."""
    found = same(models())
    rows, output = found.divergence, found.similarities[-1]
    assert rows is not None
    rows.total_variation[layer, list(heads)] = 0.05
    output.heads[layer, list(heads)] = 0.98
    sides = (
        replace(side, head=replace(side.head, layer=layer, head=heads[0])) for side in (found.a, found.b)
    )
    return replace(found, **dict(zip("ab", sides, strict=True)))


def with_sink(found: Comparison) -> Comparison:
    a, b = (
        replace(side, head=replace(side.head, sink=0.5, weights=side.head.weights / 2))
        for side in found.sides
    )
    return replace(found, a=a, b=b)


def of_several_tokens() -> Comparison:
    found = by_words(Special.SHOW)
    a, b = (replace(side, view=side.view and replace(side.view, by=Unit.TOKEN)) for side in found.sides)
    return replace(found, a=a, b=b)


EXAMPLES: dict[str, Callable[[], Comparison]] = {
    "texts differ": texts,
    "texts differ at one place": lambda: texts(vectors=ROTARY, places=(2, 2)),
    "texts differ, rotary": lambda: texts(vectors=ROTARY, causal=True),
    "texts differ in two words": lambda: texts(places=(5, 3)),
    "texts differ, cross-attention": cross,
    "texts differ by words": by_words,
    "texts differ of several tokens": of_several_tokens,
    "texts differ, special tokens hidden": lambda: by_words(Special.HIDE),
    "some heads": lambda: texts(heads=4, chosen=False),
    "one head": lambda: texts(heads=2, chosen=False),
    "no valid key": lambda: texts(empty=[5, 2]),
    "texts same": lambda: same(texts()),
    "one layer": lambda: texts(layers=1),
    "two layers": layers,
    "two layers of one head": lambda: layers(1),
    "models differ": models,
    "models differ, a sink": lambda: with_sink(models()),
    "models differ in rows": lambda: models(one_space=False),
    "models differ, passed over": lambda: replace(models(), passed_over=3),
    "models begin": lambda: parting(1),
    "models begin in several heads of their first layer": lambda: parting(1, 3, layer=0),
    "models same": lambda: same(models()),
    "models apart": lambda: replace(models(one_space=False), divergence=None),
}
