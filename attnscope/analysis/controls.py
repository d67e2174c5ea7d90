"""Control texts: the words of a text in another order, so that a claim about words can fail.

Tokens change places within their class: word beginnings, word continuations, punctuation. So a control has
the same tokens as the text in another order. Special tokens, masks, padding and the places of pictures and
sounds stay, and so does the query (`kept`). All orders are equally likely, also those in which the token in
question stays: a text whose words mean nothing is then like one of its controls, and its number is the
largest as rarely as theirs.

    texts = control_texts(tokens, mask_id=103, count=100, seed=0, kept=[query], moved=[key])

Pieces of a picture or a sound (`attnscope.analysis.inputs.entrance`) change places in the same way, all
being of one class. Nothing here runs a model. No word comes from elsewhere: a control has the words of the
text without its grammar, a control picture the patches without what they show together.

Statistics of such claims are here too: 95 % intervals, and distances between rows of weights.
"""

import math
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.special import stdtrit
from torch import Tensor

from attnscope.errors import InputError
from attnscope.results import Contents
from attnscope.results.claims.prompts import FEWEST, SURE, means, spreads
from attnscope.results.claims.ranking import Z
from attnscope.tokens import Token, Tokens

MOST_CONTROLS = 10_000
Places = Int[np.ndarray, "..."]  # where tokens come from; several lengths meet in one function
_TRIES = 60  # draws for one control until it is given up
_LEAST_KINDS = 4  # different tokens of a class that exchanges its own alone
ASKING = ("the token that asks",)
BEGINS, GOES_ON, PUNCTUATION, ANY = "beginnings of words", "pieces that go on a word", "punctuation", "tokens"


@dataclass(frozen=True, eq=False)
class ControlTexts:
    """Reordered texts: place `p` of control `c` holds `ids[c, p]`, token `sources[c, p]` of the text.

    All are different, and none is the text itself. `wanted` is the number asked for: a short text has fewer.
    `how` says in one phrase which tokens change places, `of` what they are controls of.
    """

    ids: Int[np.ndarray, "control token"]
    sources: Int[np.ndarray, "control token"]
    how: str
    seed: int
    wanted: int
    of: Contents = Contents.TEXT

    def __len__(self) -> int:
        return len(self.ids)

    def changed(self, places: Sequence[int]) -> Bool[np.ndarray, " control"]:
        """True for each control that differs from the text at one of these places."""
        return np.asarray((self.ids[:, list(places)] != self._text[list(places)]).any(axis=1))

    def wider(
        self,
        queries: Sequence[Sequence[int]],
        keys: Sequence[Sequence[int]],
        links: Int[np.ndarray, "link 2"],
    ) -> Float[np.ndarray, " control"]:
        """By control, the factor (at least 1) by which chance spreads the text's mean of links more widely.

        `links` count `queries` and `keys`, which are places. Those of the same two words move together: where
        pairs of words are n links each, their sum moves as the root of the sum of all n² does. The links of a
        pattern repeat the words that the text repeats, and are of more different words in the controls.
        """
        own, *others = (_alike(ids, queries, keys, links) for ids in (self._text, *self.ids))
        return np.asarray(np.sqrt(np.maximum(own / np.array(others), 1.0)))

    @property
    def _text(self) -> Int[np.ndarray, " token"]:
        return np.asarray(self.ids[0][np.argsort(self.sources[0])])


def control_texts(
    tokens: Tokens,
    *,
    mask_id: int | None = None,
    count: int,
    seed: int = 0,
    kept: Collection[int] = (),
    moved: Collection[int] = (),
    staying: Sequence[str] = ASKING,
) -> ControlTexts:
    """Up to `count` random reorderings of a text within classes of tokens, drawn with `seed`.

    `kept` positions stay, `staying` names them. Where the class of a `moved` token has fewer than four
    different ones, so that it would often stay, all classes are one. Raises `InputError` where no other
    order of the words is possible.
    """
    _check_count(count)
    classes = classes_of(tokens, mask_id, kept)
    others = [place for place in moved if classes[place] is not None]
    joined = any(len(_ids_of(tokens, classes, classes[place])) < _LEAST_KINDS for place in others)
    classes = [ANY if each is not None and joined else each for each in classes]
    ids = np.array(tokens.ids)
    sources = _drawn(ids, classes, count, np.random.default_rng(seed))
    if not sources:
        raise InputError(
            "the text has too few words that could change places: there is no control to hold it against"
        )
    drawn = np.array(sources)
    template = ["the template of the chat"] if tokens.of_template else []
    *stay, last = "special tokens", "masks", *template, *(staying if kept else ())
    how = f"{_how(classes, joined)}; {', '.join(stay)} and {last} stay"
    return ControlTexts(ids[drawn], drawn, how, seed, count)


def control_pieces(
    contents: Places,
    of: Contents,
    *,
    count: int,
    seed: int = 0,
    kept: Collection[int] = (),
) -> ControlTexts:
    """Up to `count` random orders of the pieces of a picture or a sound, drawn with `seed`.

    `contents` are numbers, equal for equal pieces. Raises `InputError` where too few differ.
    """
    _check_count(count)
    classes = [None if i in kept else ANY for i in range(len(contents))]
    sources = _drawn(contents, classes, count, np.random.default_rng(seed))
    if not sources:
        raise InputError(f"too few {of.parts} differ: there is no control to hold it against")
    drawn = np.array(sources)
    seams = ", with seams between them" if of is Contents.SOUND else ""
    how = f"{of.parts} change places{seams}{'; the one that asks stays' if kept else ''}"
    return ControlTexts(contents[drawn], drawn, how, seed, count, of)


def _check_count(count: int) -> None:
    if not 1 <= count <= MOST_CONTROLS:
        raise InputError(f"--controls {count}: give 1 to {MOST_CONTROLS}")


def classes_of(tokens: Tokens, mask_id: int | None = None, kept: Collection[int] = ()) -> list[str | None]:
    """The class within which each token moves; None for one that stays (special, mask, padding, `kept`)."""
    pictured = {place for stretch in tokens.stretches for place in stretch.positions}
    stay = pictured | tokens.of_template | {*kept}
    return [
        None
        if i in stay or token.special or token.padding or token.id in (mask_id, -1)
        else _class(token, tokens.items[i - 1] if i else None)
        for i, token in enumerate(tokens.items)
    ]


def _class(token: Token, before: Token | None) -> str:
    if is_punctuation(token):
        return PUNCTUATION
    within = (
        before is not None
        and token.word is not None
        and (token.word, token.part, before.special) == (before.word, before.part, False)
    )
    return GOES_ON if token.piece.startswith("##") or within else BEGINS


def is_punctuation(token: Token) -> bool:
    """Whether a token is only punctuation and symbols."""
    text = token.text.strip() or token.piece
    return all(unicodedata.category(character)[0] in "PS" for character in text)


def _alike(
    ids: Places, queries: Sequence[Sequence[int]], keys: Sequence[Sequence[int]], links: Places
) -> int:
    """The sum of n² over word pairs, each of which occurs n times among the links."""
    words: dict[bytes, int] = {}
    query, key = (
        np.array([words.setdefault(ids[list(unit)].tobytes(), len(words)) for unit in side])[links[:, i]]
        for i, side in enumerate((queries, keys))
    )
    return int((np.unique(query * len(words) + key, return_counts=True)[1] ** 2).sum())


def _ids_of(tokens: Tokens, classes: Sequence[str | None], one: str | None) -> set[int]:
    return {token.id for token, each in zip(tokens.items, classes, strict=True) if each == one}


def _drawn(
    ids: Places, classes: Sequence[str | None], count: int, random: np.random.Generator
) -> list[Places]:
    """Up to `count` different random orders of `ids` as source indices; fewer where no new one is found."""
    names = sorted({each for each in classes if each is not None})
    groups = [np.flatnonzero([each == one for each in classes]) for one in names]
    texts, found = {ids.tobytes()}, list[Places]()
    while len(found) < count:
        for _ in range(_TRIES):
            places = _exchanged(len(ids), groups, random)
            text = ids[places].tobytes()
            if text not in texts:
                texts.add(text)
                found.append(places)
                break
        else:
            break
    return found


def _exchanged(length: int, groups: Sequence[Places], random: np.random.Generator) -> Places:
    places = np.arange(length)
    for group in groups:
        places[group] = random.permutation(group)
    return places


def _how(classes: Sequence[str | None], joined: bool) -> str:
    there = [each for each in (BEGINS, GOES_ON, PUNCTUATION) if classes.count(each) > 1]
    what = f"{', '.join(there)} change places, each among their own kind"
    if joined:
        what = "all tokens of the text change places, whatever their kind"
    elif len(there) == 1:
        what = f"{there[0]} change places"
    return what


def inputs_with(
    inputs: Mapping[str, Any], name: str, ids: Int[np.ndarray, "control token"]
) -> dict[str, Any] | None:
    """One text's inputs as a batch: input `name` is replaced by each row of `ids`, the rest is repeated.

    None where the inputs cannot be batched, such as packed features of a picture.

    """
    if any(isinstance(value, Tensor) and value.ndim > 2 for value in inputs.values()):
        return None
    given = torch.as_tensor(ids, dtype=inputs[name].dtype, device=inputs[name].device)
    return inputs_of(inputs, name, list(given[:, None]))


def inputs_of(inputs: Mapping[str, Any], name: str, values: Sequence[Tensor]) -> dict[str, Any] | None:
    """One picture's or sound's inputs as a batch: input `name` is replaced by each of `values`.

    The rest is repeated. None where the inputs cannot be batched, such as packed patches of several.

    """
    tensors = {key: value for key, value in inputs.items() if isinstance(value, Tensor) and value.ndim}
    if any(len(value) != 1 for value in tensors.values()):
        return None
    repeated = {key: value.repeat_interleave(len(values), 0) for key, value in tensors.items() if key != name}
    return {**inputs, **repeated, name: torch.cat(list(values))}


def batches(count: int, tokens: int, at_once: int = 256) -> Iterator[slice]:
    """Slices over `count` controls, each of at most `at_once` tokens (at least one control)."""
    size = max(1, at_once // max(tokens, 1))
    yield from (slice(start, min(start + size, count)) for start in range(0, count, size))


def interval(
    values: Float[np.ndarray, "figure prompt"], among: np.ndarray | int = 1, *, least: float = 0.0
) -> tuple[Float[np.ndarray, " figure"], Float[np.ndarray, " figure"]]:
    """Ends of the 95 % interval of each mean, corrected for `among` figures; NaN for fewer than `FEWEST`.

    mean -+ t * s / sqrt(n), with n - 1 degrees of freedom (Student 1908) and Bonferroni's correction. The
    spread s is at least `least`: tiny but equal values in every prompt do not make the mean surer.
    """
    count = np.isfinite(values).sum(axis=1)
    level = 1 - (1 - SURE) / 2 / np.maximum(among, 1)
    error = np.maximum(spreads(values), least) / np.sqrt(np.maximum(count, 1))
    reach = stdtrit(np.maximum(count - 1, 1), level) * error
    centre = np.where(count < FEWEST, np.nan, means(values))
    return np.asarray(centre - reach), np.asarray(centre + reach)


def wilson(share: float, trials: float) -> tuple[float, float]:
    """The 95 % Wilson interval of a share of `trials` independent trials (Wilson 1927)."""
    squared = Z**2 / trials
    middle = (share + squared / 2) / (1 + squared)
    reach = Z / (1 + squared) * math.sqrt(share * (1 - share) / trials + squared / (4 * trials))
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


def cosines(a: Float[np.ndarray, "head dim"], b: Float[np.ndarray, "head dim"]) -> Float[np.ndarray, " head"]:
    """Cosine of each row of `a` with the row of `b` beside it; NaN where one is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        directions = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (a, b)]
    similarity: Float[np.ndarray, " head"] = np.clip((directions[0] * directions[1]).sum(axis=1), -1.0, 1.0)
    return similarity


def jensen_shannon(
    a: Float[np.ndarray, "head key"], b: Float[np.ndarray, "head key"]
) -> Float[np.ndarray, " head"]:
    """Jensen-Shannon divergence of each row of `a` and the row of `b` beside it, in nats (Lin 1991)."""
    divergence: Float[np.ndarray, " head"] = (_from_mean(a, a + b) + _from_mean(b, a + b)) / 2
    return np.asarray(np.maximum(divergence, 0.0))


def _from_mean(
    rows: Float[np.ndarray, "head key"], total: Float[np.ndarray, "head key"]
) -> Float[np.ndarray, " head"]:
    """Kullback-Leibler divergence of each row from half of `total`, the sum of the two rows compared."""
    ratio = np.divide(2 * rows, total, out=np.ones_like(rows), where=rows > 0)
    divergence: Float[np.ndarray, " head"] = (rows * np.log(ratio)).sum(axis=1)
    return divergence


def total_variation(
    a: Float[np.ndarray, "head key"], b: Float[np.ndarray, "head key"]
) -> Float[np.ndarray, " head"]:
    """Total variation, 0 to 1: half the summed absolute difference of each row of `a` and its row of `b`."""
    distance: Float[np.ndarray, " head"] = np.abs(a - b).sum(axis=1) / 2
    return distance
