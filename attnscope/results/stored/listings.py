"""The document of what is no result: what can be measured of a head."""

import json
from dataclasses import asdict, dataclass, field

from attnscope.results.scores import MeasureDescription
from attnscope.results.stored.strict import VERSION


@dataclass(frozen=True)
class MeasureListed:
    """A measure as it is described with its numbers, its `range` in words and its `formula`.

    In a formula a is the weight of query q on key k, mean the mean over queries, and f(x_k) what arrives of
    the value of k through the output projection.
    """

    described: MeasureDescription = field(metadata={"spread": True})
    range: str
    formula: str


@dataclass(frozen=True)
class MeasuresListing:
    """What can be measured of a head: `measures` are all of them, or those that were asked for."""

    measures: tuple[MeasureListed, ...]


LISTINGS = {"measures": MeasuresListing}


def measures_document(listing: MeasuresListing, answer: str) -> str:
    """One measure a line."""
    head = json.dumps(_head("measures", answer), indent=2).removesuffix("\n}")
    rows = [
        asdict(each.described) | {"range": each.range, "formula": each.formula} for each in listing.measures
    ]
    body = ",\n    ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f'{head},\n  "measures": [\n    {body}\n  ]\n}}\n'


def _head(kind: str, answer: str) -> dict[str, str]:
    return {"schema": f"attnscope.{kind}/{VERSION}", "answer": answer}
