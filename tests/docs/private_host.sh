#!/bin/bash
# Runs "$@" in a mount namespace of its own in which /etc, /opt, /run and /var/lib may be written and nothing stays.
# $PRIVATE is an empty folder; the host's own gpuwaste, munge and slurm are not seen in it.
set -euo pipefail

# Puts a copy in front of a folder: its folders are bound, the rest is copied.
shadow() {
  local copy=$PRIVATE$1 entry name
  mkdir -p "$copy"
  for entry in "$1"/* "$1"/.[!.]*; do
    name=${entry##*/}
    case $name in gpuwaste | munge | slurm) continue ;; esac
    if [ -d "$entry" ] && [ ! -L "$entry" ]; then
      mkdir "$copy/$name"
      mount --rbind "$entry" "$copy/$name"
    elif [ -e "$entry" ] && [ ! -S "$entry" ]; then
      cp -a "$entry" "$copy/$name"
    fi
  done
  mount --rbind "$copy" "$1"
}

mkdir "$PRIVATE/etc"
cp -a /etc/. "$PRIVATE/etc"
rm -rf "$PRIVATE"/etc/{gpuwaste,slurm}
mount --bind "$PRIVATE/etc" /etc
for folder in /opt /run /var/lib; do shadow "$folder"; done
mkdir /etc/slurm /run/munge
ln -s "$SITE_SLURM_CONF" /etc/slurm/slurm.conf
ln -s "$SITE_MUNGE_SOCKET" /run/munge/munge.socket.2
exec "$@"
