"""Which brokers: the one that `broker` names, or those of the file, each with what is collected from it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from redrive.config.apart import file_of
from redrive.config.settings import DEFAULT_BROKER, BrokerSettings
from redrive.config.sources import FILE, Said


def brokers_of(names: Sequence[str], said: Mapping[str, Said], mistakes: list[str]) -> tuple[BrokerSettings, ...]:
    """The brokers; never none. `names` are those that the file has tables for."""
    tables = [table for name in names if (table := _table(name, said, mistakes))]
    _refuse_twins(tables, mistakes)
    chosen = _chosen(tables, said, mistakes)
    if len(chosen) > 1:
        unclear = [said[key].where for key in ("collect.queues", "collect.dlqs") if key in said]
        mistakes += [f"{where}: of which broker? say it in [brokers.<name>], or name a broker" for where in unclear]
    return tuple(_collecting(one, said) for one in chosen)


def _table(name: str, said: Mapping[str, Said], mistakes: list[str]) -> BrokerSettings | None:
    prefix = f"brokers.{name}."
    values = {key.removeprefix(prefix): one.value for key, one in said.items() if key.startswith(prefix)}
    if "url" not in values:
        if not any(f"{prefix}url" in mistake for mistake in mistakes):
            mistakes.append(f"{FILE}: {prefix}url: expected a URL such as {DEFAULT_BROKER}, got none")
        return None
    return BrokerSettings(name=name, **values)


def _refuse_twins(tables: Sequence[BrokerSettings], mistakes: list[str]) -> None:
    """One broker under two names would give a letter two identities."""
    seen: dict[object, BrokerSettings] = {}
    for table in tables:
        other = seen.setdefault(file_of(table.url) or table.url, table)
        if other is not table:
            mistakes.append(f"brokers.{table.name}.url: the same broker as brokers.{other.name}: one has one name")


def _chosen(
    tables: Sequence[BrokerSettings], said: Mapping[str, Said], mistakes: list[str]
) -> Sequence[BrokerSettings]:
    if "broker" not in said:
        return tables or (BrokerSettings(url=DEFAULT_BROKER),)
    which = said["broker"]
    if which.source == "file" and tables:
        mistakes.append(f"{which.where}: expected none beside [brokers.…]; give it a table and a name of its own")
        return tables
    found = [table for table in tables if which.value in (table.name, table.url)]
    if found:
        return found
    if "://" not in which.value:
        names = f", or one of {', '.join(str(table.name) for table in tables)}" if tables else ""
        shown = repr(which.value) if "@" not in which.value else "a text with a password in it and no ://"
        mistakes.append(f"{which.where}: expected a URL such as {DEFAULT_BROKER}{names}, got {shown}")
        return (BrokerSettings(url=DEFAULT_BROKER),)
    return (BrokerSettings(url=which.value),)


def _collecting(broker: BrokerSettings, said: Mapping[str, Said]) -> BrokerSettings:
    words = ("queues", "dlqs", "keep")
    return replace(broker, **{word: one.value for word in words if (one := said_of(broker.name, word, said))})


def said_of(name: str | None, word: str, said: Mapping[str, Said]) -> Said | None:
    """Who said this of a broker: its own table, or `[collect]` and what stands for it, which speak of any broker.

    A flag wins over the table.
    """
    own, any_broker = said.get(f"brokers.{name}.{word}"), said.get(f"collect.{word}")
    if own is None or (any_broker is not None and any_broker.source == "flag"):
        return any_broker or own
    return own
