"""Attention of a long text under the rule: heads answer parts, and nothing of queries by keys is held.

every attention before  ->  its kernel answers, some queries at a time; weights are asked for by rows
the one that is asked   ->  the model's own eager function, of the rows that are asked about
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace

import torch
from torch import Tensor, nn

from attnscope.capture.following.takeover import KernelInputs, takeover
from attnscope.capture.long.chunked import for_each_head, own, rows_of
from attnscope.capture.parts.leaves import Cut, Site
from attnscope.capture.parts.rule import Rule


def answered_by_rows(
    rule: Rule, modules: Iterable[nn.Module], until: Site | None
) -> AbstractContextManager[None]:
    """While open, under the rule, these attentions are answered without their squares."""

    def answer(given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        if rule.site == until:
            return _asked(given, rule), None
        with torch._C.DisableTorchFunction():
            plain = detached(given)
            made = plain.answer()[0].transpose(1, 2)
            values = for_each_head(plain.value, made.shape[1])

        def weights(rows: Tensor) -> Tensor:
            with torch.no_grad():
                found = replace(rows_of(plain, rows), kernel=own(plain)).answer()[1]
            assert found is not None, "a function that makes its weights has them"
            return found

        cut = rule.part(made, "attention", Cut.ATTENTION, pattern=weights, values=values, axis=1)
        return cut.transpose(1, 2), None

    return takeover(modules, answer)


def _asked(given: KernelInputs, rule: Rule) -> Tensor:
    """The scores of the rows that are asked about, which the rule sees; the run ends with this attention."""
    assert rule.rows is not None, "these are what is asked about"
    rows = torch.tensor(rule.rows, device=given.query.device)
    replace(rows_of(given, rows), kernel=own(given)).answer()
    batch, heads, queries, _ = given.query.shape
    return given.value.new_zeros(batch, queries, heads, given.value.shape[-1])


def detached(given: KernelInputs) -> KernelInputs:
    query, key, value = (each.detach() for each in (given.query, given.key, given.value))
    return replace(given, query=query, key=key, value=value)
