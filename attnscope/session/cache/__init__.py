"""The cache of captures: a second question about the same text and model is answered without either library.

    place -> store <- entry <- packed          where, which files, what is in one, results as bytes
    surroundings, folder -> key                all that decides about a number
    recall <- answers -> keeping               the questions by their names: from the cache, or kept for it

Nothing in here but `keeping` imports torch or transformers, not even by way of others. What could make a
kept answer wrong, and what is done about it:

- The model's files change: small ones are read and hashed at every question, large ones are known by size,
  time of change, inode and device, and by the SHA-256 of what was read; a file that has just been written,
  which could change again within one tick of the clock, is not believed. Files that come or go count too.
- The question means another model (another folder, commit, adapter, a name that now is a folder): the name is
  looked up anew every time; adapters, remote code and what fell back to the demo are not kept.
- The libraries, this program, Python, the processor, a graphics card, threads or settings in the environment
  change: they are part of the key, the program by its own files.
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
