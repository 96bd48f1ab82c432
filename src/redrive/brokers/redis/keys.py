"""What Redrive keeps in Redis beside a queue's own stream, by name. Everything of one queue is in one cluster slot."""

from dataclasses import dataclass
from functools import cached_property

QUEUES = "redrive:queues"
"""A set of every queue that was ever published to or subscribed to."""


def base(queue: str) -> str:
    """The beginning of every name that belongs to a queue: a key with the same hash tag is in the same slot.

    The two forms differ in more than the braces: `orders` and `{orders}` are two queues.
    """
    return f"{queue}.redrive" if has_tag(queue) else f"{{{queue}}}:redrive"


def has_tag(name: str) -> bool:
    """Whether a name says by itself which part of it decides about its slot."""
    start = name.find("{")
    return start >= 0 and name.find("}", start) > start + 1


def tag_of(name: str) -> str:
    """The part of a name that decides about its slot."""
    if not has_tag(name):
        return name
    start = name.index("{")
    return name[start + 1 : name.index("}", start)]


@dataclass(frozen=True)
class QueueKeys:
    """The keys of a queue that all its groups share."""

    queue: str

    @cached_property
    def meta(self) -> str:
        """A hash: `incarnation`, `created` if the stream was begun by us, and `group:NAME` for each that has joined."""
        return base(self.queue)

    @cached_property
    def delayed(self) -> str:
        """A sorted set of messages that were published with a delay, by due time in milliseconds."""
        return f"{self.meta}:delayed"

    @cached_property
    def delayed_messages(self) -> str:
        """A hash with the fields of those messages."""
        return f"{self.meta}:delayed:messages"

    def once_letter(self, once_key: str) -> str:
        """Which entry of the DLQ a letter became; for a while."""
        return f"{self.meta}:once:letter:{once_key}"

    def once_back(self, once_key: str) -> str:
        """Which message a letter was sent back as; for a while."""
        return f"{self.meta}:once:back:{once_key}"

    def once_later(self, series: str) -> str:
        """When a call published with a delay; for a while."""
        return f"{self.meta}:once:later:{series}"

    def group(self, group: str) -> "GroupKeys":
        """The keys of one group."""
        return GroupKeys(self.queue, group)


@dataclass(frozen=True)
class GroupKeys(QueueKeys):
    """The keys of one group of a queue."""

    name: str

    @cached_property
    def own(self) -> str:
        """The beginning of every name that belongs to this group alone."""
        return f"{self.meta}:{self.name}"

    @cached_property
    def due(self) -> str:
        """A sorted set: members of the due index by due time in milliseconds. Rebuilt from the pending list."""
        return f"{self.own}:due"

    @cached_property
    def stories(self) -> str:
        """A hash: what is known of messages that failed, crashed or are suspect."""
        return f"{self.own}:stories"

    @cached_property
    def paused(self) -> str:
        """Why the group is paused; absent if it is not."""
        return f"{self.own}:paused"

    @cached_property
    def workers(self) -> str:
        """A hash: the workers heard of, by owner."""
        return f"{self.own}:workers"

    @cached_property
    def lane(self) -> str:
        """A stream with a group of the same name: the way back that reaches this group only."""
        return f"{self.own}:lane"

    @property
    def all_own(self) -> tuple[str, ...]:
        """Every key that nobody else needs once the group is gone."""
        return self.due, self.stories, self.paused, self.workers, self.lane
