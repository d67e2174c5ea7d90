"""Measures that are not taken of the text: of random tokens that the model reads twice, of weights alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from attnscope.analysis.scores.dense import LEAST, Twice, copying_scores, drawn, repeated_scores
from attnscope.errors import InputError
from attnscope.measures import MEASURES, Need
from attnscope.model.anatomy.placed import weight_of
from attnscope.results import HeadScores, Kind, Overview
from attnscope.session.choosing import Chosen
from attnscope.session.reading import Reading
from attnscope.vocabulary import Route

_NO_VECTORS = "queries and keys are needed"
_OF_AN_ANSWER = "it is about the model's answer, which nobody asks for here"
_NO_DECODER = "nothing stands before a token of which it could have learned: not a decoder"


def with_apart(reading: Reading, chosen: Chosen, overview: Overview, measures: Sequence[str]) -> Overview:
    """The overview with all of `measures` in their order, those that are not of its text among them.

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
