"""What outlets and inlets of the Kafka protocol share: the settings of a connection, as librdkafka takes them."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.config_files import expanded
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import read_closed
from gpuwaste.core.typed_toml import key

_CLIENT: Final = "confluent_kafka"  # optional: the extra kafka
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")
_MAX_PASSWORD: Final = 4096
_FOLD: Final = 0x7FFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """The keys of [kafka] with the addresses of brokers and the connection's security."""

    brokers: tuple[str, ...] = key((), "Addresses of brokers to begin with, HOST:PORT.")
    security: str = key("PLAINTEXT", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.")
    ca: str = key("", "PEM file of the CA of the brokers' certificates; empty: the system's CAs.")
    cert: str = key("", "PEM certificate of the hub, if brokers require one.")
    key_: str = key("", "PEM key of that certificate.")
    sasl: str = key("SCRAM-SHA-512", "SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI or OAUTHBEARER.")
    user: str = key("", "User name of SASL.")
    password_file: str = key("", "File with the password; not readable by other users.")
    timeout_s: float = key(30.0, "Time in which brokers have to answer: to acknowledge a batch, to send their topics.")


def check_connection(settings: KafkaConnection, where: str) -> None:
    """Raise ConfigError for settings with which no broker can be reached."""
    if not settings.brokers:
        raise ConfigError(f"{where} brokers is empty: expected HOST:PORT")
    for name, value, known in (("security", settings.security, _PROTOCOLS), ("sasl", settings.sasl, _MECHANISMS)):
        if value not in known:
            raise ConfigError(f"{where} {name} {value!r:.40}: expected {', '.join(known)}")
    if not 0 < settings.timeout_s <= 600:  # noqa: PLR2004 ten minutes
        raise ConfigError(f"{where} timeout_s {settings.timeout_s:g}: expected more than 0, at most 600")


def kafka_client(where: str, module: str = "") -> Any:
    """Return confluent_kafka, or a `module` of it. Raises ConfigError if it is not installed."""
    try:
        return importlib.import_module(f"{_CLIENT}.{module}" if module else _CLIENT)
    except ImportError as error:
        raise ConfigError(f"{where}: confluent-kafka is not installed: install the extra kafka") from error


def connection_options(settings: KafkaConnection) -> dict[str, Any]:
    """Return the options of librdkafka. Raises ConfigError."""
    options: dict[str, Any] = {
        "bootstrap.servers": ",".join(settings.brokers),
        "client.id": "gpuwaste",
        "security.protocol": settings.security.lower(),  # as librdkafka does: it ignores case by the locale's rules
        "log_level": 2,
        "enable.metrics.push": False,  # librdkafka reports its own metrics to brokers that request them (KIP-714)
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
            options["sasl.password"] = read_closed(
                Path(expanded(settings.password_file)), _MAX_PASSWORD, "the password"
            ).strip()
    return options


def topic_number(client: Any, admin: Any, topic: str, timeout_s: float) -> int:
    """Return a number that changes when a topic is recreated: the broker has lost its log then.

    It is made from the topic's id (KIP-516); 0 if the broker has no ids. Raises client.KafkaException.
    """
    asked = admin.describe_topics(client.TopicCollection([topic]), request_timeout=timeout_s)
    found = asked[topic].result(timeout_s).topic_id
    if found is None:
        return 0
    return int(found.get_most_significant_bits() ^ found.get_least_significant_bits()) & _FOLD
