"""A result as one HTML page for any browser: it loads nothing and runs only its own scripts.

`page` builds the file. The other modules make its content as plain values and blocks of numbers; `page/` has
its looks, readable JavaScript modules that need no build step.
"""
