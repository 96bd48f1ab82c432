"""Redrives, at a service: its redriver carries them out, whoever looks on."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from redrive.cli.at_service import reading
from redrive.cli.at_service.client import Client, flags_named
from redrive.cli.clerk import Proposed
from redrive.core.redrive import Redrive, RedriveState
from redrive.core.stored import Page
from redrive.triage.drive import Told
from redrive.triage.redrives import Shown, Terms
from redrive.triage.selection import Wanted

LOOK = timedelta(milliseconds=500)


class RedrivesThere:
    """`clerk.Redrives` at a service. Whoever stops looking on does not stop the redrive."""

    interrupted = (
        "no longer looking on; the service carries it out all the same."
        " Look again: redrive redrives watch {redrive_id}; or end it: redrive redrives cancel {redrive_id}"
    )

    def __init__(self, client: Client) -> None:
        self._client = client

    async def propose(self, wanted: Wanted, terms: Terms) -> Proposed:
        order = _order(wanted, terms)

        def proposed(said: reading.Said) -> Proposed:
            exactly = {**order, "dry_run": False, "preview": said["preview"]}
            targets = {reading.target(one): one["letters"] for one in said["targets"]}
            return Proposed(
                reading.preview(said), said["steps"], targets, said["remarks"], lambda: self._begin(exactly)
            )

        return await self._client.post("/redrives", order, read=proposed)

    async def carry_out(self, redrive_id: str, *, tell: Callable[[Told], None]) -> None:
        while (told := await self._client.get(_path(redrive_id), read=_told)).redrive.state is RedriveState.RUNNING:
            tell(told)
            await asyncio.sleep(LOOK.total_seconds())
        tell(told)

    async def find(self, *, limit: int, after: str | None = None) -> Page[Redrive]:
        with flags_named():
            return await self._client.page("/redrives", {}, limit=limit, after=after, read=reading.redrive)

    async def show(self, redrive_id: str) -> Shown:
        return await self._client.get(_path(redrive_id), read=reading.shown_redrive)

    async def pause(self, redrive_id: str, *, why: str) -> Redrive:
        return await self._client.post(f"{_path(redrive_id)}/pause", {"why": why}, read=reading.redrive)

    async def resume(self, redrive_id: str) -> Redrive:
        return await self._client.post(f"{_path(redrive_id)}/resume", read=reading.redrive)

    async def cancel(self, redrive_id: str, *, why: str) -> Redrive:
        return await self._client.post(f"{_path(redrive_id)}/cancel", {"why": why}, read=reading.redrive)

    async def _begin(self, order: dict[str, Any]) -> str:
        return (await self._client.post("/redrives", order, read=reading.redrive)).redrive_id


def _path(redrive_id: str) -> str:
    return f"/redrives/{quote(redrive_id, safe='')}"


def _order(wanted: Wanted, terms: Terms) -> dict[str, Any]:
    order: dict[str, Any] = {
        "canary": [*terms.canary],
        "rate": terms.rate,
        "to": terms.to,
        "target_queue": terms.target_queue,
        "confirm": terms.confirm,
        "report_within": terms.report_within.total_seconds(),
        "over_cap": terms.over_cap,
        "again": terms.again,
    }
    if wanted.letter_ids:
        return {**order, "letter_ids": [*wanted.letter_ids]}
    chosen = reading.filter_of(wanted.query)
    return {**order, **({"filter": chosen} if chosen else {"all": wanted.everything})}


def _told(said: reading.Said) -> Told:
    shown = reading.shown_redrive(said)
    return Told(shown.redrive, shown.progress, said["waiting"])
