"""What is known of a long head beside its weights: by query and by key, never by pair."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.measuring import sorts
from attnscope.analysis.measuring.known import Known, unmeasured
from attnscope.attention import AttentionCall
from attnscope.measures import MEASURES, Need
from attnscope.measures.moved import moved_norms
from attnscope.reference import EXACT
from attnscope.tiles.call import LongCall
from attnscope.tiles.measured import WITHOUT_FORM
from attnscope.tiles.stream import Beside
from attnscope.tokens import Tokens

_AT_ONCE = 4096  # keys whose values are projected at once

_NO_NORMS: Mapping[Need, str] = {Need.NORMS: "nothing reads the heads' outputs by a matrix alone"}


def known_of(calls: Sequence[AttentionCall], queries: Tokens, keys: Tokens) -> Known:
    """Why some needs and measures are not there, as for a short text; the fields are those of `beside`."""
    first, second = sorts.named(queries, keys)
    there = {
        Need.SPECIAL: bool(sorts.special(keys).any()),
        Need.PUNCTUATION: bool(sorts.punctuation(keys).any()),
        Need.ALIKE: _stands_twice(first, second),
    }
    missing, absent = unmeasured(there, queries, keys)
    if all(call.projection is None for call in calls):
        missing = {**missing, **_NO_NORMS}
    return Known(missing, lambda *_: {}, {**absent, **WITHOUT_FORM})


def _stands_twice(queries: Int[Tensor, " query"], keys: Int[Tensor, " key"]) -> bool:
    """Whether some query is the same token as a key at another place."""
    counts = keys.bincount(minlength=int(queries.max()) + 1 if len(queries) else 0)
    same_axis = len(queries) == len(keys) and torch.equal(queries, keys)
    return bool((counts[queries] > int(same_axis)).any())


def beside(call: LongCall, head: int, queries: Tokens, keys: Tokens, needs: Collection[Need]) -> Beside:
    """What the tiles of one head are told, as far as it is needed."""
    device = call.q.device
    wanted: dict[str, Any] = {}
    if Need.SPECIAL in needs:
        wanted["special"] = sorts.special(keys)
    if Need.PUNCTUATION in needs:
        wanted["punctuation"] = sorts.punctuation(keys)
    if Need.ALIKE in needs:
        wanted["query_names"], wanted["key_names"] = sorts.named(queries, keys)
    if Need.ALLOWED in needs and (parts := sorts.parts(queries, keys)) is not None:
        wanted["query_parts"], wanted["key_parts"] = parts
    found = {name: values.to(device) for name, values in wanted.items()}
    return Beside(**found, norms=norms(call, head) if Need.NORMS in needs else None)


def norms(call: AttentionCall, head: int) -> Float[Tensor, " key"]:
    """||f(x)|| of every key; NaN where no matrix takes the head's output on."""
    keys = call.k.shape[1]
    if call.projection is None:
        return torch.full((keys,), torch.nan, dtype=EXACT)
    values, shared = call.v, call.key_head(head)
    blocks = range(0, keys, _AT_ONCE)
    return torch.cat(
        [
            moved_norms(values[shared : shared + 1, i : i + _AT_ONCE], call.projection[head : head + 1])[0]
            for i in blocks
        ]
    )


def needs_of(names: Collection[str]) -> frozenset[Need]:
    """What some measures need beside weights."""
    return frozenset(need for name in names for need in MEASURES[name].needs)
