"""Typed axes are enforced while tests run; the hook must stand before the first import of attnscope."""

from typed_axes import enforce

TYPED = (
    "sdpa",
    "measures",
    "attention",
    "results",
    "verify",
    "capture",
    "analysis",
    "worked",
    "tokens",
    "model",
)
enforce(f"attnscope.{name}" for name in TYPED)

from collections.abc import Iterator  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture
def registries() -> Iterator[tuple[dict[str, object], dict[str, object]]]:
    """transformers' two tables of attention functions, put back afterwards whatever a test registers."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface

    tables = (AttentionInterface._global_mapping, ALL_ATTENTION_FUNCTIONS._local_mapping)
    before = [dict(table) for table in tables]
    yield tables
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)
