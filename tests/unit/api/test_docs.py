"""The page about the API has every route, with the permission that it asks for."""

import re
from pathlib import Path

from tests.unit.api.stage import Stage

PAGE = Path(__file__).parents[3] / "docs" / "api.md"


def test_the_page_lists_every_route_with_its_permission() -> None:
    rows = re.findall(r"^\| (\w+) \| `(\S+)` \| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    told = {(method, f"/api/v1{path}"): permission for method, path, permission in rows}

    paths = Stage().app.openapi()["paths"]

    assert told == {
        (method.upper(), path): operation["x-permission"]
        for path, operations in paths.items()
        for method, operation in operations.items()
        if path.startswith("/api/v1")
    }
