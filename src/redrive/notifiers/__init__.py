"""Who is told of alerts: the adapters of the `Notifier` port."""
