"""The compute node's daemon: sampler, collectors, device map, exporter. Imports wire and below."""
