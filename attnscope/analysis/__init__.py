"""Capture in, result out: what can be said about heads. Never prints, never plots.

What needs torch is imported when it is first asked for: some of it needs none.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnscope.analysis.heads.head import recompute_head
    from attnscope.analysis.heads.overview import measure_heads
    from attnscope.analysis.verification import verify_model

_HOMES = {"measure_heads": "heads.overview", "recompute_head": "heads.head", "verify_model": "verification"}
__all__ = ["measure_heads", "recompute_head", "verify_model"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'attnscope.analysis' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"attnscope.analysis.{_HOMES[name]}"), name)
