CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED BY 'slurm';
GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
