"""Inlet kafka: all partitions of one topic of a Kafka broker, from positions in the hub's store.

No offsets are committed to the broker: the hub stores them with the events, in one transaction.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.act.events.inlet import Fetched, InletDownError
from gpuwaste.act.events.inlet_store import LogPlaces
from gpuwaste.act.events.kafka_client import (
    KafkaConnection,
    check_connection,
    connection_options,
    kafka_client,
    topic_number,
)
from gpuwaste.act.events.outlet import check_beginning
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.text import words_of
from gpuwaste.core.typed_toml import key

_BATCH: Final = 500
_WAIT_S: Final = 0.5
_RENEW_S: Final = 300.0  # reconnect after this time: partitions may have been added, or the topic recreated
_MAX_TOPIC: Final = 249  # of the protocol
_LOST: Final = "topic {topic} was created again with a new log: read from its beginning"


@dataclass(frozen=True, slots=True)
class KafkaInletSettings(KafkaConnection):
    """Table [kafka]."""

    topic: str = key("", "The topic.")
    group: str = key("gpuwaste", "Group id for the broker's access rules; no offsets are committed to it.")
    begin: str = key("now", "Where a new inlet begins: now, or oldest, the first event that the broker has.")


SETTINGS: Final = KafkaInletSettings


class KafkaTopic:
    """Reads each partition from the stored position; connects at the first fetch, and again after an error."""

    def __init__(self, settings: KafkaInletSettings, options: Mapping[str, Any], client: Any, admin: Any) -> None:
        self._settings = settings
        self._options = dict(options)
        self._client, self._admin = client, admin
        self._where = f"{', '.join(settings.brokers)}: topic {settings.topic}"
        self._consumer: Any = None
        self._places = LogPlaces(0, {})
        self._notes: list[str] = []
        self._error = ""
        self._renew_at = 0.0

    def fetch(self, known: LogPlaces | None) -> Fetched:
        """Return the next events. Raises InletDownError."""
        try:
            if self._consumer is not None and time.monotonic() > self._renew_at:
                self.close()
            if self._consumer is None:
                self._connect(known)
            messages = self._consumed()
        except (self._client.KafkaException, RuntimeError, TimeoutError, ValueError) as error:
            self.close()
            raise InletDownError(f"{self._where}: {words_of(_reason(error))}") from error
        following = dict(self._places.next)
        for message in messages:
            following[message.partition()] = message.offset() + 1
        self._places = LogPlaces(self._places.log, following)
        notes, self._notes = self._notes, []
        return Fetched([message.value() or b"" for message in messages], self._places, notes)

    def close(self) -> None:
        """Disconnect from the broker."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _consumed(self) -> list[Any]:
        messages: list[Any] = self._consumer.consume(_BATCH, _WAIT_S)
        error = next((found for message in messages if (found := message.error()) is not None), None)
        if error is not None:
            raise self._client.KafkaException(error)
        if self._error and not messages:
            raise RuntimeError(self._error)
        return messages

    def _noted(self, error: Any) -> None:
        """Keep an error of librdkafka that is not in a message, if it means that no broker is reachable."""
        if error.fatal() or error.code() == self._client.KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 its API
            self._error = error.str()

    def _connect(self, known: LogPlaces | None) -> None:
        """Start each partition at its position; if the log is another than before, at its beginning."""
        settings, client = self._settings, self._client
        self._error, self._renew_at = "", time.monotonic() + _RENEW_S
        log = topic_number(client, self._admin.AdminClient(self._options), settings.topic, settings.timeout_s)
        own = {
            "group.id": settings.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 1 << 20,
            "fetch.max.bytes": 8 << 20,
            "error_cb": self._noted,
            "queued.max.messages.kbytes": 16 << 10,  # buffer for events fetched in advance
        }
        self._consumer = client.Consumer(self._options | own)
        found = self._consumer.list_topics(settings.topic, settings.timeout_s).topics[settings.topic]
        if found.error is not None:
            raise client.KafkaException(found.error)
        if known is not None and known.log and log and known.log != log:  # 0: the broker has no topic ids
            self._notes.append(_LOST.format(topic=settings.topic))
            known = LogPlaces(log, {})
        places = {number: self._begin(number, known) for number in sorted(found.partitions)}
        self._places = LogPlaces(log, places)
        self._consumer.assign([client.TopicPartition(settings.topic, *place) for place in places.items()])

    def _begin(self, partition: int, known: LogPlaces | None) -> int:
        """Return where to start a partition; one added later starts with its first event."""
        if known is not None and partition in known.next:
            return known.next[partition]
        ends = self._consumer.get_watermark_offsets(
            self._client.TopicPartition(self._settings.topic, partition), self._settings.timeout_s
        )
        return int(ends[1] if known is None and self._settings.begin == "now" else ends[0])


def make(settings: KafkaInletSettings, where: str) -> KafkaTopic:
    """Return the inlet. Raises ConfigError."""
    check_connection(settings, where)
    check_beginning(settings.begin, where)
    if not settings.topic or len(settings.topic) > _MAX_TOPIC:
        raise ConfigError(f"{where} topic {settings.topic!r:.80}: expected the name of a topic")
    options = connection_options(settings)
    return KafkaTopic(settings, options, kafka_client(where), kafka_client(where, "admin"))


def _reason(error: Exception) -> object:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    args: Sequence[Any] = error.args
    return args[0].str() if args and hasattr(args[0], "str") else error
