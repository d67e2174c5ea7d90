"""What is said beside thumbnails, and the one scale that all of them are on."""

import numpy as np
from jaxtyping import Bool, Float

from attnscope.render.kit.numbers import counted
from attnscope.render.kit.scale import Scale, scale_of
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.kit.words.header import CROSS_ROWS, attention_words, written_words
from attnscope.render.kit.words.weights import JOINED, WITHOUT_SPECIAL
from attnscope.results import Kind, Special, Thumbnails, Verdict
from attnscope.tokens import Patches, printable
from attnscope.vocabulary import Scaling


def subject(result: Thumbnails) -> str:
    """`4 layers x 12 heads`."""
    return f"{counted(len(result.layers), 'layer')} x {counted(len(result.heads), 'head')}"


def where(result: Thumbnails) -> str:
    part = f" of {printable(result.tower)}" if result.tower else ""
    return attention_words(result.kind) + part


def common_scale(result: Thumbnails, asked: Scaling = Scaling.AUTO) -> Scale:
    """One scale for every head, chosen as that of one head is; it has no rows of its own."""
    cells = result.weights.reshape(-1, result.weights.shape[-1])
    found = scale_of(cells, np.isfinite(cells), asked)
    return Scale(found.kind, np.array([found.top]), found.least)


def shades(scale: Scale, cells: Float[np.ndarray, "row column"]) -> Float[np.ndarray, "row column"]:
    """Every cell as a shade from 0 to 1, NaN where it is masked."""
    return scale.shades(cells, [0] * len(cells))


def blank(result: Thumbnails) -> Bool[np.ndarray, "layer head row column"]:
    return np.asarray(np.isnan(result.weights))


def cell_words(result: Thumbnails) -> str:
    """What a cell is: one pair, or the strongest of several."""
    size = f"{len(result.query_tokens)} queries x {len(result.key_tokens)} keys"
    if result.step == 1:
        return f"each head: {size}"
    return f"each head: {size}, each cell the largest weight of {result.step} x {result.step}"


def remarks(result: Thumbnails) -> list[str]:
    """What is odd about the input or the heads, one phrase each."""
    found = [CROSS_ROWS] if result.kind is Kind.CROSS else []
    if origin := written_words(result.query_tokens):
        found.append(origin)
    stretches = *result.query_tokens.stretches, *result.key_tokens.stretches
    if any(isinstance(each, Patches) for each in stretches):
        found.append("patches row by row")
    found += [JOINED] if result.words else []
    if result.special is not Special.SHOW:
        scaled = result.special is Special.RENORMALISE
        found.append(WITHOUT_SPECIAL if scaled else "special tokens left out")
    return [*found, *result.notes]


def verdict_counts(result: Thumbnails) -> str:
    """`48 heads: ✓ 48 certified`."""
    every = [verdict for layer in result.verdicts for verdict in layer]
    counts = [f"{GLYPHS[each]} {every.count(each)} {each.value}" for each in Verdict if each in every]
    by_tokens = " by tokens" if result.words or result.special is not Special.SHOW else ""
    return f"{counted(len(every), 'head')}{by_tokens}: {', '.join(counts)}"
