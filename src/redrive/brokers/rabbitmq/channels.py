"""Channels, and whether they can still be used."""

from aiormq.abc import AbstractChannel


def is_open(channel: AbstractChannel) -> bool:
    """Whether a channel, and the connection under it, can still be used."""
    return not channel.is_closed and channel.connection.is_opened
