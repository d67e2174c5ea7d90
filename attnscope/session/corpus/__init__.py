"""All measures of all heads over a corpus: read, measured by workers chunk by chunk, kept, merged in order.

source, chunks        files to numbered chunks of texts
engine                chunks to the bytes of chunk files, by workers of this machine or of a Ray cluster
measurer, batches     what a worker does with a chunk
folder, chunk_file    what a run leaves on the disk, whole or not at all; identity: when two runs are the same
merging, rows         chunks in their order to a result, and to a row for each text and head
run                   what is measured, and what it comes to; question: what is asked, and the walk to it
"""
