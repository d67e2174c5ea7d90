"""The cache of captures: a second question about the same text and model is answered without either library.

    store <- entry <- packed       the files and where they lie, what is in one, results as bytes
    memory                         the key of a question: surroundings and the model's small files
    witnesses                      machine, settings, weights and code that it was made with
    recall, keeping                heads answered from the cache, and kept for it

Nothing in here but `keeping` imports torch or transformers, not even by way of others; what was printed
(`attnscope.cli.repeated`) is found by `store`, `entry`, `memory` and `witnesses`, without numpy. What could
make a kept answer wrong, and what is done about it:

- The model's files change: all but the weights are read and hashed at every question, and all are named. Of
  the weights those that were read are witnesses, by content. A file of 32 MiB or more is known unread where
  its size, times and inode tell of every change (`model.source.digests`): it was flushed before the model
  read it, so that a store through a memory map moves them too, its file system is one that does that, and it
  had not just been written. Elsewhere (in memory, on other machines) it is read at every question, and before
  and after an answer that is to be kept.
- The code changes, under whatever date: of the model (of the library or another package), of the functions
  that attend, of `torch.nn`, of this program's rooms that compute. Every module that was imported is a
  witness by its text, its time and its byte code, which is what Python goes by; so are the names in its
  folder, where one could come before it, and the place and version of its package. What was written less
  than two seconds before the question, or since, may not be what was imported: then nothing is kept.
- The question means another model (another folder, commit, adapter, a name that now is a folder): the name is
  looked up anew every time; adapters, remote code and what fell back to the demo are not kept.
- The libraries, Python, the processor, a graphics card, threads or settings in the environment change: they
  are part of the key. What is compiled, and what of torch is no layer, counts by version, by the dates of the
  compiled files and by the content of two small ones.
- The text, the pair, the target, `--split`, `--truncate`, kind, tower, block, route, precision, kernel or
  device change: every field of the request is part of the key.
- The model draws by lot: where a random generator moved during the run, nothing is kept.
- The file in the cache is damaged, cut, swapped, of another version or somebody else's: every part has a hash
  that is checked before it is used, and the file names its own key.
- Another process writes, evicts or clears meanwhile: files appear whole (`os.replace`), and one that is open
  stays readable; what is gone is computed.
- The kept number is wrong to begin with: only what was recomputed and certified is kept, never a failure.
- A head is made other than it would have been alone: it is made by the same functions of the same run, and
  what came from several shards is kept by how deep was read.
"""
