"""Who measures: a `Recipe` and numbered `Split`s in, one `Finished` for each split out.

The whole of what an engine must know stands in `interface`:

    an engine is called with a recipe (plain data, can be pickled), an iterable of splits (lazy: take them as
    you have room) and a listener; it yields a `Finished` for every split, once, in whatever order;
    each of its workers calls `recipe.open()` once and `measurer.measure(split)` for every split that it gets:
    that reads the texts where they lie and writes the part into the run's folder, under a name that holds the
    digest of its bytes. The same split gives the same bytes in every process of one machine and its versions.

A split that was lost with its worker is measured again, by whomever. Resuming (splits that are done never
reach an engine) and merging in the order of the numbers is done by whoever calls the engine, so totals do not
depend on it. `local` runs processes of this machine, `alone` measures in this very process.
"""
