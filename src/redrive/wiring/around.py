"""What stands around brokers and stores: who is told, what seals, what traces."""

from redrive.clock import SystemClock
from redrive.config import AlertSettings, Settings, load_keys
from redrive.core.ports import Broker, Clock, Notifier
from redrive.core.ports.cipher import Cipher
from redrive.core.ports.tracing import Tracing


def notifiers(settings: AlertSettings, *, clock: Clock | None = None) -> list[Notifier]:
    """Everybody who is told of alerts. Raises `ConfigError`, `MissingExtra`."""
    from redrive.notifiers.alertmanager import AlertmanagerNotifier

    clock, labels = clock or SystemClock(), settings.labels
    found: list[Notifier] = [AlertmanagerNotifier(url, labels=labels, clock=clock) for url in settings.alertmanager]
    if settings.webhook:
        from redrive.notifiers.webhook import WebhookNotifier

        often, private = settings.repeat_every, settings.allow_private
        found += [
            WebhookNotifier(url, repeat_every=often, allow_private=private, labels=labels) for url in settings.webhook
        ]
    return found


def cipher(settings: Settings) -> Cipher | None:
    """What seals letters and opens them; None if there is no key. Raises `ConfigError`, `MissingExtra`."""
    keys = load_keys(settings.encryption_keys_file)
    if not keys:
        return None
    from redrive.ciphers.aes_gcm import AesGcm

    return AesGcm(keys)


def tracing(broker: Broker | None) -> Tracing:
    """Spans of what is done with the messages of a broker, or without one, in memory. Raises `MissingExtra`."""
    from redrive.observe.tracing import OpenTelemetryTracing

    return OpenTelemetryTracing("memory" if broker is None else broker.name)
