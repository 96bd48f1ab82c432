"""Did it work? A redrive in one sentence, for the person who asked for it."""

from redrive.core.redrive import ItemStatus, Progress, Redrive, RedriveState

_NEVER_SENT = (ItemStatus.PLANNED, ItemStatus.CLAIMED, ItemStatus.UNTOUCHED, ItemStatus.SKIPPED)


def verdict(redrive: Redrive, progress: Progress) -> str:
    """One sentence about a redrive: what was sent, what became of it, and why it goes on no further."""
    said = _sent(progress)
    if redrive.state is RedriveState.STOPPED:
        return f"stopped after {_out(progress)}: same failure, {_untouched(progress)} untouched"
    if redrive.state is RedriveState.PAUSED:
        return f"{said}; paused: {redrive.why or 'by a person'}; {_untouched(progress)} untouched"
    if redrive.state is RedriveState.CANCELLED:
        return f"{said}; cancelled: {_results(progress)}, {_untouched(progress)} untouched"
    if redrive.state is RedriveState.RUNNING:
        return f"{said}; running: {_results(progress)}, {progress.count(ItemStatus.PLANNED):,} to go"
    return f"{said}: {_results(progress)}"


def _sent(progress: Progress) -> str:
    """`Sent 1, it succeeded on version 4f2c; sent 5, then 25, then 969`."""
    sizes = [size for step in progress.steps if (size := _out(Progress((step,))))]
    if not sizes:
        return "Sent nothing"
    versions = f" on version {', '.join(progress.versions)}" if progress.versions else ""
    first = Progress(progress.steps[:1])
    if len(sizes) == 1 or _out(first) != first.count(ItemStatus.SUCCEEDED):
        return f"Sent {', then '.join(f'{size:,}' for size in sizes)}{versions and f', succeeding{versions}'}"
    answer = "it succeeded" if sizes[0] == 1 else "all succeeded"
    return f"Sent {sizes[0]:,}, {answer}{versions}; sent {', then '.join(f'{size:,}' for size in sizes[1:])}"


def _results(progress: Progress) -> str:
    """What became of it: the numbers people ask for always, the others where there are any."""
    counts = {
        "resolved": progress.count(ItemStatus.SUCCEEDED),
        "unconfirmed": progress.count(ItemStatus.UNCONFIRMED),
        "failed the same way": progress.count(ItemStatus.FAILED),
        "failed in another way": progress.count(ItemStatus.FAILED_OTHERWISE),
        "quiet": progress.count(ItemStatus.QUIET),
        "still out": progress.count(ItemStatus.CLAIMED, ItemStatus.SENT),
        "skipped, changed since the preview or without a payload to send": progress.count(ItemStatus.SKIPPED),
    }
    always = ("resolved", "unconfirmed")
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if number or name in always)


def _out(progress: Progress) -> int:
    """How many were sent."""
    return progress.count(*(status for status in ItemStatus if status not in _NEVER_SENT))


def _untouched(progress: Progress) -> str:
    return f"{progress.count(ItemStatus.UNTOUCHED, ItemStatus.PLANNED):,}"
