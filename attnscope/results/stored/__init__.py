"""Results in files: how each is written as JSON and npz, and beside it how it is made again from them.

A result has one document of plain values, with its arrays in it (JSON) or beside it (npz). `write` and
`load` are the two ends; between them a module for each result registers its `document`, its `arrays_of`
and the function that reads both again. Everything here is NumPy and nothing is ever unpickled.
"""
