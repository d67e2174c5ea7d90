"""The library's `corpus` function, with a progress bar."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, fields
from shutil import get_terminal_size
from time import monotonic

from attnscope.process.machine import alone
from attnscope.session.listener import Listener, Log
from attnscope.session.question import taking
from attnscope.session.request import Loading, ProvenModel
from attnscope.session.which import Heads
from attnscope.verbs.corpus.answer import corpus_of
from attnscope.verbs.corpus.engine import Done, Progress
from attnscope.verbs.corpus.question import CorpusQuestion
from attnscope.verbs.corpus.result import Corpus

_FORMAT = "{l_bar}{bar}| {elapsed} gone, {remaining} left{postfix}"


@dataclass(frozen=True)
class _Corpus(Loading, Heads, CorpusQuestion):
    model: str | None = None
    _: KW_ONLY
    progress: bool | None = None
    done: Done | None = None
    listener: Listener | None = None

    def __post_init__(self) -> None:
        CorpusQuestion.__post_init__(self)  # its request checks how the model is loaded

    @property
    def request(self) -> ProvenModel:
        """The model that is asked for, with its loading options."""
        return ProvenModel(self.model, **{each.name: getattr(self, each.name) for each in fields(Loading)})


@alone
@taking(_Corpus)
def corpus(asked: _Corpus) -> Corpus:
    """All measures of all heads over the texts of `files`: mean, standard error and quantiles by head.

    `files` are paths, folders, patterns and addresses (`s3://`, `https://`, `hf://datasets/NAME:SPLIT`); what
    cannot be read in them is set aside, or with `broken` as `refuse` an error. Texts stand in lines, or as
    `form` says (`lines`, `file`, `jsonl`, `conllu`, `parquet`; by suffix), in the `field` of records. The
    first `limit` are read, at most `batch` of one length at once; one of more tokens than `longest` is set
    aside, or cut with `truncate`. `measures` are names, or `all`; with `from_pos` and `to_pos` heads are
    ranked by what words of one part of speech give to those of another. As many `workers` as there are
    accelerators or else cores measure, 0 of them this process; with `engine` `ray` those of the Ray cluster
    at `ray_address`, or of one that is started on this machine, each with `ray_resources` ("GPU=0.5"). What
    is done is kept in the folder `run`, so that the same call goes on where it was cut off; `rows` is a
    Parquet file for a row for each text and head. `progress` shows a bar, by default in a notebook and at a
    terminal; `done` is told in its place how far it is (a `Progress`).

    `model` is the name of one; `device`, `dtype`, `attn`, `revision`, `adapter`, `device_map`, `max_memory`,
    `tokenizer`, `listener`, `trust_remote_code`, `allow_pickle` and `ignore_unread` are those of `load`,
    `layers`, `heads`, `kind`, `tower`, `block` and `route` those of `Model`. Raises what `load` raises, and
    `InputError` for files without a text that counts.
    """
    with bar(asked.progress if asked.done is None else False) as shown:
        told = asked.done or shown
        return corpus_of(asked.request, asked, asked.wanted, asked.listener or Log(), told)


@contextmanager
def bar(wanted: bool | None) -> Iterator[Done | None]:
    """Context manager: a progress bar with rate and time left; yields its callback, or None for no bar.

    With `wanted` None there is a bar in a notebook and where standard error is a terminal. A forecast stands
    above it once the first part is measured. What was measured before counts as through, and not for the
    rate.
    """
    if not (_in_notebook() or sys.stderr.isatty() if wanted is None else wanted):
        yield None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a notebook without widgets gets a bar of letters
        from tqdm.auto import tqdm

    wide = None if _in_notebook() else get_terminal_size().columns  # 80 where it is said to have none
    shown, begun = tqdm(desc="corpus", ncols=wide, bar_format=_FORMAT), monotonic()

    def done(now: Progress) -> None:
        shown.total = now.whole
        if not now.texts:
            shown.initial = shown.n = now.through
            shown.refresh()
            return
        if now.forecast is not None:
            shown.write(str(now.forecast), file=sys.stderr)
        rate = now.tokens / max(monotonic() - begun, 1e-9)
        shown.set_postfix_str(f"{now.texts:,} texts, {rate:,.0f} tokens a second", refresh=False)
        shown.update(now.through - shown.n)

    with shown:
        yield done


def _in_notebook() -> bool:
    python = sys.modules.get("IPython")
    return python is not None and hasattr(python.get_ipython(), "kernel")
