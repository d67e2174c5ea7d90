"""A head by words, or without special tokens: a view is shown as the head itself is."""

from attnscope.render.sheets.head import sheet

__all__ = ["sheet"]
