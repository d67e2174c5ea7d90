"""An overview by words, or without special tokens: its weights regrouped, and measured anew."""

from dataclasses import replace

import torch
from torch import Tensor

from attnscope.analysis.links import links
from attnscope.analysis.scores import apply_measures, unplaced
from attnscope.analysis.supplies import AllowedPairs, of_groups
from attnscope.analysis.views.view import groups_of, members, regrouped
from attnscope.errors import InputError
from attnscope.results import Overview, Special
from attnscope.results.base.words import joined


def viewed_overview(
    overview: Overview,
    *,
    words: bool = False,
    special: Special = Special.SHOW,
    allowed: AllowedPairs | None = None,
) -> Overview:
    """The overview by words, or without special tokens; measures and links are those of the new rows.

    Positions count the words, or the tokens, that are left. `allowed` says by the place of a layer and of a
    head where which tokens may look.

    `InputError` for rows that special tokens were only hidden in, which have no entropy.
    """
    if special is Special.HIDE:
        raise InputError(
            "an overview shows entropies, and rows with hidden tokens have none: "
            "--special renormalise, or give one --layer and one --head"
        )
    queries = groups_of(overview.query_tokens, "query", words, special)
    keys = groups_of(overview.key_tokens, "key", words, special)
    scaled = special is Special.RENORMALISE
    weights = tuple(
        tuple(regrouped(each, queries, keys, renormalise=scaled) for each in row)
        for row in overview.dense_weights
    )
    asked, given = joined(overview.query_tokens, queries), joined(overview.key_tokens, keys)
    rows, columns = members(queries, len(overview.query_tokens)), members(keys, len(overview.key_tokens))

    def seen(layer: int, head: int) -> Tensor:
        assert allowed is not None, "asked where it is known"
        return torch.from_numpy(rows @ allowed(layer, head).numpy() @ columns.T)

    measured = apply_measures(
        [[torch.from_numpy(each) for each in row] for row in weights],
        tuple(overview.scores),
        layers=overview.layers,
        heads=overview.heads,
        unplaced=unplaced(overview.kind, overview.query_tokens, overview.key_tokens),
        words=words,
        supplies=of_groups(asked, given, None if allowed is None else seen, words),
    )
    return replace(
        overview,
        query_tokens=asked,
        key_tokens=given,
        scores=measured,
        **links(weights, asked, given, ordinary=overview.ordinary)._asdict(),
        weights=weights,
        words=words,
        special=special,
        tokens=overview,
    )
