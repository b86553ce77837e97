"""Parquet: the native format's fields as columns, read and written batch by batch.

Needs the extra `parquet` (pyarrow), which is imported only when a Parquet file is met.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any

import orjson

from sightline.documents import Document, document_out_of, document_to_record
from sightline.files import atomic_writer
from sightline.problems import MissingExtraError, Problems, SightlineError
from sightline.readers.native import numbered_documents, open_for_reading

# Rows held at a time: enough to spread the cost of a call, few enough for long documents. A file of
# some kilobytes may hold rows of many megabytes: of large batches, one row after the other is made.
_BATCH, _LARGE_BATCH = 16, 32 * 2**20
_ROW_GROUP = 256  # rows that are written together
# What is kept of another format's record, as JSON in a string: columns would neither keep the order
# of its keys nor tell null from absent, and some values have no common type.
_AS_JSON = frozenset({"mmc4", "obelics", "webdataset"})
_COLUMNS = {
    "id": "text",
    "sentences": "texts",
    "images": "texts",
    "links": "pairs",
    "split": "text",
}


def read_parquet(path: Path, problems: Problems, allow_empty: bool = False) -> Iterator[Document]:
    """Yield the documents of a Parquet file; a problem's line is its row, counted from 1.

    A null in a further column means that the document has no such key.
    """
    return (document for _, document in numbered_parquet(path, problems, allow_empty))


def numbered_parquet(
    path: Path, problems: Problems, allow_empty: bool = False
) -> Iterator[tuple[int, Document]]:
    """Yield the documents of a Parquet file with their rows."""

    def document(record: dict[str, Any], _: int) -> Document:
        for key in [key for key, value in record.items() if value is None]:
            del record[key]
        for key in _AS_JSON & record.keys():
            with suppress(ValueError, TypeError):  # not written here, and no JSON
                record[key] = orjson.loads(record[key])
        return document_out_of(record, allow_empty)

    rows = parquet_rows(path, problems, ("id", "sentences", "images"))
    return numbered_documents(rows, document, path, problems)


def parquet_rows(
    path: Path, problems: Problems, needed: Iterable[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each row's number and its columns; a row that cannot be read is a problem."""
    with open_for_reading(path) as file:
        for row, record in enumerate(_records(path, file, needed), start=1):
            if isinstance(record, _CutOff):
                problems.cut_off(path, row, record)
            elif isinstance(record, str):
                problems.add(path, row, None, record)
            else:
                yield row, record


class _CutOff(str):
    """Why nothing after a row can be read."""


def parquet_columns(path: Path) -> list[str]:
    """Give the names of a file's columns."""
    with open_for_reading(path) as file:
        return _names(path, _opened(path, file))


def write_parquet(
    documents: Iterable[Document],
    path: Path,
    to_record: Callable[[Document], dict[str, Any]] | None = None,
    columns: Mapping[str, str] = _COLUMNS,
) -> int:
    """Write documents to a Parquet file; gives their number.

    Further keys become columns of the type that Arrow infers from all their values; a key whose
    values have no common type is refused. What a column cannot tell apart comes back alike: a key
    that is null and one that is absent, in nested objects too, and a whole number among
    fractions and that fraction. `to_record` and `columns` are those of another format.
    """
    pyarrow = _pyarrow("Writing Parquet")
    # A Parquet file needs its column types at its head, while the last document may still change
    # them and the documents may be too many to hold: hence the detour by a temporary file.
    with atomic_writer(path) as file, tempfile.TemporaryFile(dir=path.resolve().parent) as spill:
        records = map(to_record or _row, documents)
        schema, count = _spill(records, spill, _schema(columns, pyarrow), pyarrow)
        try:
            writer = pyarrow.parquet.ParquetWriter(file, schema, compression="zstd")
        except pyarrow.ArrowException as error:
            raise SightlineError(f"{path}: cannot be written as Parquet: {error}") from error
        with writer:
            for table in _spilled(spill, pyarrow):
                writer.write_table(_with_schema(table, schema, pyarrow))
    return count


def _row(document: Document) -> dict[str, Any]:
    record = document_to_record(document)
    for key in _AS_JSON & record.keys():
        try:
            record[key] = orjson.dumps(record[key]).decode()
        except TypeError as error:
            raise _column_error(key, error) from error
    return record


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(what, "parquet") from error
    return pyarrow


def _opened(path: Path, file: IO[bytes]) -> Any:
    pyarrow = _pyarrow("Reading Parquet")
    try:
        return pyarrow.parquet.ParquetFile(file)
    except Exception as error:  # pyarrow lets through what Python's own decoders raise
        raise SightlineError(f"{path}: cannot be read as Parquet: {_short(error)}") from error


def _records(path: Path, file: IO[bytes], needed: Iterable[str]) -> Iterator[dict[str, Any] | str]:
    """Yield one record a row, or the reason why there is none; damage ends the rows."""
    parquet = _opened(path, file)
    if missing := set(needed).difference(_names(path, parquet)):
        raise SightlineError(
            f"{path}: expected the columns {', '.join(needed)}; "
            f"missing: {', '.join(sorted(missing))}"
        )
    batches = parquet.iter_batches(batch_size=_BATCH)
    while True:
        try:
            batch = next(batches, None)
        except Exception as error:  # as above
            yield _CutOff(f"the Parquet data is damaged from here on ({_short(error)})")
            return
        if batch is None:
            return
        yield from _rows(batch)


def _rows(batch: Any) -> Iterator[dict[str, Any] | str]:
    try:
        records = batch.to_pylist() if batch.nbytes <= _LARGE_BATCH else None
    except Exception:
        # Arrow does not check text and times on the way in; find the rows that are to blame.
        records = None
    if records is not None:
        yield from records
    else:
        for row in range(len(batch)):
            try:
                yield batch.slice(row, 1).to_pylist()[0]
            except UnicodeDecodeError as error:
                yield f"not valid UTF-8: {error}"
            except Exception as error:
                yield f"cannot be read: {_short(error)}"


def _names(path: Path, parquet: Any) -> list[str]:
    """The names of a file's columns."""
    try:
        return list(parquet.schema_arrow.names)
    except Exception as error:  # a name that is no text, a schema that makes no sense
        raise SightlineError(f"{path}: cannot be read as Parquet: {_short(error)}") from error


def _short(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__


def _spill(
    records: Iterator[dict[str, Any]], spill: IO[bytes], schema: Any, pyarrow: Any
) -> tuple[Any, int]:
    """Write batches of Arrow columns, each a stream of its own; gives their common schema."""
    types = {field.name: field.type for field in schema}
    count = 0
    while some := list(islice(records, _ROW_GROUP)):
        batch = _batch(some, types, pyarrow)
        schema = _merged(schema, batch.schema, pyarrow)
        with pyarrow.ipc.new_stream(spill, batch.schema) as stream:
            stream.write_batch(batch)
        count += len(some)
    return schema, count


def _spilled(spill: IO[bytes], pyarrow: Any) -> Iterator[Any]:
    end = spill.tell()
    spill.seek(0)
    while spill.tell() < end:
        yield pyarrow.ipc.open_stream(spill).read_all()


def _schema(columns: Mapping[str, str], pyarrow: Any) -> Any:
    types = {
        "text": pyarrow.string(),
        "texts": pyarrow.list_(pyarrow.string()),
        "pairs": pyarrow.list_(pyarrow.list_(pyarrow.int64())),
    }
    return pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])


def _batch(records: list[dict[str, Any]], types: dict[str, Any], pyarrow: Any) -> Any:
    keys = dict.fromkeys((*types, *(key for record in records for key in record)))
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
        column = table.column(field.name)
        try:
            # Not to the same type: pyarrow 26 damages nulls in objects in lists on the way.
            columns[field.name] = column if column.type == field.type else column.cast(field.type)
        except pyarrow.ArrowException as error:
            raise _column_error(field.name, error) from error
    try:
        return pyarrow.table(columns, schema=schema)
    except pyarrow.ArrowException as error:
        raise SightlineError(f"The documents cannot be written as Parquet: {error}.") from error


def _column_error(key: str, error: Exception) -> SightlineError:
    return SightlineError(
        f"The key {key!r} cannot be a Parquet column: {error}. Write .jsonl or leave the key out."
    )
