"""Outlet kafka: events to a broker of the Kafka protocol, a topic a family, the run's key as the key."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import read_closed
from gpuwaste.core.text import words_of
from gpuwaste.core.typed_toml import key
from gpuwaste.events.envelope import MEDIA_TYPE, Event, encoded
from gpuwaste.events.outlet import Given, OutletDownError

_CLIENT: Final = "confluent_kafka"  # optional: the extra kafka
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")
_MAX_PASSWORD: Final = 4096


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """Table [kafka]."""

    brokers: tuple[str, ...] = key((), "Addresses of brokers to begin with, HOST:PORT.")
    topic_prefix: str = key("gpuwaste.", "A topic's name is this and the family: gpuwaste.job, gpuwaste.waste.")
    security: str = key("PLAINTEXT", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.")
    ca: str = key("", "PEM file of the CA of the brokers' certificates; empty: the system's CAs.")
    cert: str = key("", "PEM certificate of the hub, where brokers want one.")
    key_: str = key("", "PEM key of that certificate.")
    sasl: str = key("SCRAM-SHA-512", "SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI or OAUTHBEARER.")
    user: str = key("", "User name of SASL.")
    password_file: str = key("", "File with the password; not readable by other users.")
    timeout_s: float = key(30.0, "Time in which brokers have to acknowledge a batch.")


SETTINGS: Final = KafkaSettings


class Kafka:
    """An idempotent producer: acknowledged by all replicas, in order within a partition, and so within a run."""

    def __init__(self, settings: KafkaSettings, options: Mapping[str, Any]) -> None:
        self._settings = settings
        self._options = dict(options)
        self._where = ", ".join(settings.brokers)
        self._client = importlib.import_module(_CLIENT)
        self._producer: Any = None

    def deliver(self, events: Sequence[Event], cluster: str) -> Given:
        """Produce the events and wait for all acknowledgements. Raises OutletDownError."""
        failed: list[tuple[Event, Any]] = []
        producer = self._connected()
        for event in events:
            self._produce(producer, event, cluster, failed)
        left = producer.flush(self._settings.timeout_s)
        never = [(event, error) for event, error in failed if self._is_final(error)]
        if left or len(never) < len(failed):
            why = failed[0][1].str() if failed else f"no acknowledgement within {self._settings.timeout_s:g} s"
            self.close()  # what is still on its way must not come after what is sent again
            raise OutletDownError(f"{self._where}: {words_of(why)}")
        return Given([(event, words_of(error.str())) for event, error in never])

    def close(self) -> None:
        """Forget what was not acknowledged, and the connections."""
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(1.0)
            self._producer = None

    def _produce(self, producer: Any, event: Event, cluster: str, failed: list[tuple[Event, Any]]) -> None:
        def told(error: Any, _: object) -> None:
            if error is not None:
                failed.append((event, error))

        topic = self._settings.topic_prefix + event.kind.partition(".")[0]
        headers = [("content-type", MEDIA_TYPE.encode())]
        try:
            producer.produce(
                topic, encoded(event, cluster), (event.key or "-").encode(), headers=headers, on_delivery=told
            )
        except (BufferError, self._client.KafkaException) as error:
            if isinstance(error, BufferError):
                self.close()
                raise OutletDownError(
                    f"{', '.join(self._settings.brokers)}: the queue of the producer is full"
                ) from error
            failed.append((event, error.args[0]))
        producer.poll(0)

    def _is_final(self, error: Any) -> bool:
        """Say whether the broker would refuse the same event again."""
        code = self._client.KafkaError
        return error.code() in {code.MSG_SIZE_TOO_LARGE, code.INVALID_MSG_SIZE, code._INVALID_ARG}  # noqa: SLF001 its API

    def _connected(self) -> Any:
        if self._producer is None:
            try:
                self._producer = self._client.Producer(self._options)
            except (self._client.KafkaException, ValueError) as error:
                raise OutletDownError(f"{self._where}: {words_of(error)}") from error
        return self._producer


def make(settings: KafkaSettings, where: str) -> Kafka:
    """Return the outlet. Raises ConfigError."""
    if not settings.brokers:
        raise ConfigError(f"{where} brokers is empty: expected HOST:PORT")
    for name, value, known in (("security", settings.security, _PROTOCOLS), ("sasl", settings.sasl, _MECHANISMS)):
        if value not in known:
            raise ConfigError(f"{where} {name} {value!r:.40}: expected {', '.join(known)}")
    if not 0 < settings.timeout_s <= 600:  # noqa: PLR2004 ten minutes
        raise ConfigError(f"{where} timeout_s {settings.timeout_s:g}: expected more than 0, at most 600")
    options = _options(settings)
    try:
        return Kafka(settings, options)
    except ImportError as error:
        raise ConfigError(f"{where}: confluent-kafka is not installed: install the extra kafka") from error


def _options(settings: KafkaSettings) -> dict[str, Any]:
    """Return what librdkafka takes."""
    options: dict[str, Any] = {
        "bootstrap.servers": ",".join(settings.brokers),
        "client.id": "gpuwaste",
        "enable.idempotence": True,
        "compression.type": "lz4",
        "linger.ms": 5,
        "message.timeout.ms": round(settings.timeout_s * 1000),
        "security.protocol": settings.security.lower(),  # as librdkafka has it: it ignores case by the locale's rules
        "log_level": 2,
    }
    if settings.security.endswith("SSL"):
        files = {
            "ssl.ca.location": settings.ca,
            "ssl.certificate.location": settings.cert,
            "ssl.key.location": settings.key_,
        }
        options |= {name: value for name, value in files.items() if value}
    if settings.security.startswith("SASL"):
        options |= {"sasl.mechanism": settings.sasl, "sasl.username": settings.user}
        if settings.password_file:
            options["sasl.password"] = read_closed(Path(settings.password_file), _MAX_PASSWORD, "the password").strip()
    return options
