"""Rules over a request and its predictions: one answer in advisor, hub and commands. Imports core."""
