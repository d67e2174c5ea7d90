"""Who measures: a `Recipe` and numbered `Chunk`s in, one `Finished` for each chunk out.

The whole of what an engine must know stands in `interface`:

    an engine is called with a recipe (plain data, can be pickled), an iterable of chunks (lazy: take them as
    you have room) and a listener; it yields a `Finished` for every chunk, once, in whatever order;
    each of its workers calls `recipe.open()` once and `measurer.measure(chunk)` for every chunk that it gets;
    `Finished.content` are the bytes of a chunk file. The same chunk gives the same bytes in every process of
    one machine and its versions: an engine hands them on and never looks into them.

A chunk that was lost with its worker is measured again, by whomever. Keeping the files, resuming (chunks
that are done never reach an engine) and merging in the order of the numbers is done by whoever calls the
engine, so totals do not depend on it. `local` runs processes of this machine, `alone` measures in this very
process.
"""
