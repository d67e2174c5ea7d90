"""All measures of all heads over a corpus: read, measured by workers split by split, kept, merged in order.

source, texts         a file and how it is opened; the texts in a span of it; signed: whether it is as it was
splits, ahead         files to numbered splits of texts, by what the files are alone; read ahead of the model
engine                splits to parts in the run's folder, by workers of this machine or of a Ray cluster
measurer, batches     what a worker does with a split
folder, part, rows    what a run leaves on the disk, whole or not at all; identity: when two runs are the same
tree, merging         parts that are merged as the run grows, in an order of their own, and to a result
run                   what is measured, and what it comes to; question: what is asked, and the walk to it
"""
