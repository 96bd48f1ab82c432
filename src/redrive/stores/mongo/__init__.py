"""Letters in MongoDB: one document for each, in the words of whoever asks for it."""

from importlib.util import find_spec

from redrive.core.errors import MissingExtra

if find_spec("pymongo") is None:
    raise MissingExtra("the letter store in MongoDB", extra="mongodb")

from redrive.stores.mongo.store import MongoStore

__all__ = ["MongoStore"]
