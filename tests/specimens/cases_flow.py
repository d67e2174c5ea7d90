"""A result for every case and every optional part of what `flow` says."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import made_results as made
import numpy as np

from attnscope.analysis.heads.view import Units
from attnscope.analysis.inputs.replacing import trusted
from attnscope.model.media.patches import position_token
from attnscope.render.sheets import Focus
from attnscope.results import Flow, Kind, Verdict
from attnscope.results.base.groups import joined
from attnscope.results.claims.attributed import GRADIENT, INTEGRATED, WEIGHED, Attributed, Pooled
from attnscope.results.claims.effect import Intervention
from attnscope.tokens import Patches, Tokens
from attnscope.verbs.flow.result import Ablated, Case
from attnscope.verbs.flow.rollout import by_units, max_flow, mixed, rollout
from attnscope.verbs.flow.sheet import said
from attnscope.vocabulary import Unit

QUERY = 8


def matrices(count: int = 13, layers: int = 3, seed: int = 0) -> list[np.ndarray]:
    raw = np.random.default_rng(seed).exponential(size=(layers, count, count))
    return list(raw / raw.sum(axis=2, keepdims=True))


def attributed(effects: np.ndarray, *, answer: bool) -> tuple[Attributed, ...]:
    """Signed numbers for each token and shares; without an answer none of those that need one."""
    random = np.random.default_rng(9)
    one = random.normal(size=len(effects))
    there = np.where(np.isnan(effects), np.nan, random.normal(size=len(effects)))
    flat = "nothing is answered here"
    return (
        Attributed(GRADIENT, one if answer else None, "" if answer else flat),
        Attributed(
            INTEGRATED, there, whole=float(np.nansum(there)) - 0.002, off=0.002, each_off=0.004, steps=24
        ),
        Attributed(
            WEIGHED, random.dirichlet(np.ones(len(effects))) if answer else None, "" if answer else flat
        ),
    )


def flow(*, replaced: bool = True, answer: str = "it", whole: bool = True) -> Flow:
    """`whole` with norms and the largest flow; without an `answer` effects are turns of a vector."""
    tokens = made.tokens(made.DOOR)
    weights = matrices(len(tokens))
    mixing = [mixed(each) for each in weights]
    reached = rollout(mixing)[:, QUERY]
    found = Flow(
        query=QUERY,
        kind=Kind.ENCODER,
        tokens=tokens,
        layers=(0, 1, 2),
        heads=(0, 2, 3, 5),
        raw=np.array([each[QUERY] for each in weights]),
        rollout=reached,
        by_norm=reached[:, ::-1].copy() if whole else None,
        flow=max_flow(mixing, QUERY) if whole else None,
        most=128 if whole else 12,
        ablated=None,
        reason="" if replaced else "there is no other token that could be replaced",
        certified={Verdict.CERTIFIED: 12},
        provenance=made.provenance(),
        notes=("odd",),
        zeroed=rollout(matrices(len(tokens), seed=6))[:, QUERY] if whole else None,
        zeroing=Intervention.of(3, 0, 0, True) if whole else None,
        no_zeroing="" if whole else "the layers read other positions than the tokens",
    )
    if not replaced:
        return found
    effects = np.random.default_rng(2).normal(size=len(tokens))
    effects[[0, QUERY, 12]] = np.nan
    if whole:
        found = replace(found, attributed=attributed(effects, answer=bool(answer)))
    trust = trusted(found.methods, effects, -np.abs(np.arange(len(tokens)) - float(QUERY)), seed=4)
    chance = 0.75 if answer else float("nan")
    values = {name: getattr(found, name) for name in Flow.__dataclass_fields__}
    ablated = Ablated(effects if answer else np.abs(effects), "[MASK]", answer, chance, *trust, 1000, 4)
    return Flow(**{**values, "ablated": ablated})


def leading() -> Flow:
    """The same of how far an answer leads another one."""
    found = flow()
    assert found.ablated is not None
    told = replace(found.ablated, against="they", lead=2.5, probability=float("nan"))
    return replace(found, ablated=told)


def pooled() -> Flow:
    """The same of the vector of a whole text, a mean."""
    found = flow(answer="")
    own = np.linspace(-0.05, 0.25, len(found.tokens))
    return replace(found, query=None, pooled=Pooled("mean", np.full(len(own), 1 / len(own)), own / own.sum()))


def by_words() -> Flow:
    """The same by words, of which one has two tokens, replaced at once."""
    found = replace(flow(), attributed=())
    assert found.ablated is not None
    together, alone = (3, 4), [(i,) for i in range(13) if i not in (3, 4)]
    groups = (*alone[:3], together, *alone[3:])
    replaced = tuple(group for group in groups if not np.isnan(found.ablated.effects[list(group)]).any())
    found.ablated.effects[4] = found.ablated.effects[3]
    ablated = replace(found.ablated, groups=replaced)
    tokens = joined(found.tokens, groups)
    units = Units(groups, groups, tokens, tokens, query=7)
    return by_units(replace(found, flow=None, by=Unit.WORD, ablated=ablated), units)


SAID, CASES = said, Case
ROWS, COLUMNS = 3, 4


def of_picture(patches: Patches | None = None) -> Flow:
    """Thirteen positions: [CLS] first, then twelve patches."""
    names = ["[CLS]", *(f"r{i // COLUMNS}c{i % COLUMNS}" for i in range(ROWS * COLUMNS))]
    items = tuple(position_token(name, special=name == "[CLS]") for name in names)
    found = flow(answer="")
    tokens = Tokens((), items, (patches or Patches(1, ROWS, COLUMNS),))
    return replace(found, tokens=tokens, notes=("over square.png",))


def few(count: int) -> np.ndarray:
    effects = np.full(13, np.nan)
    effects[1 : 1 + count] = 1.0 + np.arange(count)
    return effects


def agreeing(own: float = 0.8, near: float = 0.1, others: float = 0.1, **changed: object) -> Flow:
    """Attention agrees with `own`, all others alike, but for what is changed."""
    found = flow()
    assert found.ablated is not None
    agrees = {"attention": own, "distance alone": near}
    trust = tuple(replace(each, correlation=agrees.get(each.method, others)) for each in found.ablated.trust)
    effects = np.full(13, np.nan)
    effects[1:12] = [0.01, -0.2, 0.0, 0.0, 3.0, 0.0, 0.0, np.nan, 0.0, 0.0, 0.0]
    given = {"effects": effects, "trust": trust, "best_of_shuffled": 0.6, "as_far": 10} | changed
    return replace(found, ablated=replace(found.ablated, **given))  # type: ignore[arg-type]


def _pooled(how: str) -> Flow:
    found = pooled()
    assert found.pooled is not None
    return replace(found, pooled=Pooled(how, found.pooled.weights, found.pooled.own))


def _zeroed(lost: int, unseen: int, faithful: bool) -> Flow:
    return replace(flow(), zeroing=Intervention.of(3 - lost - unseen, lost, unseen, faithful))


def _span(**changed: object) -> Flow:
    return replace(agreeing(**changed), query_span=(7, 8))


def _unseen(**changed: object) -> Flow:
    """As in a decoder."""
    found = flow()
    assert found.ablated is not None
    rollout, effects = found.rollout.copy(), found.ablated.effects.copy()
    rollout[-1, QUERY + 1 :], effects[QUERY + 1 :] = 0, np.nan
    ablated = replace(found.ablated, effects=effects)
    return replace(found, **{"kind": Kind.DECODER, "rollout": rollout, "ablated": ablated} | changed)


EXAMPLES: dict[str, Callable[[], Flow] | tuple[Callable[[], Flow], Focus]] = {
    "random": flow,
    "in full": (flow, Focus(verbose=True)),
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
    "nothing replaced": lambda: flow(replaced=False),
    "little": lambda: replace(flow(replaced=False, whole=False), sampled=8),
    "a lead": leading,
    "a lead, in full": (leading, Focus(verbose=True)),
    "no embedding": lambda: agreeing(replacement="nothing"),
    "by words": by_words,
    "by words, too few": lambda: replace(by_words(), ablated=replace(by_words().ablated, trust=())),  # type: ignore[type-var]
    **{f"pooled {how}": partial(_pooled, how) for how in ("mean", "first", "last", "pooler")},
    "pooled, in full": (pooled, Focus(verbose=True)),
    "of a picture": of_picture,
    "effects on an answer of a picture": lambda: replace(of_picture(), ablated=flow().ablated),
    "several tokens": _span,
    "several tokens, no answer": lambda: _span(answer=""),
    "a span": lambda: _span(tag=True, answer_ids=(7, 8)),
    "of a decoder": _unseen,
    "of a decoder, nothing replaced": lambda: _unseen(ablated=None, attributed=(), reason="it is alone"),
    "values lost": lambda: _zeroed(1, 0, True),
    "values unseen": lambda: _zeroed(0, 1, True),
    "watching changes it": lambda: _zeroed(0, 0, False),
}
