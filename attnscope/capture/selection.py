"""What to read of a run, and what is known of it beside the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnscope.results import Kind, Route
from attnscope.tokens import Tokens


@dataclass(frozen=True)
class Selection:
    """Which attention to read, and how.

    `layers` (default all; negatives count from the end) and `heads` (whose own weights are kept; default
    all) say what to record, `kind` and `tower` which attention of a model that has several, `route` how it
    is to be read instead of the way that is best, `row` which entry of a batch. With `projections` it is also
    looked for what takes the heads' outputs to the hidden state, with `circuits` also for what makes their
    values.
    """

    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None
    kind: Kind | None = None
    tower: str | None = None
    route: Route | None = None
    row: int = 0
    projections: bool = False
    circuits: bool = False


@dataclass(frozen=True, eq=False)
class Labels:
    """What positions stand for, and where the model comes from, as far as somebody knows better than it.

    `tokens` stand for its `input_ids`, `target` for its `decoder_input_ids`, where their text is known.
    Without `tokens`, `texts` is the text or the pair that a tokenizer of the tokenizers library made the
    inputs of: labels are then cut from it, with its own capitals, else they are the vocabulary's pieces.
    `source` are fields of the provenance (as `Model.origin` gives them), `read` the tokens that provenance
    lists where these are not `tokens`.
    """

    tokens: Tokens | None = None
    target: Tokens | None = None
    source: Mapping[str, Any] | None = None
    read: Tokens | None = None
    texts: tuple[str, ...] = ()
