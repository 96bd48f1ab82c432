"""Which of many texts: a condition with one parameter whatever their number, so that its statement is made once."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Dialect, String, TypeDecorator, bindparam
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

from redrive.stores.exact import all_escaped


def among(column: ColumnElement[str], texts: Sequence[str]) -> ColumnElement[bool]:
    """Whether the column is one of these."""
    return column.bool_op("IN")(_Rows(bindparam(None, texts, type_=_Texts())))


def among_given(column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    """The same for texts that are given later, by this name."""
    return column.bool_op("IN")(_Rows(bindparam(name, type_=_Texts())))


class _Rows(FunctionElement[str]):
    """Texts as rows."""

    inherit_cache = True
    type = String()


@compiles(_Rows, "sqlite")
def _in_sqlite(element: _Rows, compiler: SQLCompiler, **options: Any) -> str:
    return f"(SELECT value FROM json_each({compiler.process(element.clauses, **options)}))"  # noqa: S608 - a parameter


@compiles(_Rows, "postgresql")
def _in_postgresql(element: _Rows, compiler: SQLCompiler, **options: Any) -> str:
    return f"(SELECT unnest({compiler.process(element.clauses, **options)}))"


class _Texts(TypeDecorator[Sequence[str]]):
    """Texts in one value: as an array, or as JSON where there are none."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return ARRAY(String()) if dialect.name == "postgresql" else String()

    def bind_processor(self, dialect: Dialect) -> Callable[[Sequence[str] | None], Any]:
        if dialect.name == "postgresql":
            return lambda texts: [*all_escaped(texts or ())]
        return lambda texts: json.dumps([*all_escaped(texts or ())])
