"""Reading ahead of the model: what the next splits hold is fetched while those before them are measured.

By one thread of the command, a few splits ahead; on Ray by each actor, one ahead. What lies on this machine
its workers read themselves; what is fetched travels to them with its split, as what is compressed does.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from attnscope.session.corpus.engine.interface import Span, Split
from attnscope.session.corpus.packed import BrokenArchive
from attnscope.session.corpus.source import Form
from attnscope.session.corpus.texts import held, raw_lines, values, whole_file

SPLITS = 4


def ahead(splits: Iterable[Split]) -> Iterator[Split]:
    """The splits, each with what stands in it where that lies elsewhere; errors come in their place."""
    coming = iter(splits)

    def one() -> Split | None:
        split = next(coming, None)
        return None if split is None else fetched(split)

    pool = ThreadPoolExecutor(1, "attnscope-ahead")
    waiting = deque(pool.submit(one) for _ in range(SPLITS))  # from now on: the model may not be open yet
    return _handed(one, pool, waiting)


def _handed(
    one: Callable[[], Split | None], pool: ThreadPoolExecutor, waiting: deque[Future[Split | None]]
) -> Iterator[Split]:
    try:
        while (split := waiting.popleft().result()) is not None:
            waiting.append(pool.submit(one))
            yield split
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def fetched(split: Split) -> Split:
    """The split with what stands in it, where that lies elsewhere."""
    return replace(split, spans=tuple(map(_fetched, split.spans)))


def _fetched(span: Span) -> Span:
    if span.held is not None or span.source.place.local is not None:
        return span
    if span.source.form is Form.PARQUET:
        return replace(span, held=[value for _, value in values(span)])
    if span.source.form is Form.FILE:
        try:
            return replace(span, held=whole_file(span))
        except BrokenArchive as error:
            return replace(span, held=error)
    return held(span, span.start, [line for _, line in raw_lines(span)])
