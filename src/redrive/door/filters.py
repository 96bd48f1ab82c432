"""Which letters a request is about: the one place that turns parameters into a query."""

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.reason import Reason

NO_NUL = r"^[^\x00]*$"  # no letter's field has one: PostgreSQL keeps none


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = re.compile(r"\d{4}-\d")
_EXPECTED = "expected an instant from 1970 on, such as 2026-01-31T08:00:00Z"


def _written(value: object) -> object:
    # A bare number would be taken for seconds since 1970: more likely it is a mistake.
    if isinstance(value, str) and _DATE.match(value):
        return value
    raise ValueError(_EXPECTED)


def _in_utc(instant: datetime) -> datetime:
    try:
        found = instant.astimezone(UTC)
    except OverflowError:
        found = None
    if found is None or found < _EPOCH:
        raise ValueError(_EXPECTED)
    return found


_YEARS = r"^(19[7-9][0-9]|[2-9][0-9]{3})-"

Instant = Annotated[
    AwareDatetime, BeforeValidator(_written), AfterValidator(_in_utc), Field(json_schema_extra={"pattern": _YEARS})
]
"""An instant with a zone, far enough from the ends of the calendar to reckon with."""


def _in_words(expected: str) -> WrapValidator:
    """Says what is expected where pydantic would show a regular expression, which stays in the OpenAPI document."""

    def check(value: object, handler: ValidatorFunctionWrapHandler) -> object:
        try:
            return handler(value)
        except ValidationError:
            raise ValueError(f"expected {expected}") from None

    return WrapValidator(check)


Word = Annotated[
    str, Field(min_length=1, max_length=1024, pattern=NO_NUL), _in_words("1 to 1024 characters, none of them NUL")
]
"""A value to compare with: never empty, so that a forgotten one does not ask for something else."""

Text = Annotated[
    str,
    Field(min_length=1, max_length=1024, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$"),
    _in_words("1 to 1024 characters, not only blanks, and no NUL"),
]
"""A text to look for: not only blanks, which nearly every letter holds."""


def _number(value: object) -> object:
    # True would be taken for 1, and false for 0: more likely it is a mistake.
    if isinstance(value, (bool, str)):
        raise ValueError("expected a number")
    return value


A_NUMBER = BeforeValidator(_number)
"""For a number in a body; to stand behind its limits."""

Length = str | Annotated[float, Field(strict=True)]
"""A duration in a body: seconds, or as in 90d. True and false are neither."""


class LetterFilter(BaseModel):
    """Which letters: all that is given must hold. A name that is not known is refused: it must not mean all letters."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    queue: Word | None = Field(None, description="The queue they came from.", examples=["orders"])
    broker: Word | None = Field(None, description="The broker they came from.")
    state: list[LetterState] = Field([], description="In one of these states; may be given often.")
    reason: Reason | None = Field(None, description="Why they were given up.")
    error_type: Word | None = Field(None, description="The type of their last error, in full.", examples=["KeyError"])
    error_code: Word | None = Field(None, description="The code of their last error.")
    fingerprint: Word | None = Field(None, description="How they failed; the id of their incident.")
    user_id: Word | None = Field(None, description="The user they are about.")
    tenant_id: Word | None = Field(None, description="The tenant they are about.")
    kind: Word | None = Field(None, description="What they are: message or llm.")
    app_version: Word | None = Field(None, description="The app's version that they died on.")
    q: Text | None = Field(None, description="A text in id, error or payload, whatever the case.")
    from_at: Instant | None = Field(None, alias="from", description="Failed at or after this instant.")
    to_at: Instant | None = Field(None, alias="to", description="Failed before this instant.")

    def query(self) -> Query:
        """The same, for a store."""
        same = {name: getattr(self, name) for name in LetterFilter.model_fields if name not in ("state", "q")}
        return Query(**same, states=tuple(self.state), text=self.q)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is named: it means every letter there is."""
        return self.query() == Query()
