"""Parquet: the native format's fields as columns, read and written batch by batch.

Needs the extra `parquet` (pyarrow), which is imported only when a Parquet file is met.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from sightline.documents import (
    FIELDS,
    Document,
    FieldError,
    document_from_record,
    document_to_record,
)
from sightline.files import atomic_writer
from sightline.problems import MissingExtraError, Problems, SightlineError
from sightline.readers.native import open_for_reading

# Rows held at a time: enough to spread the cost of a call, few enough for long documents.
_BATCH = 256


def read_parquet(path: Path, problems: Problems, allow_empty: bool = False) -> Iterator[Document]:
    """Yield the documents of a Parquet file; a problem's line is its row, counted from 1.

    A null in a further column means that the document has no such key.
    """
    with open_for_reading(path) as file:
        for row, record in enumerate(_records(path, file), start=1):
            if isinstance(record, str):
                problems.add(path, row, None, record)
                continue
            for key in [key for key, value in record.items() if value is None]:
                del record[key]
            try:
                document = document_from_record(record, allow_empty)
            except FieldError as error:
                problems.add(path, row, error.field, error.reason)
            else:
                yield document


def write_parquet(documents: Iterable[Document], path: Path) -> int:
    """Write documents to a Parquet file; gives their number.

    Further keys become columns of the type that Arrow infers from all their values; a key whose
    values have no common type is refused. What a column cannot tell apart comes back alike: a key
    that is null and one that is absent, in nested objects too, and a whole number among
    fractions and that fraction.
    """
    pyarrow = _pyarrow("Writing Parquet")
    # A Parquet file needs its column types at its head, while the last document may still change
    # them and the documents may be too many to hold: hence the detour by a temporary file.
    with atomic_writer(path) as file, tempfile.TemporaryFile(dir=path.resolve().parent) as spill:
        schema, count = _spill(documents, spill, pyarrow)
        try:
            writer = pyarrow.parquet.ParquetWriter(file, schema, compression="zstd")
        except pyarrow.ArrowException as error:
            raise SightlineError(f"{path}: cannot be written as Parquet: {error}") from error
        with writer:
            for table in _spilled(spill, pyarrow):
                writer.write_table(_with_schema(table, schema, pyarrow))
    return count


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(what, "parquet") from error
    return pyarrow


def _records(path: Path, file: IO[bytes]) -> Iterator[dict[str, Any] | str]:
    """Yield one record a row, or the reason why there is none; damage ends the rows."""
    pyarrow = _pyarrow("Reading Parquet")
    try:
        parquet = pyarrow.parquet.ParquetFile(file)
    except (pyarrow.ArrowException, OSError) as error:
        raise SightlineError(f"{path}: cannot be read as Parquet: {error}") from error
    if missing := {"id", "sentences", "images"}.difference(parquet.schema_arrow.names):
        raise SightlineError(
            f"{path}: expected the columns id, sentences and images; "
            f"missing: {', '.join(sorted(missing))}"
        )
    batches = parquet.iter_batches(batch_size=_BATCH)
    while True:
        try:
            batch = next(batches, None)
        except (pyarrow.ArrowException, OSError) as error:
            yield f"the Parquet data is damaged from here on ({error})"
            return
        if batch is None:
            return
        yield from _rows(batch)


def _rows(batch: Any) -> Iterator[dict[str, Any] | str]:
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        # Arrow does not check text on the way in; find the rows that are to blame.
        for row in range(len(batch)):
            try:
                yield batch.slice(row, 1).to_pylist()[0]
            except UnicodeDecodeError as error:
                yield f"not valid UTF-8: {error}"


def _spill(documents: Iterable[Document], spill: IO[bytes], pyarrow: Any) -> tuple[Any, int]:
    """Write batches of Arrow columns, each a stream of its own; gives their common schema."""
    schema = _field_schema(pyarrow)
    count = 0
    documents = iter(documents)
    while records := [document_to_record(document) for document in islice(documents, _BATCH)]:
        batch = _batch(records, pyarrow)
        schema = _merged(schema, batch.schema, pyarrow)
        with pyarrow.ipc.new_stream(spill, batch.schema) as stream:
            stream.write_batch(batch)
        count += len(records)
    return schema, count


def _spilled(spill: IO[bytes], pyarrow: Any) -> Iterator[Any]:
    end = spill.tell()
    spill.seek(0)
    while spill.tell() < end:
        yield pyarrow.ipc.open_stream(spill).read_all()


def _field_schema(pyarrow: Any) -> Any:
    strings = pyarrow.list_(pyarrow.string())
    links = pyarrow.list_(pyarrow.list_(pyarrow.int64()))
    types = (pyarrow.string(), strings, strings, links, pyarrow.string())
    return pyarrow.schema(list(zip(FIELDS, types, strict=True)))


def _batch(records: list[dict[str, Any]], pyarrow: Any) -> Any:
    types = {field.name: field.type for field in _field_schema(pyarrow)}
    keys = dict.fromkeys((*FIELDS, *(key for record in records for key in record)))
    columns = {}
    for key in keys:
        values = [record.get(key) for record in records]
        try:
            columns[key] = pyarrow.array(values, types.get(key))
        except (pyarrow.ArrowException, UnicodeEncodeError, OverflowError) as error:
            raise _column_error(key, error) from error
    return pyarrow.record_batch(columns)


def _merged(schema: Any, other: Any, pyarrow: Any) -> Any:
    for field in other:
        index = schema.get_field_index(field.name)
        if index < 0:
            schema = schema.append(field)
        elif schema.field(index) != field:
            pair = [pyarrow.schema([schema.field(index)]), pyarrow.schema([field])]
            try:
                both = pyarrow.unify_schemas(pair, promote_options="permissive")
            except pyarrow.ArrowException as error:
                raise _column_error(field.name, error) from error
            schema = schema.set(index, both.field(0))
    return schema


def _with_schema(table: Any, schema: Any, pyarrow: Any) -> Any:
    columns = {}
    for field in schema:
        if field.name not in table.schema.names:
            columns[field.name] = pyarrow.nulls(len(table), field.type)
            continue
        try:
            columns[field.name] = table.column(field.name).cast(field.type)
        except pyarrow.ArrowException as error:
            raise _column_error(field.name, error) from error
    return pyarrow.table(columns, schema=schema)


def _column_error(key: str, error: Exception) -> SightlineError:
    return SightlineError(
        f"The key {key!r} cannot be a Parquet column: {error}. Write .jsonl or leave the key out."
    )
