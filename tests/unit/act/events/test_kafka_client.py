"""Settings of a connection to Kafka's brokers."""

from gpuwaste.act.events.kafka_client import KafkaConnection, connection_options


def test_brokers_are_sent_no_figures_of_the_client() -> None:
    """Reports of librdkafka itself (KIP-714), which are on by default, are off."""
    assert connection_options(KafkaConnection(brokers=("b:9092",)))["enable.metrics.push"] is False
