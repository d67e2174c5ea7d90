"""Capture in, result out: what can be said about heads. Never prints, never plots."""

from attnscope.analysis.head import recompute_head
from attnscope.analysis.overview import measure_heads
from attnscope.analysis.verification import verify_model

__all__ = ["measure_heads", "recompute_head", "verify_model"]
