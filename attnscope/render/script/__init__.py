"""A result as a program that computes its figures again with torch and transformers alone.

`again` holds the programs, whole files of Python that are linted and can be read, with nothing in `SHOWN`;
`figures` says what of a result that is; `written` puts the two together. Nothing in `again` runs here.
"""
