"""The engine of many machines: Ray Data hands chunks to actors, on a cluster or on one started here.

    pool      an `Engine`: chunks in windows to a dataset, what its actors answer to `Finished`; each machine
              checks before it measures that it has the same versions and the same model
    cluster   a cluster that is joined and left as it was, or one that is started, and gone afterwards
    quiet     what Ray does to this process as it starts, undone

Only this room imports Ray, and only when it is asked for. Files are read by whoever calls, chunks carry their
texts; the model is opened by name on every machine, so it must be there, or in a folder that all of them see.
Keeping, resuming and merging stay with whoever calls: an actor that dies costs the chunk it was at, once.
"""
