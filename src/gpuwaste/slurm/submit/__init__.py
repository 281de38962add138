"""What a submission asks for: sbatch's options and scripts, job_desc, GPUs."""
