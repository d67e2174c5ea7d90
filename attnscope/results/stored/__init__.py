"""Results in files: writes them as JSON and npz, reads them, and recomputes what was read.

    result -> codec (slots: its fields; also: what follows from them) -> document -> write -> JSON, npz
    file -> load -> document -> codec (arrays: axes and numbers; checks: what types do not say) -> result

A kind of result has no code of its own here but what its readers are told besides, and what has to fit
together in it. `strict` has the version of the layout. Everything is NumPy and nothing is ever unpickled.
"""
