"""How the device map learns which GPUs a job holds: one source per file. Imports core, slurm, the agent's model."""
