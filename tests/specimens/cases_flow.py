"""A result for every case and every optional part of what `flow` says."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import made_flow
import numpy as np

from attnscope.model.media.patches import position_token
from attnscope.render.focus import Focus
from attnscope.render.sheets import flow_words
from attnscope.results import Flow, Kind
from attnscope.results.claims.flow import Case, Pooled
from attnscope.results.claims.intervention import Intervention
from attnscope.tokens import Patches, Tokens

SAID, CASES = flow_words.said, Case
ROWS, COLUMNS = 3, 4


def of_picture(patches: Patches | None = None) -> Flow:
    """Thirteen positions: [CLS] first, then twelve patches."""
    names = ["[CLS]", *(f"r{i // COLUMNS}c{i % COLUMNS}" for i in range(ROWS * COLUMNS))]
    items = tuple(position_token(name, special=name == "[CLS]") for name in names)
    found = made_flow.flow(answer="")
    tokens = Tokens((), items, (patches or Patches(1, ROWS, COLUMNS),))
    return replace(found, tokens=tokens, notes=("over square.png",))


def few(count: int) -> np.ndarray:
    effects = np.full(13, np.nan)
    effects[1 : 1 + count] = 1.0 + np.arange(count)
    return effects


def agreeing(own: float = 0.8, near: float = 0.1, others: float = 0.1, **changed: object) -> Flow:
    """Attention agrees with `own`, all others alike, but for what is changed."""
    found = made_flow.flow()
    assert found.ablated is not None
    agrees = {"attention": own, "distance alone": near}
    trust = tuple(replace(each, correlation=agrees.get(each.method, others)) for each in found.ablated.trust)
    effects = np.full(13, np.nan)
    effects[1:12] = [0.01, -0.2, 0.0, 0.0, 3.0, 0.0, 0.0, np.nan, 0.0, 0.0, 0.0]
    given = {"effects": effects, "trust": trust, "best_of_shuffled": 0.6, "as_far": 10} | changed
    return replace(found, ablated=replace(found.ablated, **given))  # type: ignore[arg-type]


def _pooled(how: str) -> Flow:
    found = made_flow.pooled()
    assert found.pooled is not None
    return replace(found, pooled=Pooled(how, found.pooled.weights, found.pooled.own))


def _zeroed(lost: int, unseen: int, faithful: bool) -> Flow:
    return replace(made_flow.flow(), zeroing=Intervention.of(3 - lost - unseen, lost, unseen, faithful))


def _span(**changed: object) -> Flow:
    return replace(agreeing(**changed), query_span=(7, 8))


def _unseen(**changed: object) -> Flow:
    """As in a decoder."""
    found = made_flow.flow()
    assert found.ablated is not None
    rollout, effects = found.rollout.copy(), found.ablated.effects.copy()
    rollout[-1, made_flow.QUERY + 1 :], effects[made_flow.QUERY + 1 :] = 0, np.nan
    ablated = replace(found.ablated, effects=effects)
    return replace(found, **{"kind": Kind.DECODER, "rollout": rollout, "ablated": ablated} | changed)


EXAMPLES: dict[str, Callable[[], Flow] | tuple[Callable[[], Flow], Focus]] = {
    "random": made_flow.flow,
    "in full": (made_flow.flow, Focus(verbose=True)),
    "one method agrees": agreeing,
    "no method does": lambda: agreeing(as_far=60),
    "the line between them": lambda: agreeing(as_far=49),
    "just beyond the line": lambda: agreeing(as_far=50),
    "distance does as well": lambda: agreeing(near=0.9),
    "one method alone agrees": lambda: agreeing(others=float("nan")),
    "one method alone does not": lambda: agreeing(others=float("nan"), as_far=60),
    "few": lambda: agreeing(effects=few(5)),
    "few and near": lambda: agreeing(effects=few(5), near=0.9),
    "one alone": lambda: agreeing(effects=few(1)),
    "flat": lambda: agreeing(effects=few(5) / 100),
    "too few for a correlation": lambda: agreeing(effects=few(3), trust=()),
    "an answer that is none": lambda: agreeing(answer=""),
    "one alone, no answer": lambda: agreeing(effects=few(1), answer=""),
    "nothing replaced": lambda: made_flow.flow(replaced=False),
    "little": lambda: replace(made_flow.flow(replaced=False, whole=False), sampled=8),
    "a lead": made_flow.leading,
    "a lead, in full": (made_flow.leading, Focus(verbose=True)),
    "no embedding": lambda: agreeing(replacement="nothing"),
    "by words": made_flow.by_words,
    "by words, too few": lambda: replace(
        made_flow.by_words(), ablated=replace(made_flow.by_words().ablated, trust=())
    ),  # type: ignore[type-var]
    **{f"pooled {how}": partial(_pooled, how) for how in ("mean", "first", "last", "pooler")},
    "pooled, in full": (made_flow.pooled, Focus(verbose=True)),
    "of a picture": of_picture,
    "effects on an answer of a picture": lambda: replace(of_picture(), ablated=made_flow.flow().ablated),
    "several tokens": _span,
    "several tokens, no answer": lambda: _span(answer=""),
    "a span": lambda: _span(tag=True, answer_ids=(7, 8)),
    "of a decoder": _unseen,
    "of a decoder, nothing replaced": lambda: _unseen(ablated=None, attributed=(), reason="it is alone"),
    "values lost": lambda: _zeroed(1, 0, True),
    "values unseen": lambda: _zeroed(0, 1, True),
    "watching changes it": lambda: _zeroed(0, 0, False),
}
