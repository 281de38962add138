"""The device map's sources for which GPUs a job holds, one per file. Imports core, slurm, the agent's model."""
