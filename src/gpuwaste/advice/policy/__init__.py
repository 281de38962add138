"""Rules over a request and what is expected of it: one answer in advisor, hub and commands. Imports core."""
