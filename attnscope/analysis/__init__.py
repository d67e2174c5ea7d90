"""Capture in, result out: what can be said about heads. Never prints, never plots."""

from attnscope.analysis.head import head_attention
from attnscope.analysis.overview import overview
from attnscope.analysis.verification import verification

__all__ = ["head_attention", "overview", "verification"]
