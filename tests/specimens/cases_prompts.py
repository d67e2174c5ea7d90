"""A result for every case and every optional part of what is said of many prompts."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import made_results as made
import numpy as np

from attnscope.analysis.prompts import Seen, tabled
from attnscope.render.sheets import prompts as sheets
from attnscope.results import Kind, Prompts, Verdict
from attnscope.results.claims.prompts import CORRELATION, Asked, Case, Figure, Prompt, Refused

_TEXTS = (
    *("Mary gave Ann a book.", "John gave the old man a key.", "Ann sold Tom the red car.", "Tom fell."),
    *(
        "Ann gave Mary the key.",
        "The old man sold Tom a car.",
        "John sold Ann the red book.",
        "Mary saw Tom.",
    ),
)
# of each figure what it has in the first three prompts, and again, and in those against it; its controls
_MEASURED = {
    Asked.FIND: ("weight", ((0.8, 0.7, 0.78, 0.05), (0.1, 0.12, 0.1, 0.09)), 0.1),
    Asked.LIKE: ("distance", ((0.1, 0.12, 0.15, 0.5), (0.5, 0.4, 0.45, 0.4)), 0.4),
    Asked.ABLATE: ("nats", ((-1.2, -0.9, -1.4, 0.3), (0.02, -0.01, 0.03, 0.02)), 0.05),
    Asked.LINKS: ("weight", ((0.8, 0.7, 0.78, 0.05), (0.16, 0.17, 0.15, 0.14)), 0.15),
    Asked.RANK: ("foretold nats", ((-1.2, -0.9, -1.4, 0.3), (0.02, -0.01, 0.03, 0.02)), 0.05),
    Asked.ANSWER: ("logits", ((2.1, 1.2, 1.8, -0.3), (1.0, 1.4, -0.9, 0.8)), 0.4),
    Asked.FLOW: (CORRELATION, ((0.8, 0.7, 0.6, 0.1), (0.2, 0.3, 0.1, 0.2)), 0.25),
    Asked.PREDICT: ("probability", ((0.9, 0.8, 0.7, 0.4), (0.05, 0.8, 0.1, 0.2)), 0.15),
    Asked.LAYERS: ("probability", ((0.1, 0.2, 0.05, 0.1), (0.9, 0.8, 0.7, 0.4)), 0.15),
    Asked.WHY: ("share", ((5.1, 4.2, 4.8, -0.3), (1.0, 1.4, -0.9, 0.8)), 0.4),
}
_NAMES = {
    Asked.LINKS: (
        Figure("L1 H8 from field:a at “book”", "weight", 1, 8),
        Figure("L0 H3 from “gave” at field:b", "weight", 0, 3),
    ),
    Asked.ANSWER: (Figure("L0 H2", "logits", 0, 2), Figure("biases", "logits")),
    Asked.FLOW: (Figure("rollout", CORRELATION), Figure("attention", CORRELATION)),
    Asked.PREDICT: (Figure("own answer", "probability"), Figure("“book”", "probability")),
    Asked.LAYERS: (Figure("embeddings", "probability"), Figure("layer 0", "probability", 0)),
    Asked.WHY: (
        Figure("L0 H2 on the key side", "share", 0, 2),
        Figure("MLP L0 on the query side", "share", 0),
    ),
}
_QUESTIONS = {
    Asked.FIND: "looks from field:a at field:b",
    Asked.LIKE: "is like L2 H3",
    Asked.LINKS: "what is linked",
    Asked.ABLATE: "with zeros for outputs",
    Asked.RANK: "with zeros for outputs",
    Asked.PREDICT: "what the model answers",
    Asked.LAYERS: "what each layer would answer",
    Asked.ANSWER: "“door” and not “box”",
}


def prompts(
    asked: Asked = Asked.FIND,
    *,
    count: int = 8,
    off: int = 1,
    refused: bool = True,
    first: float | None = None,
) -> Prompts:
    """Two figures over `count` prompts, of which the last `off` go against the first figure's mean.

    `first` is what the first figure has in every prompt, in the place of its own.
    """
    measured, values, control = _MEASURED[asked]
    figures = _NAMES.get(asked, (Figure("L1 H8", measured, 1, 8), Figure("L0 H3", measured, 0, 3)))
    every = []
    for place in range(count):
        own = {}
        for i, figure in enumerate(figures):
            column = place % 3 if place < count - off else 3
            value = values[i][column] if first is None or i else first
            lost = value if not i and (asked.of_parts or asked is Asked.RANK) else float("nan")
            stands = abs(value) > 0.6 if asked is not Asked.LIKE else value < 0.2
            stands = stands and (not asked.of_parts or not i)
            own[figure] = Seen(value, control, lost, stands)
        every.append(own)
    untouched = asked in (Asked.PREDICT, Asked.LAYERS)
    return Prompts(
        asked=asked,
        question=_QUESTIONS.get(asked, "from field:a at field:b"),
        file="gave.csv",
        prompts=tuple(Prompt(2 + i, text) for i, text in enumerate(_TEXTS[:count])),
        refused=(Refused(7, "its cell 'a' is empty"),) if refused else (),
        **vars(tabled(asked, every)),
        certified={} if untouched else {Verdict.CERTIFIED: count},
        provenance=made.provenance().of_no_text,
        kind=None if untouched else Kind.ENCODER,
        notes=("over a test",),
    )


def of_nothing() -> Prompts:
    """Figures that no prompt has a number of."""
    found = prompts()
    none = np.full_like(found.values, np.nan)
    return replace(found, values=none, controls=none)


SAID, CASES = sheets.said, Case


def named(found: Prompts, first: Figure, **other: object) -> Prompts:
    """The same with another first figure."""
    return replace(found, figures=(first, *found.figures[1:]), **other)  # type: ignore[arg-type]


def in_unit(unit: str) -> Prompts:
    found = prompts(Asked.ABLATE)
    return replace(found, figures=tuple(replace(each, measured=unit) for each in found.figures))


def alone(found: Prompts) -> Prompts:
    """Of the first figure only."""
    rows = ("values", "controls", "effects", "stands")
    ends = ("low", "high", "excess_low", "excess_high", "excess_surely")
    kept = {each: getattr(found, each)[:1] for each in (*rows, *ends)}
    return replace(found, figures=found.figures[:1], **kept)


def unheld(asked: Asked, **how: int) -> Prompts:
    """Beside nothing that is nearer to one prompt or token than to another."""
    found = prompts(asked, **how)  # type: ignore[arg-type]
    none = np.full_like(found.values, np.nan)
    return replace(found, controls=none, excess_low=none[:, 0], excess_surely=none[:, 0])


def untried(asked: Asked) -> Prompts:
    """No part, or no head, was taken away, and none stands."""
    found = prompts(asked)
    return replace(found, effects=np.full_like(found.values, np.nan), stands=np.zeros_like(found.stands))


def both_ends() -> Prompts:
    found = prompts(Asked.WHY)
    return replace(found, stands=found.stands | (np.abs(found.values) > 0.95))


def of_fields() -> Prompts:
    """Texts so short that no method has a rank."""
    found = prompts(Asked.FLOW)
    return replace(found, figures=(Figure("field:a", "nats lost"), Figure("field:b", "nats lost")))


def odd_lines(count: int) -> Prompts:
    refused = tuple(Refused(20 + i, f"reason {i}") for i in range(count))
    return replace(prompts(), refused=(*refused, Refused(40, "reason 0")), file="")


EXAMPLES: dict[str, Callable[[], Prompts]] = {
    **{f"of {each}": partial(prompts, each) for each in Asked},
    **{f"one prompt of {each}": partial(prompts, each, count=1) for each in Asked},
    **{f"none, of {each}": partial(prompts, each, first=0.0) for each in Asked},
    **{f"perhaps, of {each}": partial(prompts, each, count=6, off=2) for each in Asked},
    "of nothing": of_nothing,
    "of no link": lambda: replace(of_nothing(), asked=Asked.LINKS),
    "one head": lambda: alone(prompts(first=0.05)),
    "one method": lambda: alone(prompts(Asked.FLOW)),
    "both ways": lambda: prompts(Asked.ABLATE, off=4),
    "all at once": lambda: named(prompts(Asked.ABLATE), Figure("all at once", "nats")),
    "averages": lambda: replace(prompts(Asked.ABLATE), question="with means for outputs"),
    "a link": lambda: replace(prompts(Asked.ABLATE), question="without [MASK]->field:b"),
    "leads": lambda: in_unit("logits"),
    "vectors": lambda: in_unit("cosine"),
    "no distance": lambda: unheld(Asked.FLOW),
    "answers of several tokens": lambda: alone(unheld(Asked.PREDICT)),
    "layers beside nothing": lambda: unheld(Asked.LAYERS),
    "none was taken away": lambda: untried(Asked.RANK),
    "no part stands": lambda: untried(Asked.WHY),
    "no part of an answer stands": lambda: untried(Asked.ANSWER),
    "reasons at both ends": both_ends,
    "fields": of_fields,
    "many reasons": lambda: odd_lines(8),
    "no line is odd": lambda: prompts(refused=False),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "of find": (Case.HOLDS, "L1 H8", "field:a", ".68", ".10", "7 of 8", ".46 to .89"),
    "of find like": (Case.HOLDS, "L1 H8", "L2 H3", ".17", ".40", "7 of 8", ".05 to .28"),
    "of links": (Case.HOLDS, "L1 H8", "from field:a at “book”", ".68", ".15", "7 of 8"),
    "of ablate": (Case.HOLDS, "L1 H8", "2.7 times less", "1.1 times", "7 of 8", "−1.45 to −.52 nats"),
    "of ablate rank": (Case.HOLDS, "predicted", "2.7 times less", "8 of 8", "really makes"),
    "of flow": (Case.HOLDS, "Rollout", "+.64", "+.25", "7 of 8", "+.44 to +.83"),
    "of predict": (Case.ANSWERS, "76.2 %", "15.0 %", "2 of 8 prompts the likeliest is “book”"),
    "of predict layers": (Case.LAYERS, "From layer 0", "7 of 8", "76.2 %", "15.0 %"),
    "of why": (Case.PART, "L0 H2 at the token looked at", "7 of 8", "falls by 4.12", ".40", "+4.12"),
    "of why answer": (Case.PART, "L0 H2", "for “door”", "7 of 8", "4.5 times less", "1.5 times", "+1.50"),
    "both ways": (Case.HOLDS, "4 of 8", "−1.11 to +.23 nats, either way"),
    "none, of find": (Case.CANNOT_TELL, "L0 H3", "any of 2 heads", "2 of 8"),
    "none, of find like": (Case.HOLDS, "L1 H8", "8 of 8 prompts (all alike)"),
    "none, of ablate": (Case.CANNOT_TELL, "any of 2 heads", "hardly changes", "6 of 8"),
    "perhaps, of find": (Case.ALONE, "L1 H8", ".53", "4 of 6", "first of 2 heads"),
    "one prompt of flow": (Case.FEW, "1 prompt is", "6 are needed"),
    "one prompt of why answer": (Case.NO_PART, "biases", "+.80", "6 are needed"),
    "no part stands": (Case.NO_PART, "L0 H2", "+4.12"),
    "reasons at both ends": (Case.PART, "L0 H2", "MLP L0", "in 5."),
    "fields": (Case.HOLDS, "field:a", "1.9 times less", "7 of 8"),
}
