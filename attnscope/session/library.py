"""The library: a model, what it reads, and everything that can be asked of that, for notebooks and scripts.

    import attnscope as at

    reading = at.load("bert-base-uncased").read("I was watching the [MASK] when it opened.")
    head = reading.head(3, 11)

What is asked is asked of the same session as by the command line, under the same names, with the same
one-line errors; results are those of `attnscope.results`. Notices go to the logger `attnscope`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnscope.attention import Capture
from attnscope.errors import InputError
from attnscope.measures import parse_measures
from attnscope.model.loaded import Model as LoadedModel
from attnscope.model.loading.answering import task_of
from attnscope.results import (
    Comparison,
    HeadTerms,
    HeadView,
    HeadWeights,
    MapSettings,
    Outline,
    Overview,
    Prediction,
    Projection,
    Report,
    Verification,
)
from attnscope.session.choosing import Chosen, choose
from attnscope.session.entering import complete, encode_inputs
from attnscope.session.listener import Listener, Log
from attnscope.session.opening import Opened, Purpose, open_model
from attnscope.session.questions.comparison import compare_in_layers, compare_readings
from attnscope.session.questions.heads import look_at, read_head, read_overview, read_terms, read_weights
from attnscope.session.questions.maps import map_head
from attnscope.session.questions.media import Laid, lay_over
from attnscope.session.questions.outline import outline_model
from attnscope.session.questions.prediction import TOP, predict
from attnscope.session.questions.report import report_head
from attnscope.session.questions.verification import verify_reading
from attnscope.session.reading import Reading as WhatIsRead
from attnscope.session.request import Inputs, Looking, ModelRequest, Wanted, Writing
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind

Numbers = str | int | Sequence[int] | None


def load(
    name: str | None = None,
    *,
    revision: str | None = None,
    device: str = "auto",
    dtype: str = "float32",
    attn: str = "eager",
    trust_remote_code: bool = False,
    allow_pickle: bool = False,
    listener: Listener | None = None,
) -> "Model":
    """The model called `name`: a hub id, a folder, or `demo`, `demo-causal`, `demo-translate`.

    Without a name it is ATTNSCOPE_MODEL, else `bert-base-uncased`. It is loaded whole, with the head that it
    predicts with where the checkpoint has one. Raises `AttnscopeError` in one line.
    """
    request = ModelRequest(name, device, dtype, revision, trust_remote_code, allow_pickle, attn)
    listener = listener or Log()
    return Model(open_model(request, Inputs(), None, Purpose.ANYTHING, listener), listener)


def wrap(module: Any, processor: Any = None, *, listener: Listener | None = None) -> "Model":
    """A model of transformers that is in memory already, with its tokenizer or processor.

    It runs as it is, under its own kernel and on its own device, and is left exactly as it was.
    """
    if not hasattr(module, "config") or not hasattr(module, "forward"):
        raise InputError(f"{type(module).__name__} is no model of transformers: it has no config to go by")
    tokenizer = getattr(
        processor, "tokenizer", processor if hasattr(processor, "convert_ids_to_tokens") else None
    )
    model = LoadedModel(
        None, module, tokenizer, None, processor=None if processor is tokenizer else processor
    )
    return Model(Opened(model, task_of(module)), listener or Log())


def outline(
    name: str | None = None,
    *,
    layer: Numbers = -1,
    kind: str | None = None,
    tower: str | None = None,
    length: int | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> Outline:
    """What there is to look at in a model, before any of its weights is fetched or read."""
    wanted = Wanted(layer=layer, kind=kind, tower=tower)
    return outline_model(name, wanted, Log(), revision=revision, remote_code=trust_remote_code, length=length)


class Model:
    """A model in memory. `read` gives it something to read."""

    def __init__(self, opened: Opened, listener: Listener) -> None:
        self._opened, self._listener = opened, listener

    @property
    def name(self) -> str:
        return self._opened.model.name

    @property
    def module(self) -> Any:
        """The model of transformers itself."""
        return self._opened.model.module

    @property
    def tokenizer(self) -> Any:
        return self._opened.model.tokenizer

    @property
    def towers(self) -> dict[str, dict[int, int]]:
        """Where it has attention: by tower how many query heads each layer has, 0 where that is not told."""
        return {tower.called: dict(tower.heads) for tower in self._opened.model.towers}

    def read(
        self,
        text: str | None = None,
        *,
        pair: str | None = None,
        target: str | None = None,
        image: str | Path | None = None,
        audio: str | Path | None = None,
        generate: int | None = None,
        sample: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        truncate: bool = False,
    ) -> "Reading":
        """What the model reads: a text or a pair, a picture or a sound; `generate` tokens are its own.

        `target` is what the decoder of an encoder-decoder reads (default: what the model writes). The other
        options are those of the command line.
        """
        if text is None and image is None and audio is None:
            raise InputError("give a text to read, or a file with image or audio")
        picture, sound = (None if file is None else Path(file) for file in (image, audio))
        inputs = Inputs(
            text, pair, target, picture, sound, Writing(generate, sample, temperature, top_p), truncate
        )
        return Reading(self._opened, inputs, self._listener)

    def __repr__(self) -> str:
        places = ", ".join(
            f"{name} {len(layers)} layers x {max(layers.values())} heads"
            for name, layers in self.towers.items()
        )
        return f"<attnscope model {self.name}: {places or 'no attention'}>"


class Reading:
    """A model and what it has read: every method asks one thing of it.

    `layer` and `head` count from 0, negatives from the end; `kind`, `tower`, `block` and `route` choose
    among several attentions of one model as the options of the command line do.
    """

    def __init__(self, opened: Opened, inputs: Inputs, listener: Listener) -> None:
        self._model, self._inputs, self._listener = opened.model, inputs, listener
        self._encoded = encode_inputs(opened, inputs, listener)
        self._complete: dict[str, WhatIsRead] = {}

    @property
    def tokens(self) -> Tokens:
        """The tokens that were read, those of the encoder where there are two sides."""
        return self._encoded.encoded.tokens

    @property
    def labels(self) -> list[str]:
        """What the tokens are called."""
        return list(self.tokens.labels)

    def head(
        self,
        layer: int,
        head: int,
        *,
        kind: str | None = None,
        tower: str | None = None,
        block: int = 0,
        route: str | None = None,
        words: bool = False,
        special: str = "show",
    ) -> HeadWeights | HeadView:
        """One head, recomputed and certified: `weights`, `scores`, `scaled`, `q`, `k`, `v`, `output`.

        With `words`, or without `special` tokens, a view of its weights. A head that cannot be recomputed
        holds the weights that the model returns, uncertified.
        """
        looking = Looking(words, special)
        done, chosen = self._read(Wanted(layer, head, kind, tower, block, route))
        weights = read_weights(done, chosen)
        return look_at(weights, looking) or weights

    def overview(
        self,
        layers: Numbers = None,
        heads: Numbers = None,
        *,
        measure: str | Sequence[str] = "entropy",
        kind: str | None = None,
        tower: str | None = None,
        block: int = 0,
        route: str | None = None,
        words: bool = False,
        special: str = "show",
    ) -> Overview:
        """Several heads, by default all, each by one or more measures: names, or `all`."""
        measures = parse_measures(measure if isinstance(measure, str) else ",".join(measure))
        done, chosen = self._read(Wanted(layers, heads, kind, tower, block, route))
        return read_overview(done, chosen, measures, Looking(words, special))

    def terms(self, layer: int, head: int, **attention: Any) -> HeadTerms:
        """The scores of one head taken apart; `attention` is kind, tower, block or route, as in `head`."""
        return read_terms(*self._read(Wanted(layer, head, **attention)))

    def tsne(
        self,
        layer: int,
        head: int,
        *,
        perplexity: float = 5.0,
        metric: str = "cosine",
        center_keys: bool = False,
        seed: int = 0,
        max_iter: int | None = None,
        words: bool = False,
        special: str = "show",
        **attention: Any,
    ) -> Projection:
        """The queries and keys of one head in one map, with figures that say how far it can be trusted.

        With `words` a point is a word, the mean of its pieces; `special` tokens may be left out.
        """
        looking = Looking(words, special)
        settings = MapSettings(metric, perplexity, seed, max_iter, center_keys)
        done, chosen = self._read(Wanted(layer, head, **attention))
        return map_head(read_head(done, chosen), settings, self._listener, looking)

    def report(
        self,
        layer: int,
        head: int,
        query: str | int | None = None,
        *,
        words: bool = False,
        special: str = "show",
        **attention: Any,
    ) -> Report:
        """One head and one of its queries, with everything that goes on a page."""
        done, chosen = self._read(Wanted(layer, head, **attention))
        name = None if query is None else str(query)
        return report_head(done, read_head(done, chosen), name, Looking(words, special))

    def over(self, layers: Numbers, heads: Numbers, query: str | int | None = None, **attention: Any) -> Laid:
        """What `query` gives to every patch of the picture or frame of the sound that was read."""
        if not self._inputs.sensed:
            raise InputError("a text was read: only a picture or a sound has something to be laid over")
        done, chosen = self._read(Wanted(layers, heads, **attention))
        return lay_over(done, chosen, None if query is None else str(query))

    def predict(self, top: int = TOP) -> Prediction:
        """What the model itself makes of what it read: masks filled, the next token, a text, a verdict."""
        return predict(self._whole(), top)

    def verify(self) -> Verification:
        """Every layer and head certified, and the model's results held against an untouched run."""
        return verify_reading(self._whole())

    def _read(self, wanted: Wanted) -> tuple[WhatIsRead, Chosen]:
        """What is read where that attention is looked at, and which it is."""
        chosen = choose(self._model, wanted, self._listener, sensed=self._inputs.sensed)
        of_encoder = "encoder" if chosen.kind is Kind.ENCODER else ""
        part = chosen.tower.pattern if self._inputs.goes_on else of_encoder
        if part not in self._complete:
            whole = chosen
            if self._inputs.goes_on:  # the model writes once for all heads of a tower
                tower = Wanted(kind=wanted.kind, tower=wanted.tower, route=wanted.route)
                whole = choose(self._model, tower, self._listener, sensed=False)
            self._complete[part] = complete(self._encoded, whole)
        done = self._complete[part]
        return (done if done.captured is None else _cut(done, chosen)), chosen

    def _whole(self) -> WhatIsRead:
        if "" not in self._complete:
            self._complete[""] = complete(self._encoded, None)
        return self._complete[""]

    def __repr__(self) -> str:
        read = self.tokens.sentence or f"{len(self.tokens)} positions"
        return f"<{self._model.name} read “{read if len(read) < 100 else read[:99] + '…'}”>"


def compare(
    a: Reading,
    b: Reading,
    word: str | int,
    word_b: str | int | None = None,
    *,
    layer: Numbers = None,
    head: Numbers = None,
    layer_b: int | None = None,
    kind: str | None = None,
    tower: str | None = None,
    words: bool = False,
    special: str = "show",
) -> Comparison:
    """One word in two readings, of one model or of two, or with `layer_b` in two layers of one reading.

    How alike its vectors are in every layer, and one head in full: of those that `layer` and `head` name the
    one that differs most. With `words` a word may have been cut into pieces; `special` tokens are shown,
    hidden in the rows that are shown, or with `renormalise` left out of all rows.
    """
    wanted, looking = Wanted(layer, head, kind, tower), Looking(words, special)
    names = str(word), str(word if word_b is None else word_b)
    first = a._read(wanted.all_layers)
    if layer_b is not None:
        if a is not b:
            raise InputError("layer_b compares two layers of one reading: give the same reading twice")
        return compare_in_layers(*first, names[0], layer, layer_b, looking)
    return compare_readings(first, b._read(wanted.all_layers), names, layer, looking)


def _cut(done: WhatIsRead, chosen: Chosen) -> WhatIsRead:
    """The reading whose attention was captured in all layers, down to the layers that are meant."""
    captured: Capture | None = done.captured
    assert captured is not None
    calls = tuple(call for call in captured.calls if call.layer in chosen.layers)
    return replace(done, captured=replace(captured, calls=calls))
