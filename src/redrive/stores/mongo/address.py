"""The address of a store: a MongoDB URL with the names of the database and of the collection."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from redrive.core.errors import ConfigError
from redrive.core.url import mask_url

DATABASE = "redrive"
COLLECTION = "letters"
_OWN = "collection"
_FORBIDDEN = frozenset(' "$*<>:|?/\\.\x00')


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is: what the driver is told, and the names within."""

    url: str
    database: str = DATABASE
    collection: str = COLLECTION

    @classmethod
    def of(cls, url: str) -> "Address":
        """Read a URL: `mongodb://host/database?collection=name`, the rest as the driver knows it.

        Raises `ConfigError` for names that MongoDB does not allow.
        """
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True)
        database = unquote(parts.path).removeprefix("/") or DATABASE
        collection = dict(given).get(_OWN, COLLECTION)
        if not parts.netloc:
            raise ConfigError(f"store: expected mongodb://host/database, got {mask_url(url)!r}")
        if _FORBIDDEN & {*database}:
            raise ConfigError(f"store: {database!r} cannot be the name of a database, in {mask_url(url)}")
        if not collection or collection.startswith("system.") or {"$", "\x00"} & {*collection}:
            raise ConfigError(f"store: {collection!r} cannot be the name of a collection, in {mask_url(url)}")
        rest = urlencode([(name, value) for name, value in given if name != _OWN])
        return cls(parts._replace(query=rest).geturl(), database, collection)
