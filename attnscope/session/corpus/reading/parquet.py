"""Parquet, read by Arrow, which is imported only where a Parquet file is asked for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnscope.errors import InputError
from attnscope.tokens import printable

_AT_ONCE = 1024


def arrow() -> tuple[Any, Any]:
    """`pyarrow` and its Parquet; `InputError` that says how to get it where it is missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError("Parquet needs pyarrow: pip install 'attnscope[corpus]'") from error
    return pyarrow, pyarrow.parquet


def column(path: Path, name: str, field: str) -> Iterator[Any]:
    """The values of one column, some at a time; `InputError` for no Parquet, and for no such column."""
    pyarrow, parquet = arrow()
    shown = printable(name)
    try:
        file = parquet.ParquetFile(path)
        there = file.schema_arrow.names
        if field not in there:
            raise InputError(
                f"no field '{printable(field)}' in '{shown}': {', '.join(map(printable, there))}"
            )
        for batch in file.iter_batches(batch_size=_AT_ONCE, columns=[field]):
            yield from batch.column(0).to_pylist()
    except OSError as error:
        why = error.strerror or "it is no whole Parquet file"
        raise InputError(f"cannot read '{shown}': {why}") from error
    except pyarrow.ArrowException as error:
        raise InputError(f"cannot read '{shown}': it is no whole Parquet file") from error
