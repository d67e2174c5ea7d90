"""Programs that are written into files and run there, one for each kind of result; never imported here.

`common` is the first half of all of them.
"""
