"""Heads in a page: the weights of all, and of some also queries, keys and added terms.

Up to `FINE_TOKENS` tokens the weights of many heads are 16-bit codes if these fit, else 8-bit ones; if these
do not fit either, only the largest of each row are kept. Heads in full have single precision. A small version
of each head is drawn before its weights are unpacked.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from attnscope.errors import InputError
from attnscope.printable import printable
from attnscope.render.kit.cells import settled
from attnscope.render.kit.command import Heads, asking
from attnscope.render.kit.words import certificate_words, verdict_words
from attnscope.render.web import codes
from attnscope.render.web.blocks import Blocks
from attnscope.render.web.room import DENSE_BYTES, FINE_TOKENS, KEPT
from attnscope.results import Certificate, HeadAttention, HeadWeights, Overview, Result, Thumbnails, Verdict
from attnscope.results.base.groups import joined, placed, units_of_text
from attnscope.tokens import Token, Tokens
from attnscope.vocabulary import Special, Unit


def tokens_of(tokens: Tokens, by: Unit = Unit.WORD) -> dict[str, Any]:
    """Tokens of one side as JSON values: names, words, special tokens, parts, and text between them.

    `words` are positions by word, or by the sentences or passages of `unit`; None where the tokenizer does
    not tell words or each is one token. `said` is a token's own text where that is not its name, `gaps` the
    whitespace before it. Right-to-left names are closed, since numbers stand beside them.
    """
    parts = [token.part for token in tokens.items]
    gaps, said = _as_read(tokens)
    places = {place for stretch in tokens.stretches for place in stretch.positions}
    pictured = bool(places) and all(i in places or token.special for i, token in enumerate(tokens.items))
    return {
        "text": bool(tokens.texts) and not pictured,
        "names": [settled(name) for name in tokens.names],
        "gaps": gaps,
        "said": {i: text for i, text in enumerate(said) if text != tokens.names[i]},
        "special": [i for i, token in enumerate(tokens.items) if token.special],
        "parts": parts,
        **_words(tokens, by if by.is_long else Unit.WORD),
    }


def _as_read(tokens: Tokens) -> tuple[list[str], list[str]]:
    """Whitespace before each token in its text, and the token's own text without it."""
    gaps, said, ends = list[str](), list[str](), dict[int, int]()
    for token, name in zip(placed(tokens).items, tokens.names, strict=True):
        source = tokens.texts[token.part] if 0 <= token.part < len(tokens.texts) else ""
        before = ends.get(token.part, 0)
        text, span = token.text, token.span
        if span is not None and source:
            text, gap = source[slice(*span)], source[before : span[0]]
            ends[token.part] = max(span[1], before)
        else:
            gap = "" if token.piece.startswith("##") else " "
        bare = text.lstrip()
        gap += text[: len(text) - len(bare)]
        gaps.append("\n" if "\n" in gap else " " if gap else "")
        said.append(name if token.special or token.unknown or not bare else printable(bare.rstrip()))
    return gaps, said


def _words(tokens: Tokens, by: Unit) -> dict[str, Any]:
    named = {"unit": by.several}
    try:
        groups = units_of_text(tokens, by)
    except InputError:
        return named | {"words": None, "joined": {}}
    if all(len(group) == 1 for group in groups) and not by.is_long:
        return named | {"words": None, "joined": {}}
    units = joined(tokens, groups, by)
    names = [f"{units.positions[i]} {name}" if by.is_long else name for i, name in enumerate(units.names)]
    whole = {
        group[0]: settled(name)
        for group, name in zip(groups, names, strict=True)
        if len(group) > 1 or by.is_long
    }
    return named | {"words": groups, "joined": whole}


def sides(queries: Tokens, keys: Tokens, by: Unit = Unit.WORD) -> dict[str, Any]:
    """Tokens of queries and keys; `pair` is true where two texts were read together."""
    same = queries is keys or queries == keys
    pair = same and len({token.part for token in queries.items}) > 1
    return {
        "queries": tokens_of(queries, by),
        "keys": None if same else tokens_of(keys, by),
        "self": same,
        "pair": pair,
    }


def first_token(
    place: int | None, tokens: dict[str, Any] | None, words: bool, special: Special
) -> int | None:
    """Position of the first token of the word, or non-special token, at `place`."""
    if place is None or tokens is None:
        return place
    groups = tokens["words"] if words and tokens["words"] else [(i,) for i in range(len(tokens["names"]))]
    hidden = () if special is Special.SHOW else tokens["special"]
    return [group[0] for group in groups if group[0] not in hidden][place]


_WITH_SCORES = 200  # tokens up to which a head alone has its scores too, and not only q and k
_SMALL = 40  # cells of a head in small along its longer side, at most
Reading = dict[str, Any]
Layer = Float[np.ndarray, "head query key"]


def of_heads(heads: Sequence[HeadWeights], blocks: Blocks, name: str = "", by: Unit = Unit.WORD) -> Reading:
    """A reading of heads over the same tokens, each in full."""
    first = heads[0]
    layers = sorted({head.layer for head in heads})
    numbers = sorted({head.head for head in heads})
    there = {(head.layer, head.head): head.certificate for head in heads}
    certificates = [[there.get((layer, number)) for number in numbers] for layer in layers]
    return {
        "name": name,
        **sides(first.query_tokens, first.key_tokens, by),
        "layers": layers,
        "heads": numbers,
        "depth": 0,
        "blocks": None,
        "small": None,
        "full": {_name(head): in_full(head, blocks, len(heads) == 1) for head in heads},
        "certificates": blocks.json(_certificates(certificates)),
        "opens": {"layer": first.layer, "head": first.head},
        "command": opener(first),
    }


def of_overview(
    overview: Overview, blocks: Blocks, full: Sequence[HeadWeights] = (), name: str = "", by: Unit = Unit.WORD
) -> Reading:
    """A reading of all heads of an overview; `full` heads also get queries, keys and terms.

    Where the others have 8-bit codes, `full` heads have 16-bit ones, so that all digits are shown.
    """
    found = overview.tokens or overview
    packed = _packed(_stacked(found.dense_weights), blocks)
    heads = [head for head in full if isinstance(head, HeadAttention)]
    exact = (codes.planes(codes.fine(np.where(each.allowed, each.weights, np.nan))) for each in heads)
    more: list[dict[str, Any]] = [{} for _ in heads]
    if packed["depth"] == 1:
        more = [{"planes": [blocks.keep(Blocks.pack_runs(plane)) for plane in each]} for each in exact]
    return {
        "name": name,
        **sides(found.query_tokens, found.key_tokens, overview.by if overview.by.is_long else by),
        "layers": found.layers,
        "heads": found.heads,
        **packed,
        "full": {_name(head): _made_of(head, blocks) | own for head, own in zip(heads, more, strict=True)},
        "certificates": blocks.json(_certificates(found.certificates)),
        "opens": {"layer": found.layers[0], "head": found.heads[0]},
        "command": opener(found),
    }


def of_result(result: Result, blocks: Blocks, name: str = "") -> Reading | None:
    """The reading of the heads that a result holds by tokens; None where it holds none."""
    if isinstance(result, Overview):
        return None if (result.tokens or result).weights is None else of_overview(result, blocks, name=name)
    head = result if isinstance(result, HeadWeights) else getattr(result, "head", None)
    return of_heads([head], blocks, name) if isinstance(head, HeadWeights) else None


def of_thumbnails(small: Thumbnails, blocks: Blocks) -> Reading:
    """A reading of thumbnails; a cell of several tokens is named by its first."""
    verdicts = [[verdict_words(each) for each in row] for row in small.verdicts]
    return {
        "name": "",
        **sides(_cells(small.query_tokens, small.steps[0]), _cells(small.key_tokens, small.steps[1])),
        "layers": small.layers,
        "heads": small.heads,
        **_packed(list(small.weights), blocks),
        "full": {},
        "certificates": blocks.json(table([list(row) for row in small.verdicts], verdicts)),
        "opens": {"layer": small.layers[0], "head": small.heads[0]},
        "command": opener(small),
    }


def in_full(head: HeadWeights, blocks: Blocks, alone: bool) -> dict[str, Any]:
    """One head as JSON values: its weights, and its queries, keys and terms where they were recomputed.

    Scores are included only for a head `alone` on a short text; else the page computes them.
    """
    weights = {"weights": blocks.floats(np.where(head.allowed, head.weights, np.nan)), "q": None}
    if not isinstance(head, HeadAttention):
        return weights
    scored = alone and max(head.weights.shape) <= _WITH_SCORES
    stages = {"scores": blocks.floats(head.scores), "scaled": blocks.floats(head.scaled)} if scored else {}
    return weights | _made_of(head, blocks) | stages


def _made_of(head: HeadAttention, blocks: Blocks) -> dict[str, Any]:
    return {
        "q": blocks.floats(head.q),
        "k": blocks.floats(head.k),
        "dim": head.q.shape[1],
        "scale": head.scale,
        "softcap": head.softcap,
        "sink": head.sink,
        "sinkByQuery": head.sink_by_query,
        "terms": [{"name": name, "values": blocks.floats(values)} for name, values in head.terms.items()],
    }


def _stacked(weights: Sequence[Sequence[np.ndarray]]) -> list[Layer]:
    """Weights stacked layer by layer; pairs that get 0 from every head are masked (NaN)."""
    fine = max(weights[0][0].shape) <= FINE_TOKENS
    stacked = [np.stack(layer).astype(np.float64 if fine else np.float32) for layer in weights]
    for layer, exact in zip(stacked, weights, strict=True):
        layer[:, np.logical_and.reduce([head == 0 for head in exact])] = np.nan
    return stacked


def _packed(layers: Sequence[Layer], blocks: Blocks) -> dict[str, Any]:
    """Layers as packed blocks with a line for each head: in 16 bits if these fit, else in 8.

    Beyond `DENSE_BYTES` only the largest weights of each row are kept. Layers are packed in threads, since
    deflating is slow and needs no lock.
    """
    fine = max(layers[0].shape[1:]) <= FINE_TOKENS
    ways = [*([_fine] if fine else []), _sparing, *([_largest] if layers[0].shape[2] > KEPT else [])]
    for way in ways:
        first = way(layers[0])
        if first.size * len(layers) <= DENSE_BYTES:
            break
    with ThreadPoolExecutor(max_workers=2) as workers:
        made = [first, *workers.map(way, layers[1:])]
    packed = [blocks.keep(each.lines) for each in made]
    high = b"".join(each.high for each in made)
    small = {"step": 1, "block": blocks.keep(Blocks.pack_runs(high))} if high else _small(layers, blocks)
    return {
        "depth": 2 if high else 1,
        "blocks": packed,
        "kept": {"most": KEPT, "share": [each.share for each in made]} if way is _largest else None,
        "small": small,
    }


class Packed(NamedTuple):
    """A packed layer: a line for each head, the kept share of weights, and the high bytes of 16-bit codes.

    With 16 bits the lines hold the low bytes; the high bytes of all heads form one block, which is enough to
    draw them small.
    """

    lines: str
    share: list[float] | None = None
    high: bytes = b""

    @property
    def size(self) -> int:
        return len(self.lines) + len(Blocks.pack_runs(self.high))


def _fine(layer: Layer) -> Packed:
    high, low = zip(*map(codes.planes, codes.fine(layer)), strict=True)
    return Packed(_lines(low), high=b"".join(high))


def _sparing(layer: Layer) -> Packed:
    return Packed(_lines(map(_bytes, codes.sparing(layer))))


def _largest(layer: Layer) -> Packed:
    made, share = codes.largest(layer, KEPT)
    return Packed(_lines(map(_bytes, made)), [round(each, 4) for each in share.tolist()])


def _lines(heads: Iterable[bytes]) -> str:
    return "\n".join(map(Blocks.pack_runs, heads))


def _small(layers: Sequence[Layer], blocks: Blocks) -> dict[str, Any]:
    """Maxima of small groups of pairs per head, so that all heads draw before any is unpacked."""
    step = -(-max(layers[0].shape[1:]) // _SMALL)
    heads = (
        head
        for layer in layers
        for head in codes.coarse(_fewer(_fewer(layer, step).swapaxes(1, 2), step).swapaxes(1, 2))
    )
    return {"step": step, "block": blocks.keep(Blocks.pack_runs(b"".join(map(_bytes, heads))))}


def _fewer(layer: Layer, step: int) -> Layer:
    """Maxima of every `step` rows, in slices because `reduceat` takes five times as long."""
    most = layer[:, ::step].copy()
    for first in range(1, step):
        more = layer[:, first::step]
        np.fmax(most[:, : more.shape[1]], more, out=most[:, : more.shape[1]])
    return most


def _bytes(head: codes.Codes) -> bytes:
    """A head's codes as bytes in column order."""
    return head.astype(np.uint8).tobytes("F")


def _certificates(rows: Sequence[Sequence[Certificate | None]]) -> dict[str, Any]:
    verdicts = [[None if each is None else each.verdict for each in row] for row in rows]
    return table(
        verdicts, [["" if each is None else certificate_words(each) for each in row] for row in rows]
    )


def table(verdicts: list[list[Verdict | None]], words: list[list[str]]) -> dict[str, Any]:
    every = list(dict.fromkeys(each for row in verdicts for each in row))
    texts = list(dict.fromkeys(each for row in words for each in row))
    return {
        "verdicts": [None if each is None else each.value for each in every],
        "texts": texts,
        "rows": [
            [[every.index(verdict), texts.index(text)] for verdict, text in zip(*row, strict=True)]
            for row in zip(verdicts, words, strict=True)
        ],
    }


def _cells(tokens: Tokens, step: int) -> Tokens:
    if step == 1:
        return tokens
    places = range(0, len(tokens), step)
    items = tuple(
        Token(-1, "", f"{tokens.positions[i]} {tokens.names[i]}…", None, None, tokens.items[i].part)
        for i in places
    )
    return Tokens(tokens.texts, items)


def opener(heads: Heads) -> str:
    """Command that writes a page of the head `{layer}`, `{head}`."""
    return asking(heads, "heads", "--layer", "{layer}", "--head", "{head}", "-o", "page.html")


def _name(head: HeadWeights) -> str:
    return f"L{head.layer}H{head.head}"
