"""The letters of redrives: where each of them is."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from redrive.core.redrive import ENDED, ItemStatus, Planned, Progress, answered, left, sent
from redrive.stores.exact import microseconds, unescaped
from redrive.stores.hearing import Answer
from redrive.stores.mongo.documents import Document
from redrive.stores.mongo.draft import Draft
from redrive.stores.mongo.shelves import CHUNK, ITEMS, LETTERS, REDRIVES, UP, Shelves
from redrive.stores.mongo.values import key_of, texts, to_text

_LEFT = {status.value: left(status) for status in ItemStatus if left(status) is not status}
_OUT = [status.value for status in ItemStatus if status.out]


async def plan(draft: Draft, redrive_id: str, chosen: Sequence[Planned], *, place: int) -> None:
    """Write a part of a frozen selection, once."""
    names = {item.letter_id: key_of(redrive_id, item.letter_id) for item in chosen}
    there = {one["_id"] for one in await draft.shelves.among(ITEMS, "_id", [*names.values()], fields={"_id": 1})}
    for number, item in enumerate(chosen, place):
        if names[item.letter_id] in there:
            continue
        draft.add(
            ITEMS,
            {
                "_id": names[item.letter_id],
                "redrive_id": to_text(redrive_id),
                "letter_id": to_text(item.letter_id),
                "step": item.step,
                "place": number,
                "version": item.version,
                "status": ItemStatus.PLANNED.value,
                "generation": None,
                "fingerprint": "",  # as it was when the letter was claimed
                "message_id": "",
                "sent_at": None,
                "app_version": "",
            },
        )


async def answer(draft: Draft, answers: Sequence[Answer]) -> None:
    """Move the items of messages that were heard of."""
    by_message: defaultdict[tuple[str, int], list[Answer]] = defaultdict(list)
    for one in answers:
        by_message[one.letter_id, one.generation].append(one)
    names = texts(dict.fromkeys(one.letter_id for one in answers))
    for item in await draft.shelves.among(ITEMS, "letter_id", names):
        status, version = ItemStatus(item["status"]), unescaped(item["app_version"])
        for one in by_message.get((unescaped(item["letter_id"]), item["generation"]), ()):
            same = one.fingerprint == unescaped(item["fingerprint"])
            status, version = answered(status, succeeded=one.fingerprint is None, same=same), one.app_version
        fields = {"status": status.value, "app_version": to_text(version)}
        if any(item[name] != value for name, value in fields.items()):
            draft.set(ITEMS, item["_id"], fields)


async def waiting(
    shelves: Shelves, redrive_id: str, *, step: int, status: ItemStatus, behind: int = -1, limit: int
) -> list[Document]:
    """The items of a step in a status, in their order."""
    where = {"redrive_id": to_text(redrive_id), "step": step, "status": status.value, "place": {"$gt": behind}}
    return await shelves.many(ITEMS, where, order=[("place", UP)], limit=limit) if limit > 0 else []


async def record_sent(draft: Draft, redrive_id: str, messages: Mapping[str, str], *, at: datetime) -> None:
    """Record message ids; what was heard of already stays what it is."""
    names = {key_of(redrive_id, letter_id): message_id for letter_id, message_id in messages.items()}
    for item in await draft.shelves.among(ITEMS, "_id", [*names], fields={"status": 1, "generation": 1}):
        if item["generation"] is not None:
            status = sent(ItemStatus(item["status"])).value
            fields = {"status": status, "message_id": to_text(names[item["_id"]]), "sent_at": microseconds(at)}
            draft.set(ITEMS, item["_id"], fields)


async def expire_some(draft: Draft, redrive_id: str, *, before: datetime, quiet: bool) -> int:
    """Items sent before then and not heard of: failed if that was reported, else unconfirmed or quiet."""
    where = {
        "redrive_id": to_text(redrive_id),
        "status": ItemStatus.SENT.value,
        "sent_at": {"$lt": microseconds(before)},
    }
    found = await draft.shelves.many(ITEMS, where, limit=CHUNK)
    fields = {"letter_id": 1, "redrive.outcomes": 1}
    letters = await draft.shelves.among(LETTERS, "letter_id", [item["letter_id"] for item in found], fields=fields)
    failed = {
        (letter["letter_id"], outcome["generation"])
        for letter in letters
        for outcome in letter["redrive"]["outcomes"]
        if not outcome["succeeded"]
    }
    lost = ItemStatus.QUIET if quiet else ItemStatus.UNCONFIRMED
    for item in found:
        status = ItemStatus.FAILED if (item["letter_id"], item["generation"]) in failed else lost
        draft.set(ITEMS, item["_id"], {"status": status.value})
    return len(found)


async def leave_some(draft: Draft, redrive_id: str) -> int:
    """What a redrive has not heard of at its end: where `left` says that it is."""
    where = {"redrive_id": to_text(redrive_id), "status": {"$in": [*_LEFT]}}
    found = await draft.shelves.many(ITEMS, where, fields={"status": 1}, limit=CHUNK)
    for item in found:
        draft.set(ITEMS, item["_id"], {"status": _LEFT[item["status"]].value})
    return len(found)


async def out(draft: Draft, letter_ids: Sequence[str]) -> set[str]:
    """Those of these letters that a redrive waits for. One that has ended does not, even if its end was cut short."""
    found = [
        item for item in await draft.shelves.among(ITEMS, "letter_id", texts(letter_ids)) if item["status"] in _OUT
    ]
    names = [*{item["redrive_id"] for item in found}]
    redrives = await draft.shelves.among(REDRIVES, "redrive_id", names, fields={"redrive_id": 1, "state": 1})
    ended = {one["redrive_id"] for one in redrives if one["state"] in ENDED}
    for item in found:
        if item["redrive_id"] in ended:
            draft.set(ITEMS, item["_id"], {"status": ItemStatus.UNCONFIRMED.value})
    return {unescaped(item["letter_id"]) for item in found if item["redrive_id"] not in ended}


async def progress(shelves: Shelves, redrive_id: str, *, steps: int) -> Progress:
    """Items by status and step."""
    alike = {"step": "$step", "status": "$status", "app_version": "$app_version"}
    pipeline: list[Document] = [
        {"$match": {"redrive_id": to_text(redrive_id)}},
        {"$group": {"_id": alike, "n": {"$sum": 1}}},
    ]
    counted: list[dict[ItemStatus, int]] = [{} for _ in range(steps)]
    versions = set()
    for group in await (await shelves[ITEMS].aggregate(pipeline)).to_list():
        step, status, version = group["_id"]["step"], ItemStatus(group["_id"]["status"]), group["_id"]["app_version"]
        counted[step][status] = counted[step].get(status, 0) + group["n"]
        if status is ItemStatus.SUCCEEDED and version:
            versions.add(unescaped(version))
    return Progress(tuple(counted), tuple(sorted(versions)))


async def redrives_of(shelves: Shelves, letter_ids: Sequence[str]) -> dict[str, list[str]]:
    """The redrives that letters were planned in, oldest first."""
    items = await shelves.among(
        ITEMS, "letter_id", texts(letter_ids), fields={"_id": 0, "letter_id": 1, "redrive_id": 1}
    )
    names = [*{item["redrive_id"] for item in items}]
    redrives = await shelves.among(REDRIVES, "redrive_id", names, fields={"redrive_id": 1}) if names else []
    order = {one["redrive_id"]: one["_id"] for one in redrives}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for item in sorted((one for one in items if one["redrive_id"] in order), key=lambda one: order[one["redrive_id"]]):
        found[unescaped(item["letter_id"])].append(unescaped(item["redrive_id"]))
    return dict(found)
