"""Heads ranked as they could have come out: numbers drawn at random, one head far above its controls."""

from dataclasses import replace

import made_results as made
import numpy as np

from attnscope.analysis.claims.controls import ControlTexts
from attnscope.analysis.claims.finding.rank import summary
from attnscope.results import Finding, Kind, Pattern, Sought, Verdict
from attnscope.tokens import Tokens

LAYERS, HEADS, CONTROLS = (0, 2, 3), (0, 1, 4, 5), 30


def control_texts(tokens: Tokens, count: int = CONTROLS, asked: int = 40) -> ControlTexts:
    """Orders of all tokens but the first and the last."""
    random, last = np.random.default_rng(4), len(tokens) - 1
    sources = np.array([[0, *(1 + random.permutation(last - 1)), last] for _ in range(count)])
    return ControlTexts(np.array(tokens.ids)[sources], sources, "words change places", 5, asked)


def beside(own: np.ndarray, controls: np.ndarray, *, even: float = 0.09, **other: object) -> Finding:
    """Heads of one link with these numbers, and these in control texts; the first of layers and of heads."""
    plain = finding()
    smaller, asked = "question" in other and other["question"].like is not None, len(controls)
    texts = control_texts(plain.query_tokens, asked, max(asked, 19))
    made_of = {
        "weights": own,
        "controls": summary(own, controls, smaller).described(texts, "input_ids"),
        "even_attention": None if smaller else np.full(own.shape, even),
        "layers": tuple(range(len(own))),
        "heads": tuple(range(own.shape[1])),
        "verdicts": ((Verdict.CERTIFIED,) * own.shape[1],) * len(own),
        "ranks": None, "norms": None, "shares": None, "followed": None, "notes": (),
    }  # fmt: skip
    return replace(plain, **(made_of | other))  # type: ignore[arg-type]


def finding(
    *, pattern: Pattern | None = None, like: tuple[int, int] | None = None, by_norm: bool = True
) -> Finding:
    random, shape = np.random.default_rng(3), (len(LAYERS), len(HEADS))
    own, controls = random.random(shape) / 2, random.random((CONTROLS, *shape)) / 3
    own[1, 2] = 0.93
    if like is not None:
        place = LAYERS.index(like[0]), HEADS.index(like[1])
        own[place] = np.nan
        controls[:, place[0], place[1]] = np.nan
    tokens, pair = made.tokens(made.DOOR), pattern is None and like is None
    second = Verdict.CERTIFIED if pair else Verdict.PARTIAL
    ranked = None if like is not None else np.floor(1 + 3 * random.random(shape))
    return Finding(
        question=Sought(query=8, key=2) if pair else Sought(pattern=pattern, like=like),
        kind=Kind.ENCODER,
        query_tokens=tokens,
        key_tokens=tokens,
        layers=LAYERS,
        heads=HEADS,
        rows=1 if pair else len(tokens) - 2,
        weights=own,
        ranks=ranked,
        norms=4 * own if by_norm and like is None else None,
        shares=own / 2 if by_norm and like is None else None,
        even_attention=np.full(shape, 1 / 13) if like is None else None,
        followed=0.6 * own if pair else None,
        controls=summary(own, controls, like is not None).described(control_texts(tokens), "input_ids"),
        verdicts=((Verdict.CERTIFIED,) * 4, (second,) * 4, (Verdict.CERTIFIED,) * 4),
        provenance=made.provenance(),
        notes=("odd",),
        links=np.array([[8, 2]]) if pair else np.zeros((0, 2), dtype=int),
    )
