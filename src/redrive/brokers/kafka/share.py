"""A partition for as long as it is ours."""

from redrive.brokers.kafka.record import Place
from redrive.brokers.kafka.window import Window


class Share:
    """One partition, from its assignment until it is taken away; if it comes back, that is another share.

    `position` is the next offset to be read. Beyond `noted`, whoever had it before has written nothing down. `prefix`
    with an offset behind it is the id of a message.
    """

    __slots__ = ("is_ours", "noted", "place", "position", "prefix", "window")

    def __init__(self, place: Place, window: Window) -> None:
        self.place = place
        self.prefix = f"{place[0]}-{place[1]}-"
        self.window = window
        self.position = window.low
        self.noted = window.end
        self.is_ours = True

    def reached(self, offset: int) -> None:
        """Everything before `offset` has been seen; what was passed over on the way is no message."""
        if self.position < offset:
            self.window = self.window.skip(self.position, offset)
            self.position = offset
