"""A corpus, measured by processes of this machine; each opens the model by its name."""

from collections.abc import Sequence
from pathlib import Path

from attnscope.results import Corpus
from attnscope.session.corpus.identity import BATCH, LONGEST
from attnscope.session.corpus.question import LOCAL, CorpusQuestion, Done, corpus_of
from attnscope.session.corpus.source import FIELD
from attnscope.session.listener import Listener, Log
from attnscope.session.placing import DeviceMap
from attnscope.session.request import ModelRequest, Numbers, Wanted


def corpus(
    files: str | Path | Sequence[str | Path],
    model: str | None = None,
    *,
    measures: str | Sequence[str] = "all",
    form: str | None = None,
    field: str = FIELD,
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
    run: str | Path | None = None,
    rows: str | Path | None = None,
    device: str = "auto",
    dtype: str = "float32",
    attn: str = "eager",
    revision: str | None = None,
    adapter: str | None = None,
    device_map: DeviceMap = None,
    trust_remote_code: bool = False,
    allow_pickle: bool = False,
    done: Done | None = None,
    listener: Listener | None = None,
) -> Corpus:
    """All measures of all heads over the texts of `files`: mean, standard error and quantiles by head.

    Texts stand in lines, or as `form` says (`lines`, `file`, `jsonl`, `conllu`, `parquet`; by suffix), in the
    `field` of records. As many `workers` as there are accelerators or else cores measure, 0 of them this
    process; with `engine` `ray` those of the Ray cluster at `ray_address`, or of one that is started on this
    machine. What is done is kept in the folder `run`, so that the same call goes on where it was cut off;
    `rows` is a Parquet file for a row for each text and head. `done` is told how many texts are through, of
    how many.
    """
    several = [files] if isinstance(files, str | Path) else list(files)
    asked = CorpusQuestion(
        files=tuple(map(Path, several)),
        form=form,
        field=field,
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
        run=None if run is None else Path(run),
        rows=None if rows is None else Path(rows),
    )
    request = ModelRequest(
        model,
        device,
        dtype,
        revision,
        trust_remote_code,
        allow_pickle,
        attn,
        adapter=adapter,
        device_map=device_map,
    )
    return corpus_of(request, asked, Wanted(layers, heads, kind, tower), listener or Log(), done)
