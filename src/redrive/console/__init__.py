"""The console: what died, why, and the way back, in a browser. Pages over triage's verbs, rendered on the server."""

from redrive.console.app import asgi

__all__ = ["asgi"]
