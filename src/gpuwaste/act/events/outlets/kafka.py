"""Outlet kafka: events to a broker of the Kafka protocol, a topic a family, the run's key as the key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.act.events.kafka_client import KafkaConnection, check_connection, connection_options, kafka_client
from gpuwaste.act.events.outlet import DeliveryResult, OutletDownError
from gpuwaste.core.text import words_of
from gpuwaste.core.typed_toml import key
from gpuwaste.jobs.events.envelope import MEDIA_TYPE, StoredEvent, encoded


@dataclass(frozen=True, slots=True)
class KafkaOutletSettings(KafkaConnection):
    """Table [kafka]."""

    topic_prefix: str = key("gpuwaste.", "A topic's name is this and the family: gpuwaste.job, gpuwaste.ledger.")


SETTINGS: Final = KafkaOutletSettings


class Kafka:
    """An idempotent producer: acknowledged by all replicas, in order within a partition, and so within a run."""

    def __init__(self, settings: KafkaOutletSettings, options: Mapping[str, Any], client: Any) -> None:
        self._settings = settings
        self._options = dict(options)
        self._where = ", ".join(settings.brokers)
        self._client = client
        self._producer: Any = None

    def deliver(self, events: Sequence[StoredEvent], cluster: str) -> DeliveryResult:
        """Produce the events and wait for all acknowledgements. Raises OutletDownError."""
        failed: list[tuple[StoredEvent, Any]] = []
        producer = self._connected()
        for event in events:
            self._produce(producer, event, cluster, failed)
        left = producer.flush(self._settings.timeout_s)
        never = [(event, error) for event, error in failed if self._is_final(error)]
        if left or len(never) < len(failed):
            why = failed[0][1].str() if failed else f"no acknowledgement within {self._settings.timeout_s:g} s"
            self.close()  # an event still in flight must not arrive after what is sent again
            raise OutletDownError(f"{self._where}: {words_of(why)}")
        return DeliveryResult([(event, words_of(error.str())) for event, error in never])

    def close(self) -> None:
        """Drop unacknowledged events, and the connections."""
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(1.0)
            self._producer = None

    def _produce(self, producer: Any, event: StoredEvent, cluster: str, failed: list[tuple[StoredEvent, Any]]) -> None:
        def told(error: Any, _: object) -> None:
            if error is not None:
                failed.append((event, error))

        topic = self._settings.topic_prefix + event.kind.partition(".")[0]
        headers = [("content-type", MEDIA_TYPE.encode())]
        try:
            producer.produce(
                topic, encoded(event, cluster), (event.subject or "-").encode(), headers=headers, on_delivery=told
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
        """Return whether the broker would reject the same event again."""
        code = self._client.KafkaError
        return error.code() in {code.MSG_SIZE_TOO_LARGE, code.INVALID_MSG_SIZE, code._INVALID_ARG}  # noqa: SLF001 its API

    def _connected(self) -> Any:
        if self._producer is None:
            try:
                self._producer = self._client.Producer(self._options)
            except (self._client.KafkaException, ValueError) as error:
                raise OutletDownError(f"{self._where}: {words_of(error)}") from error
        return self._producer


def make(settings: KafkaOutletSettings, where: str) -> Kafka:
    """Return the outlet. Raises ConfigError."""
    check_connection(settings, where)
    options = connection_options(settings) | {
        "enable.idempotence": True,
        "compression.type": "lz4",
        "linger.ms": 5,
        "message.timeout.ms": round(settings.timeout_s * 1000),
    }
    return Kafka(settings, options, kafka_client(where))
