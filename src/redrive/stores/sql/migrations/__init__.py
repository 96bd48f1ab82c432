"""The schema, revision by revision; each is frozen once it has been released."""
