"""Where the files of a corpus and of its run lie: on this machine, or wherever fsspec reaches."""

from attnscope.session.corpus.store.place import NotWrittenError, Place

__all__ = ["NotWrittenError", "Place"]
