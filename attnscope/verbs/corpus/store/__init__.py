"""Where the files of a corpus and of its run lie: on this machine, or wherever fsspec reaches."""

from attnscope.verbs.corpus.store.place import NotWrittenError, Place
from attnscope.verbs.corpus.store.remote import ask_anew

__all__ = ["NotWrittenError", "Place", "ask_anew"]
