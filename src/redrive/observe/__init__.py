"""What happened, as people and machines see it: the bus, metrics, logs, health."""
