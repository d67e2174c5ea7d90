"""A result as one HTML page for any browser: it loads nothing and runs only its own scripts.

`page` is the door. What a page shows of a result is made in the other modules, as plain values and blocks of
numbers; how it looks stands in `page/`, modules of JavaScript that can be read and need nothing to be built.
"""
