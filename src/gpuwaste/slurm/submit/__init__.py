"""What a submission requests: sbatch's options and scripts, job_desc, GPUs."""
