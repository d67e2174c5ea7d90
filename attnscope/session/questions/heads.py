"""Heads of a model in memory: one in full, its scores taken apart, several at a glance, all certified."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from attnscope.analysis.heads.dimensions import head_dimensions
from attnscope.analysis.heads.head import head_terms, recompute_head
from attnscope.analysis.heads.mean import mean_head
from attnscope.analysis.heads.overview import measure_heads, viewed_overview
from attnscope.analysis.heads.returned import returned_head, returned_overview
from attnscope.analysis.heads.thumbnails import View, thumbnails
from attnscope.analysis.heads.view import Name, among_all
from attnscope.analysis.padding import without_padding
from attnscope.analysis.scores.supplies import AllowedPairs
from attnscope.analysis.verification import verify_model
from attnscope.attention import Capture
from attnscope.capture import provenance_of
from attnscope.capture.returned import Returned
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.measures.registry import needs_norms
from attnscope.results import (
    Dimensions,
    HeadAttention,
    HeadTerms,
    HeadView,
    HeadWeights,
    Overview,
    Projection,
    Thumbnails,
    Verification,
    Worked,
)
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener
from attnscope.session.looking import ENTROPY, aim_at, look_at, map_head
from attnscope.session.question import Answer
from attnscope.session.questions.apart import with_apart
from attnscope.session.questions.media import tell_windows
from attnscope.session.reading import Reading
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.verbs.tsne import Map
from attnscope.session.verbs.verify import Verify
from attnscope.session.wanted import Looking, Wanted
from attnscope.vocabulary import Stage

TOKENS = Looking()
_READ_AT_ONCE = 256 * 2**20  # bytes of weights in memory at once
_OF_A_PAIR = 16  # bytes of a weight as it is recorded and recomputed


@dataclass(frozen=True)
class OpenedHeads:
    """The chosen heads of a reading: every question is answered by the model, and kept where one keeps."""

    reading: Reading
    chosen: Chosen

    @property
    def one(self) -> bool:
        """Whether a single head is chosen."""
        return self.chosen.one

    def head(self) -> HeadAttention:
        """The head, recomputed and certified."""
        reading, chosen = self.reading, self.chosen
        layer, head = chosen.only()
        with reading.listener.working("reading the attention"):
            recomputed = recompute_head(reading.capture(chosen), layer, head, block=chosen.block)
        return replace(recomputed, notes=(*recomputed.notes, *reading.notes))

    def weights(self, stage: str = Stage.WEIGHTS) -> HeadWeights:
        """The head; of one that cannot be recomputed the weights that the model returns.

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
        """The scores of the head taken apart."""
        layer, head = self.chosen.only()
        with self.reading.listener.working("reading the attention"):
            return head_terms(self.reading.capture(self.chosen), layer, head, self.chosen.block)

    def dimensions(self, query: Name | None = None, key: Name | None = None) -> Dimensions:
        """One pair of tokens, dimension by dimension; by default the pair with the strongest weight."""
        layer, head = self.chosen.only()
        with self.reading.listener.working("reading the attention"):
            captured = self.reading.capture(self.chosen)
            return head_dimensions(captured, layer, head, query, key, self.chosen.block)

    def overview(self, measures: Sequence[str] = ENTROPY, looking: Looking = TOKENS) -> Overview:
        """Every head by all of `measures`; what is not taken of the text is measured in a run of its own."""
        of_text = tuple(name for name in measures if not MEASURES[name].description.apart)
        overview = _overview_of_text(self.reading, self.chosen, of_text or ENTROPY, looking)
        return with_apart(self.reading, self.chosen, overview, measures)

    def thumbnails(self, looking: Looking = TOKENS) -> Thumbnails:
        """The weights of every head in few cells."""
        reading, chosen = self.reading, self.chosen
        check_has_words(reading, chosen, looking)
        view = View(looking.unit, looking.treatment)
        with reading.listener.working("reading the attention"):
            small = thumbnails(_layers_by_memory(reading, chosen), chosen.heads, chosen.block, view)
        return replace(small, notes=(*small.notes, *reading.notes))

    def one_by_one(self, looking: Looking) -> Iterator[HeadWeights | HeadView]:
        """Head after head as it is looked at, certified where it can be recomputed."""
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
    """The chosen heads by `measures`, of the weights that are returned where no more is captured."""
    if isinstance(attention, Returned):
        return returned_overview(attention, chosen.heads, measures)
    return measure_heads(attention, chosen.heads, chosen.block, measures)


def map_of(reading: Reading, chosen: Chosen, asked: Map) -> Answer[Projection]:
    """The map of the head, by the points that are named where these are of several tokens."""
    head = OpenedHeads(reading, chosen).head()
    seen = aim_at(head, asked.looking, asked.query, asked.key, asked.compare_query)
    view = seen.shown if isinstance(seen.shown, HeadView) else None
    queries = [each for each in (seen.query, seen.beside) if each is not None]
    result = map_head(head, asked.settings, reading.listener, view)
    return Answer(
        result,
        {"queries": tuple(queries), "key": seen.key},
        every_head=lambda: [result],
        drawn_by=(asked.looking, asked.settings, queries, seen.key),
    )


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
    """Raises `InputError` for units of text where nothing but a picture or a sound is read."""
    if looking.unit.joins and reading.perceived is not None and not reading.tokens_of(chosen.kind).texts:
        raise InputError(
            f"--by {looking.unit} takes tokens of a text together: a picture or a sound has none"
        )


def allowed_pairs(attention: Capture, chosen: Chosen, layers: Sequence[int]) -> AllowedPairs:
    """Where queries may look, by the place of a layer and of a head."""
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


def verify_reading(reading: Reading, asked: Verify) -> Verification:
    """The certificates of all heads, and the model's results held against a run that was not touched."""
    model, inputs, tokens = reading.model, reading.inputs, reading.encoded.tokens
    target = None if reading.target is None else reading.target.tokens
    with reading.running("certifying every head"):
        provenance = provenance_of(model.module, tokens, reading.origin())
        result = verify_model(model.module, inputs, tokens, provenance, target, asked.every_token)
    medium = reading.medium
    return result if medium is None else replace(result, notes=(medium.described, *result.notes))


def work_through_theatre(
    request: ModelRequest, layer: str | None, head: str | None, kind: str | None, listener: Listener
) -> Worked:
    """The theatre sentence through one head of a model, captured and certified.

    Without a layer and a head it is the one that the bundled model learned for it, of others the first.
    """
    from attnscope.session.reading import open_chosen
    from attnscope.worked.model_head import HEAD, LAYER, SENTENCE, theatre

    usual = HEAD if request.name in ("demo", None) else 0
    wanted = Wanted(layer=LAYER if layer is None else layer, head=usual if head is None else head, kind=kind)
    reading, chosen = open_chosen(request, Inputs(SENTENCE), wanted, listener)
    if not chosen.one:
        raise InputError("--layer, --head: the theatre needs one head")
    with listener.working("reading the attention"):
        captured = reading.capture(chosen)
        return theatre(reading.model.module, reading.inputs, captured, *chosen.only())
