"""Several at once: two readings or two runs held against each other, and the texts of a corpus measured."""

from collections.abc import Sequence
from pathlib import Path

from attnscope.errors import InputError
from attnscope.process.alone import alone
from attnscope.results import Comparison, Corpus, CorpusDifference, Difference, Result, load
from attnscope.session.corpus.engine.interface import Done
from attnscope.session.corpus.identity import BATCH, LONGEST
from attnscope.session.corpus.question import LOCAL, SKIP, CorpusQuestion, corpus_of
from attnscope.session.corpus.source import FIELD
from attnscope.session.library.progress import bar
from attnscope.session.library.readings import Reading
from attnscope.session.listener import Listener, Log
from attnscope.session.questions.claims.difference import compare_any
from attnscope.session.questions.comparison import compare_in_layers, compare_readings
from attnscope.session.request import DeviceMap, ProvenModel
from attnscope.session.wanted import Looking, Numbers, Wanted


@alone
def corpus(
    files: str | Path | Sequence[str | Path],
    model: str | None = None,
    *,
    measures: str | Sequence[str] = "all",
    form: str | None = None,
    field: str = FIELD,
    broken: str = SKIP,
    from_pos: str | None = None,
    to_pos: str | None = None,
    layers: Numbers = None,
    heads: Numbers = None,
    kind: str | None = None,
    tower: str | None = None,
    limit: int | None = None,
    longest: int = LONGEST,
    truncate: bool = False,
    batch: int = BATCH,
    workers: int | None = None,
    engine: str = LOCAL,
    ray_address: str | None = None,
    ray_resources: str | None = None,
    run: str | Path | None = None,
    rows: str | Path | None = None,
    device: str = "auto",
    dtype: str = "float32",
    attn: str | None = None,
    revision: str | None = None,
    adapter: str | None = None,
    device_map: DeviceMap = None,
    tokenizer: str | None = None,
    trust_remote_code: bool = False,
    allow_pickle: bool = False,
    progress: bool | None = None,
    done: Done | None = None,
    listener: Listener | None = None,
) -> Corpus:
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

    `model` is the name of one; `device`, `dtype`, `attn`, `revision`, `adapter`, `device_map`, `tokenizer`,
    `listener`, `trust_remote_code` and `allow_pickle` are those of `load`, `layers`, `heads`, `kind` and
    `tower` those of `Model`. Raises what `load` raises, and `InputError` for files without a text that
    counts.
    """
    several = [files] if isinstance(files, str | Path) else list(files)
    asked = CorpusQuestion(
        files=tuple(several),
        form=form,
        field=field,
        broken=broken,
        measures=measures if isinstance(measures, str) else ",".join(measures),
        source=from_pos,
        target=to_pos,
        limit=limit,
        longest=longest,
        batch=batch,
        truncate=truncate,
        workers=workers,
        engine=engine,
        ray_address=ray_address,
        ray_resources=ray_resources,
        run=run,
        rows=rows,
    )
    request = ProvenModel(
        model,
        device,
        dtype,
        revision,
        trust_remote_code,
        allow_pickle,
        attn,
        adapter=adapter,
        device_map=device_map,
        tokenizer=tokenizer,
    )
    with bar(progress if done is None else False) as shown:
        told = done or shown
        return corpus_of(request, asked, Wanted(layers, heads, kind, tower), listener or Log(), told)


@alone
def compare(
    a: Reading,
    b: Reading,
    word: str | int,
    word_b: str | int | None = None,
    *,
    layer: Numbers = None,
    head: Numbers = None,
    layer_b: int | None = None,
    kind: str | None = None,
    tower: str | None = None,
    words: bool = False,
    by: str | None = None,
    special: str | None = None,
) -> Comparison:
    """One `word` in two readings `a` and `b`, of one model or of two, or in two layers of one reading.

    In `b` it is `word_b`, where that is another one; with `layer_b` both are the same reading. How alike its
    vectors are in every layer, and one head in full: of those that `layer` and `head` name the one that
    differs most. With `words` a word may have been cut into pieces; `special` tokens are shown, hidden in the
    rows that are shown, or with `renormalise` left out of all rows. `by`, `kind` and `tower` are those of
    `Reading`. Likeness is a cosine, -1 to 1; raises `InputError` for a word that is not there.
    """
    wanted, looking = Wanted(layer, head, kind, tower), Looking(words, special, by)
    names = str(word), str(word if word_b is None else word_b)
    first = a._read(wanted.all_layers)
    if layer_b is not None:
        if a is not b:
            raise InputError("layer_b compares two layers of one reading: give the same reading twice")
        return compare_in_layers(*first, names[0], layer, layer_b, looking)
    return compare_readings(first, b._read(wanted.all_layers), names, layer, looking)


def difference(
    a: Result | str | Path,
    b: Result | str | Path,
    *,
    layer: Numbers = None,
    head: Numbers = None,
    layer_b: Numbers = None,
    head_b: Numbers = None,
) -> Difference | CorpusDifference:
    """What each query of run `b` gives more than under run `a`: overviews or heads, or files that hold them.

    Texts, checkpoints, kernels and precisions may differ, not the number of tokens. Heads of one number are
    held against each other, those of `layer` and `head` or all; with `layer_b` or `head_b` that head of `b`,
    and of two single heads these two. Of two corpora it is the difference of the mean of every head, with its
    standard error. Rows differ by a Jensen-Shannon divergence in nats, 0 to ln 2. Raises `InputError` for
    runs that cannot be paired.
    """
    names = [Path(run).name if isinstance(run, str | Path) else "AB"[i] for i, run in enumerate((a, b))]
    first, second = (load(run) if isinstance(run, str | Path) else run for run in (a, b))
    return compare_any(first, second, (names[0], names[1]), layer, head, layer_b, head_b)
