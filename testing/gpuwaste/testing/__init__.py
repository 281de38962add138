"""The loopback cluster, the simulated NVML's builder and the recording player. Only tests and the demo import it."""
