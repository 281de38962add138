# Users, owners and modes of a Slurm site; run once in the root, before it is booted.
getent passwd mysql >/dev/null || useradd --system mysql
useradd --create-home alice
useradd --create-home --groups users staffer
groupadd hpcstaff
usermod --append --groups hpcstaff staffer
install -d -o mysql /var/lib/mysql
install -d -o slurm -g slurm /var/lib/slurm /var/lib/slurm/slurmctld /var/log/slurm
install -d /var/lib/slurm/slurmd
chown slurm /etc/slurm/slurmdbd.conf
chmod 600 /etc/slurm/slurmdbd.conf
head -c 128 /dev/urandom >/etc/munge/munge.key
chown munge /etc/munge/munge.key
chmod 400 /etc/munge/munge.key
ldconfig
