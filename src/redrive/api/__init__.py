"""The REST API: HTTP in front of triage's verbs, and nothing that these do not have."""

from importlib.util import find_spec

from redrive.core.errors import MissingExtra

if find_spec("fastapi") is None or find_spec("uvicorn") is None:
    raise MissingExtra("the service", extra="service")
