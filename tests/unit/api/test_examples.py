"""Each example of the OpenAPI document is what the API says, or may be asked for."""

from typing import Any

import pytest
from pydantic import BaseModel

from redrive.api import redriving
from redrive.api.routes import analytics, audit, incidents, queues, transfer

_MODULES = (redriving, analytics, audit, incidents, queues, transfer)


def examples() -> list[Any]:
    """Every example of a model, with the model."""
    models = {
        one
        for module in _MODULES
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, BaseModel) and "json_schema_extra" in vars(one)["model_config"]
    }
    found = []
    for model in sorted(models, key=lambda one: one.__qualname__):
        extra: Any = model.model_config["json_schema_extra"]
        given = extra.get("examples") or [extra["example"]]
        found += [pytest.param(model, one, id=f"{model.__name__}-{place}") for place, one in enumerate(given)]
    return found


@pytest.mark.parametrize(("model", "example"), examples())
def test_an_example_is_what_the_api_says(model: type[BaseModel], example: dict[str, Any]) -> None:
    read = model.model_validate(example)

    assert read.model_dump(mode="json", exclude_unset=True, by_alias=True) == example


def test_there_are_examples() -> None:
    assert len(examples()) > 10
