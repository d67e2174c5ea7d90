"""All measures of all heads over a corpus: read, measured by workers chunk by chunk, kept, merged in order.

reading/  files to numbered chunks of texts          engine/  chunks to what is measured, by workers
run/      the folder of a run, whole or not at all   merging  chunks in their order to a result
"""
