"""The engine of many machines: Ray Data hands splits to actors, on a cluster or on one started here.

Only this package imports Ray, and only when it is asked for. Workers read texts where they lie and write what
they measure into the run's folder; the model is opened by name on every machine, so it must be there, or in a
folder that all of them see. Resuming and merging stay with whoever calls: an actor that dies costs the split
it was at, once.
"""
