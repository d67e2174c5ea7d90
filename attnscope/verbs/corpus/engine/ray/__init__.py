"""The engine of many machines: Ray Data hands splits to actors, on a cluster or on one started here.

    pool      an `Engine`: splits in windows to a dataset, what its actors answer to `Finished`
    nodes     what every machine must have and see: versions and model, the run's folder, the texts
    needs     what each worker takes of its machine
    cluster   a cluster that is joined and left as it was, or one that is started, and gone afterwards
    quiet     what Ray does to this process as it starts, undone

Only this room imports Ray, and only when it is asked for. Workers read texts where they lie and write what
they measure into the run's folder; the model is opened by name on every machine, so it must be there, or in a
folder that all of them see. Resuming and merging stay with whoever calls: an actor that dies costs the split
it was at, once.
"""
