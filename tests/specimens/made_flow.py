"""What reaches a token, as it could have come out: random attention of three layers, random effects."""

from dataclasses import replace

import made_results as made
import numpy as np

from attnscope.analysis.claims.flow.replacing import trusted
from attnscope.analysis.claims.flow.rollout import by_units, max_flow, mixed, rollout
from attnscope.analysis.heads.view import Units
from attnscope.results import Flow, Kind, Verdict
from attnscope.results.base.groups import joined
from attnscope.results.claims.flow import GRADIENT, INTEGRATED, WEIGHED, Ablated, Attributed, Pooled
from attnscope.results.claims.intervention import Intervention
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
