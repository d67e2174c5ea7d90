"""The engine without workers: this very process measures one chunk after the other."""

from collections.abc import Iterable, Iterator

from attnscope.session.corpus.engine.interface import Chunk, Finished, Recipe
from attnscope.session.listener import Listener


def alone(recipe: Recipe, chunks: Iterable[Chunk], listener: Listener) -> Iterator[Finished]:
    """Every chunk in its order, by one thread of torch; afterwards it has as many as before."""
    import torch

    threads = torch.get_num_threads()
    try:
        measurer = recipe.open()
        for chunk in chunks:
            yield Finished(chunk.number, len(chunk.texts), measurer.measure(chunk))
    finally:
        torch.set_num_threads(threads)
