"""What a model has read, and every question as a method: what `Model.read` returns."""

from collections.abc import Sequence
from typing import Any

from attnscope.errors import InputError
from attnscope.measures import parse_measures
from attnscope.process.alone import each_alone
from attnscope.results import (
    Dimensions,
    HeadTerms,
    HeadView,
    HeadWeights,
    LayeredPrediction,
    LongHead,
    MapSettings,
    Overview,
    Prediction,
    Projection,
    Report,
    Thumbnails,
    Verification,
)
from attnscope.session.choosing import choose
from attnscope.session.effects import LAYER_CONTROLS, OTHERS, Attributing, Layering
from attnscope.session.library.claimed import Claimed
from attnscope.session.looking import ENTROPY, look_at, map_head, overview_aimed
from attnscope.session.questions.claims.answers import of_answers, read_measured
from attnscope.session.questions.heads import OpenedHeads, verify_reading
from attnscope.session.questions.layered import predict_layers
from attnscope.session.questions.long import ask_long, in_tiles, read_long_overview
from attnscope.session.questions.media import Laid, lay_over
from attnscope.session.questions.prediction import TOP, predict, report_head
from attnscope.session.wanted import MEANS, Looking, Numbers, Wanted


@each_alone
class Reading(Claimed):
    """A model and what it has read: every method asks one thing of it.

    `layer` and `head` count from 0, negatives from the end; `layers` and `heads`, by default all, are
    several: 3, [0, 3], "4-8". `kind` (encoder, decoder, cross), `tower`, `block` and `route` choose among
    several attentions of one model, as `attention` too where a method takes any of them. `query` and `key`
    are tokens by their text, the second of it (`door#2`), or their position. `by` is what rows and columns
    are: token, word (the same as `words`), sentence or passage; `special` tokens are shown (`show`), hidden
    (`hide`), or left out and the rest brought to 1 (`renormalise`). `seed` repeats what is drawn by lot.

    A layer, head or token that is not there, and what such a model cannot be asked, raise `InputError`; what
    needs more memory than there is raises `DoesNotFitError`.
    """

    def head(
        self,
        layer: int | None,
        head: int | str,
        *,
        kind: str | None = None,
        tower: str | None = None,
        block: int = 0,
        route: str | None = None,
        words: bool = False,
        by: str | None = None,
        special: str | None = None,
    ) -> HeadWeights | HeadView:
        """One head, recomputed and certified: `weights`, `scores`, `scaled`, `q`, `k`, `v`, `output`.

        With "mean" for a head the mean weights over all heads of the layer, or of all layers (None).
        With `words`, or without `special` tokens, a view of its weights. A head that cannot be recomputed
        holds the weights that the model returns, uncertified.
        """
        looking = Looking(words, special, by)
        weights = self._heads(Wanted(layer, head, kind, tower, block, route, MEANS)).weights()
        return look_at(weights, looking) or weights

    def long_head(
        self,
        layer: int,
        head: int,
        *,
        zoom: str | None = None,
        query: str | int | None = None,
        pool: str = "mean",
        kind: str | None = None,
        tower: str | None = None,
        block: int = 0,
    ) -> LongHead:
        """One head computed in tiles, for a text of which `head` would hold too many pairs.

        It comes in blocks, drawn by the `pool` of their pairs (`mean` or `max`), or as a `zoom`
        ("1000-1063:900-1100", queries and keys) pair by pair; with a `query` that one's `row` in full.
        """
        done, chosen = self._read(Wanted(layer, head, kind, tower, block))
        return ask_long(done, chosen, zoom, query, pool)

    def overview(
        self,
        layers: Numbers = None,
        heads: Numbers = None,
        *,
        measure: str | Sequence[str] | None = None,
        tiled: bool | None = None,
        kind: str | None = None,
        tower: str | None = None,
        block: int = 0,
        route: str | None = None,
        words: bool = False,
        by: str | None = None,
        special: str | None = None,
        query: str | int | None = None,
        key: str | int | None = None,
        answer: str | None = None,
        others: int = OTHERS,
        seed: int = 0,
    ) -> Overview:
        """Several heads, by default all, each by one or more of `measure`: names, or `all`.

        With a `query`, by text or position, what it gives to its strongest key in every head, or to `key`.
        Strongest links are those of ordinary tokens, unless `special` is `show`. A long text is computed in
        tiles where `tiled`, by default where all queries by all keys cost much. Measures of the model's
        answer (`importance`, `attention-gradient`, `logit`) are of the likeliest one or of `answer`, beside
        `others` that are drawn with `seed`.
        """
        looking = Looking(words, special, by)
        wanted, names = Wanted(layers, heads, kind, tower, block, route), _measures(measure or ENTROPY)
        if answer is not None or of_answers(names):
            if query is not None or key is not None:
                raise InputError("an answer is measured over all queries and keys: leave query and key out")
            chosen = choose(self._model, wanted, self._listener, sensed=self._inputs.sensed)
            return read_measured(self._whole(), chosen, names, looking, Attributing(answer, others, seed))
        done, chosen = self._read(wanted)
        if query is not None:
            if tiled:
                raise InputError("a query of several heads takes all queries by all keys: leave tiled out")
            beside = () if measure is None else _measures(measure)
            overview = OpenedHeads(done, chosen).overview(beside or ENTROPY, looking)
            return overview_aimed(overview, query, key, beside, looking)
        if key is not None:
            raise InputError("a key goes with a query: name a query")
        against = "words and special tokens need all queries by all keys" if looking.changes else ""
        if in_tiles(done, chosen, tiled, against):
            return read_long_overview(done, chosen, names, looking)
        return OpenedHeads(done, chosen).overview(names, looking)

    def measure(
        self, name: str | Sequence[str], layers: Numbers = None, heads: Numbers = None, **options: Any
    ) -> Overview:
        """One or more measures by `name` of several heads; `options` are those of `overview`.

        Its `main.values` are the numbers of the first by layer and head.
        """
        return self.overview(layers, heads, measure=name, **options)

    def grid(
        self,
        layers: Numbers = None,
        heads: Numbers = None,
        *,
        words: bool = False,
        by: str | None = None,
        special: str | None = None,
        **attention: Any,
    ) -> Thumbnails:
        """The weights of several heads, by default all, each in the same few cells.

        With `words`, or without `special` tokens, rows are as `head` has them.
        """
        return self._heads(Wanted(layers, heads, **attention)).thumbnails(Looking(words, special, by))

    def terms(self, layer: int, head: int, **attention: Any) -> HeadTerms:
        """The scores of one head taken apart; `attention` is kind, tower, block or route, as in `head`."""
        return self._heads(Wanted(layer, head, **attention)).terms()

    def dimensions(
        self,
        layer: int,
        head: int,
        query: str | int | None = None,
        key: str | int | None = None,
        **attention: Any,
    ) -> Dimensions:
        """The product of one query and one key by dimension, by default of the strongest pair of the head."""
        return self._heads(Wanted(layer, head, **attention)).dimensions(query, key)

    def tsne(
        self,
        layer: int,
        head: int,
        *,
        perplexity: float = 5.0,
        metric: str = "cosine",
        seed: int = 0,
        max_iter: int | None = None,
        words: bool = False,
        by: str | None = None,
        special: str | None = None,
        **attention: Any,
    ) -> Projection:
        """The queries and keys of one head in one map, with figures that say how far it can be trusted.

        Points lie by t-SNE of distances by `metric` (cosine, euclidean) at this `perplexity`, with at most
        `max_iter` iterations. With `words` a point is a word, the mean of its pieces; `special` tokens may be
        left out.
        """
        looking = Looking(words, special, by)
        settings = MapSettings(metric, perplexity, seed, max_iter)
        head_read = self._heads(Wanted(layer, head, **attention)).head()
        return map_head(head_read, settings, self._listener, look_at(head_read, looking))

    def report(
        self,
        layer: int,
        head: int,
        query: str | int | None = None,
        *,
        words: bool = False,
        by: str | None = None,
        special: str | None = None,
        **attention: Any,
    ) -> Report:
        """One head and one of its queries, with everything that goes on a page."""
        done, chosen = self._read(Wanted(layer, head, **attention))
        name = None if query is None else str(query)
        head_read = OpenedHeads(done, chosen).head()
        return report_head(done, head_read, name, Looking(words, special, by))

    def over(self, layers: Numbers, heads: Numbers, query: str | int | None = None, **attention: Any) -> Laid:
        """What `query` gives to every patch of the picture or frame of the sound that was read."""
        if not self._inputs.sensed:
            raise InputError("a text was read: only a picture or a sound has something to be laid over")
        done, chosen = self._read(Wanted(layers, heads, **attention))
        return lay_over(done, chosen, None if query is None else str(query))

    def predict(self, top: int = TOP, answer: str | None = None) -> Prediction:
        """What the model itself makes of what it read: masks filled, the next token, a text, a verdict.

        The `top` ones are told, each with its probability, 0 to 1. Of an `answer` that is named how likely it
        is; several tokens are multiplied.
        """
        return predict(self._whole(), top, answer)

    def predict_layers(self, controls: int = LAYER_CONTROLS, seed: int = 0) -> LayeredPrediction:
        """What each layer would answer if it were the last, beside `controls` texts of other orders of words.

        `InputError` where there is no single place or class to ask about, or the head reads more than the
        last layer (logit lens, nostalgebraist 2020).
        """
        return predict_layers(self._whole(), Layering(controls, seed))

    def verify(self, *, every_token: bool = False) -> Verification:
        """Every layer and head certified, and the model's results held against an untouched run.

        With `every_token` the place of each token is tried, however long the text, and each row of a block.
        """
        return verify_reading(self._whole(), every_token=every_token)

    def _heads(self, wanted: Wanted) -> OpenedHeads:
        return OpenedHeads(*self._read(wanted))


def _measures(named: str | Sequence[str]) -> tuple[str, ...]:
    return parse_measures(named if isinstance(named, str) else ",".join(named))
