"""A result as one page for any browser: nothing is loaded from elsewhere, and nothing foreign can run in it.

`page` is the door. What a page shows of a result is made in the other modules, as plain values and blocks of
numbers; how it looks stands in `page/`, modules of JavaScript that can be read and need nothing to be built.
"""
