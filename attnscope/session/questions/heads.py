"""Heads of an open model: one in full, its score terms, several at a glance, all certified.

Some measures are not taken of the text, but of random tokens read twice, or of weights alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from attnscope.analysis.heads.head import (
    head_dimensions,
    head_terms,
    mean_head,
    recompute_head,
    returned_head,
    returned_overview,
)
from attnscope.analysis.heads.overlay import (
    default_query,
    heads_over_picture,
    heads_over_sound,
    over_picture,
    over_sound,
)
from attnscope.analysis.heads.overview import View, measure_heads, thumbnails, viewed_overview
from attnscope.analysis.heads.view import among_all, without_padding
from attnscope.analysis.scores.dense import LEAST, Twice, copying_scores, drawn, repeated_scores
from attnscope.analysis.scores.supplies import AllowedPairs
from attnscope.attention import Capture
from attnscope.capture.returned import Returned
from attnscope.errors import InputError
from attnscope.measures import MEASURES, Need
from attnscope.measures.registry import needs_norms
from attnscope.model.anatomy.placed import weight_of
from attnscope.results import (
    Dimensions,
    HeadAttention,
    HeadScores,
    HeadTerms,
    HeadView,
    HeadWeights,
    Kind,
    Overview,
    Picture,
    PictureAttention,
    PictureHeads,
    Sound,
    SoundAttention,
    SoundHeads,
    Thumbnails,
)
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener
from attnscope.session.opening import ENTROPY, look_at
from attnscope.session.reading import Reading
from attnscope.session.wanted import Looking
from attnscope.session.which import Name
from attnscope.tokens import Tokens
from attnscope.vocabulary import Route, Stage

_NO_VECTORS = "queries and keys are needed"
_OF_AN_ANSWER = "it is about the model's answer, which nobody asks for here"
_NO_DECODER = "nothing stands before a token of which it could have learned: not a decoder"


def with_apart(reading: Reading, chosen: Chosen, overview: Overview, measures: Sequence[str]) -> Overview:
    """The overview with all of `measures` in order, including those not taken of its text.

    `InputError` where none of them has a meaning.
    """
    apart = [name for name in measures if MEASURES[name].description.apart]
    if not apart:
        return overview
    twice = [name for name in apart if Need.PERIOD in MEASURES[name].needs]
    measured = {**_of_random_tokens(reading, chosen, twice)}
    if "copying" in apart:
        measured |= _of_circuits(reading, chosen)
    measured |= _absent(chosen, [name for name in apart if name not in measured], _OF_AN_ANSWER)
    scores = {name: measured[name] if name in measured else overview.scores[name] for name in measures}
    reasons = dict.fromkeys(score.absent for score in scores.values())
    if all(reasons):
        raise InputError(f"no {', '.join(measures)} here: {'; '.join(reasons)}")
    notes = dict.fromkeys(
        f"{', '.join(name for name in measured if measured[name].description.apart == said)}: {said}"
        for said in (score.description.apart for score in measured.values() if not score.absent)
    )
    return replace(overview, scores=scores, notes=(*overview.notes, *notes))


def _of_random_tokens(reading: Reading, chosen: Chosen, names: Sequence[str]) -> Mapping[str, HeadScores]:
    if not names:
        return {}
    if chosen.kind is not Kind.DECODER:
        return _absent(chosen, names, _NO_DECODER)
    if chosen.route is Route.RETURNED:
        return _absent(chosen, names, _NO_VECTORS)
    twice, after = _drawn(reading)
    if twice.period < LEAST:
        return _absent(chosen, names, f"{reading.model.name} has no room for {LEAST} tokens twice over")
    with reading.listener.working("reading random tokens twice over"):
        captured = _reading_of(reading, twice).capture(chosen)
        return repeated_scores(captured, chosen.heads, names, twice, after)


def _drawn(reading: Reading) -> tuple[Twice, str]:
    model, tokens = reading.model, reading.tokens_of(Kind.DECODER)
    before = []
    for token in tokens.items:
        if not token.special or token.span is not None:
            break
        before.append(token)
    size = model.rows() or 0
    spelled = getattr(model.tokenizer, "vocab_size", None) or size
    special = {*(getattr(model.tokenizer, "all_special_ids", None) or ())}
    vocabulary = [token for token in range(min(size, spelled)) if token not in special]
    limit = model.limit()
    named = " ".join(token.name for token in before)
    return drawn(vocabulary, tuple(token.id for token in before), limit), named


def _reading_of(reading: Reading, twice: Twice) -> Reading:
    if reading.target is None:
        return replace(reading, encoded=reading.model.encode_numbers(twice.read), captured=None)
    target = reading.model.target(reading.encoded, None, twice.read)
    return replace(reading, target=target, captured=None)


def _of_circuits(reading: Reading, chosen: Chosen) -> dict[str, HeadScores]:
    module = reading.model.module
    if chosen.kind is not Kind.DECODER:
        return _absent(chosen, ["copying"], "what it writes is not read as a token: not a decoder")
    if chosen.route is Route.RETURNED:
        return _absent(chosen, ["copying"], _NO_VECTORS)
    embedding, head = weight_of(module.get_input_embeddings()), module.get_output_embeddings()
    tied = getattr(module.config, "tie_word_embeddings", False)
    unembedding = weight_of(head) if head is not None else embedding if tied else None
    if embedding is None or unembedding is None:
        return _absent(chosen, ["copying"], "its output embeddings are not in memory")
    with reading.listener.working("reading the circuits"):
        captured = replace(reading, captured=None).capture(chosen, circuits=True)
        copying = copying_scores(captured, chosen.heads, embedding.detach().cpu(), unembedding.detach().cpu())
    return _absent(chosen, ["copying"], copying) if isinstance(copying, str) else {"copying": copying}


def _absent(chosen: Chosen, names: Sequence[str], why: str) -> dict[str, HeadScores]:
    empty = np.full((len(chosen.layers), len(chosen.heads)), np.nan)
    return {
        name: HeadScores(
            MEASURES[name].description,
            chosen.layers,
            chosen.heads,
            empty,
            MEASURES[name].limits(1),
            absent=why,
        )
        for name in names
    }


Laid = PictureAttention | PictureHeads | SoundAttention | SoundHeads
MEAN = "mean"


def lay_over(reading: Reading, chosen: Chosen, query: Name | None = None) -> Laid:
    """The chosen heads over the picture or sound, for `query`; the listener is told of a default query."""
    with reading.listener.working("reading the attention"):
        captured = reading.capture(chosen)
    medium = reading.medium
    if medium is None:
        raise InputError(f"{reading.model.name} reads a picture in pieces: it cannot be laid over one")
    tell_windows(captured, reading, chosen)
    if chosen.one:
        head = recompute_head(captured, *chosen.only(), block=chosen.block)
        return _over(head, medium, _query(head.query_tokens, head.key_tokens, query, reading.listener))
    several = measure_heads(captured, chosen.heads, chosen.block)
    position = _query(several.query_tokens, several.key_tokens, query, reading.listener)
    if isinstance(medium, Picture):
        return heads_over_picture(several, medium, position)
    return heads_over_sound(several, medium, position)


def laid_over(reading: Reading, head: HeadAttention, query: int) -> PictureAttention | SoundAttention | None:
    """A recomputed head over the picture or sound, for `query`; None without a medium."""
    medium = reading.medium
    if medium is None:
        return None
    return _over(head, medium, query)


def _over(
    head: HeadAttention, medium: Picture | Sound, query: int | None
) -> PictureAttention | SoundAttention:
    return (
        over_picture(head, medium, query) if isinstance(medium, Picture) else over_sound(head, medium, query)
    )


def tell_windows(captured: Capture, reading: Reading, chosen: Chosen) -> None:
    """Tell the listener which picture window is shown; `InputError` for several layers with windows."""
    windows = max(call.block for call in captured.calls) + 1
    if windows < 2:
        return
    if len(chosen.layers) > 1:
        raise InputError(f"each layer of {reading.model.name} has windows of its own: name one with --layer")
    shown = captured.call(chosen.layers[0], block=chosen.block).block
    reading.listener.notice(f"it is read in {windows} windows: showing {shown} (--block chooses)")


def _query(tokens: Tokens, keys: Tokens, wanted: Name | None, listener: Listener) -> int | None:
    if wanted is not None:
        return None if wanted == MEAN and MEAN not in tokens.names else tokens.position(wanted)
    chosen = default_query(tokens, keys)
    shown = f"the mean over all {len(tokens)} queries" if chosen is None else f"query {tokens.named(chosen)}"
    listener.notice(f"showing {shown} (--query chooses)")
    return chosen


TOKENS = Looking()
_READ_AT_ONCE = 256 * 2**20  # bytes of weights in memory at once
_OF_A_PAIR = 16  # bytes of a weight as it is recorded and recomputed


@dataclass(frozen=True)
class OpenedHeads:
    """The chosen heads of a reading; each method runs the model unless its attention is captured."""

    reading: Reading
    chosen: Chosen

    @property
    def one(self) -> bool:
        """True where a single head, or the mean over some, is chosen."""
        return self.chosen.one

    def head(self) -> HeadAttention:
        """The chosen single head, recomputed and certified."""
        reading, chosen = self.reading, self.chosen
        layer, head = chosen.only()
        with reading.listener.working("reading the attention"):
            recomputed = recompute_head(reading.capture(chosen), layer, head, block=chosen.block)
        return replace(recomputed, notes=(*recomputed.notes, *reading.notes))

    def weights(self, stage: str = Stage.WEIGHTS) -> HeadWeights:
        """The head's weights, recomputed; else those that the model returns.

        `InputError` where another `stage` is asked for, and that is not returned.
        """
        reading, chosen = self.reading, self.chosen
        if chosen.mean and stage == Stage.WEIGHTS:
            with reading.listener.working("reading the attention"):
                return mean_head(reading.attention(chosen), chosen.layers, chosen.heads, chosen.block)
        layer, head = chosen.only()
        with reading.listener.working("reading the attention"):
            attention = reading.attention(chosen)
            if isinstance(attention, Returned) and stage != Stage.WEIGHTS:
                raise InputError(f"{reading.model.name} returns weights alone here: leave --show {stage} out")
            return _head_in(attention, chosen, layer, head)

    def terms(self) -> HeadTerms:
        """The terms that the head's scores are sums of."""
        layer, head = self.chosen.only()
        with self.reading.listener.working("reading the attention"):
            return head_terms(self.reading.capture(self.chosen), layer, head, self.chosen.block)

    def dimensions(self, query: Name | None = None, key: Name | None = None) -> Dimensions:
        """One pair of tokens, dimension by dimension; by default the strongest pair."""
        layer, head = self.chosen.only()
        with self.reading.listener.working("reading the attention"):
            captured = self.reading.capture(self.chosen)
            return head_dimensions(captured, layer, head, query, key, self.chosen.block)

    def overview(self, measures: Sequence[str] = ENTROPY, looking: Looking = TOKENS) -> Overview:
        """Every head by `measures`; those not taken of the text need runs of their own."""
        of_text = tuple(name for name in measures if not MEASURES[name].description.apart)
        overview = _overview_of_text(self.reading, self.chosen, of_text or ENTROPY, looking)
        return with_apart(self.reading, self.chosen, overview, measures)

    def thumbnails(self, looking: Looking = TOKENS) -> Thumbnails:
        """The weights of every head, reduced to few cells."""
        reading, chosen = self.reading, self.chosen
        check_has_words(reading, chosen, looking)
        view = View(looking.unit, looking.treatment)
        with reading.listener.working("reading the attention"):
            small = thumbnails(_layers_by_memory(reading, chosen), chosen.heads, chosen.block, view)
        return replace(small, notes=(*small.notes, *reading.notes))

    def one_by_one(self, looking: Looking) -> Iterator[HeadWeights | HeadView]:
        """Each head in turn, viewed by `looking`, certified where it can be recomputed."""
        chosen = self.chosen
        with self.reading.listener.working("reading the attention"):
            attention = self.reading.attention(chosen)
        for layer in chosen.layers:
            for head in chosen.heads:
                weights = _head_in(attention, chosen, layer, head)
                yield look_at(weights, looking) or weights


def _head_in(attention: Capture | Returned, chosen: Chosen, layer: int, head: int) -> HeadWeights:
    if isinstance(attention, Returned):
        return returned_head(attention, layer, head)
    return recompute_head(attention, layer, head, block=chosen.block)


def overview_in(attention: Capture | Returned, chosen: Chosen, measures: Sequence[str]) -> Overview:
    """The chosen heads by `measures`, from the capture or from returned weights."""
    if isinstance(attention, Returned):
        return returned_overview(attention, chosen.heads, measures)
    return measure_heads(attention, chosen.heads, chosen.block, measures)


def _overview_of_text(
    reading: Reading, chosen: Chosen, measures: Sequence[str], looking: Looking
) -> Overview:
    check_has_words(reading, chosen, looking)
    with reading.listener.working("reading the attention"):
        attention = reading.attention(chosen, projections=needs_norms(measures))
        overview = overview_in(attention, chosen, measures)
    overview = replace(overview, notes=(*overview.notes, *reading.notes))
    if looking.links_among_all:
        overview = among_all(overview)
    if not looking.changes:
        return overview
    allowed = None if isinstance(attention, Returned) else allowed_pairs(attention, chosen, overview.layers)
    return viewed_overview(overview, **looking.how, allowed=allowed)


def check_has_words(reading: Reading, chosen: Chosen, looking: Looking) -> None:
    """Raises `InputError` for text units where only a picture or a sound is read."""
    if looking.unit.joins and reading.perceived is not None and not reading.tokens_of(chosen.kind).texts:
        raise InputError(
            f"--by {looking.unit} takes tokens of a text together: a picture or a sound has none"
        )


def allowed_pairs(attention: Capture, chosen: Chosen, layers: Sequence[int]) -> AllowedPairs:
    """A function from layer and head index to the mask of allowed queries x keys."""
    calls = [without_padding(attention.call(layer, block=chosen.block)) for layer in layers]
    return lambda layer, head: calls[layer].allowed_matrix(chosen.heads[head])


def _layers_by_memory(reading: Reading, chosen: Chosen) -> Iterator[Capture | Returned]:
    if reading.captured is not None:
        yield reading.capture(chosen)
        return
    patches = () if reading.perceived is None else reading.perceived.positions.items
    pairs = max(len(reading.tokens_of(chosen.kind)) * len(reading.encoded.tokens), len(patches) ** 2)
    count = max(_READ_AT_ONCE // max(_OF_A_PAIR * pairs * len(chosen.heads), 1), 1)
    for first in range(0, len(chosen.layers), count):
        attention = reading.attention(replace(chosen, layers=chosen.layers[first : first + count]))
        if patches and isinstance(attention, Capture):
            tell_windows(attention, reading, chosen)
        yield attention
