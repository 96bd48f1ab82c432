"""Values and rules: pure, without I/O, logging or third-party imports; `now` and `random` are arguments."""
