#!/bin/sh
# Health gate, off unless its settings say otherwise: looks whether a GPU that the job was given is known to be lost, or
# had an Xid error after which it needs a reset, by the file RUN_DIR/health that the gpuwaste agent keeps.
#
# Settings, KEY = VALUE a line, in /etc/gpuwaste/health-gate.conf (docs/how-to/health-gate.md):
#   mode        off (default) | suggest | drain | requeue
#   stale_s     an older file holds nothing back; default 120
#   run_dir     default /run/gpuwaste; only read
#   jobs_dir    default /run/gpuwaste-jobs: a directory that root alone can change, where the last line is left
#   agent_user  default gpuwaste
#   scontrol    default scontrol
#
# It fails open: without settings, file or agent, with an old or garbled file, and after two seconds, it exits with 0.
# Only with mode = requeue, and a fresh file that names a GPU of this job, it exits with 1.
LC_ALL=C
export LC_ALL
unset IFS CDPATH
: "${PATH:=/usr/sbin:/usr/bin:/sbin:/bin}"
export PATH
SICK=3 # exit status of the check that holds the job back
DEADLINE_S=2

is_number() {
  case $1 in
  '' | *[!0-9]* | ?????????????*) return 1 ;;
  esac
}

# Succeeds for a path, no link, of root or the agent, that nobody else may write to.
trusted() {
  [ -e "$1" ] && [ ! -L "$1" ] || return 1
  # shellcheck disable=SC2046
  set -- $(ls -ldn "$1")
  case $1 in
  ?????w* | ????????w*) return 1 ;;
  esac
  [ "$3" = 0 ] || [ "$3" = "$(id -u "$agent_user")" ]
}

settings() {
  mode=off stale_s=120 agent_user=${GPUWASTE_USER:-gpuwaste} scontrol=scontrol
  run_dir=${GPUWASTE_RUN_DIR:-/run/gpuwaste} jobs_dir=${GPUWASTE_JOBS_DIR:-/run/gpuwaste-jobs}
  file=${GPUWASTE_HEALTH_CONF:-/etc/gpuwaste/health-gate.conf}
  [ -f "$file" ] && [ -r "$file" ] || return 1
  while IFS=' =' read -r key value || [ -n "$key" ]; do
    case $key in
    mode) mode=$value ;;
    stale_s) is_number "$value" && stale_s=$value ;;
    run_dir) run_dir=$value ;;
    jobs_dir) jobs_dir=$value ;;
    agent_user) agent_user=$value ;;
    scontrol) scontrol=$value ;;
    esac
  done <"$file"
}

# Prints "UUID MINOR STATE SINCE REASON" for each unusable GPU among the positions $1 of ./health, if fresh at $2.
unusable() {
  # Neither a link nor a pipe that took the file's place since it was looked at is followed or waited for.
  dd if=health iflag=nofollow,nonblock bs=65536 count=1 | awk -v gpus="$1" -v now="$2" -v stale="$stale_s" '
    BEGIN {
      count = split(gpus, part, ",")
      for (i = 1; i <= count; i++) {
        split(part[i], range, "-")
        last = part[i] ~ /-/ ? range[2] : range[1]
        for (at = range[1] + 0; at <= last + 0 && at < 1024; at++) mine[at] = 1
      }
    }
    NR == 1 {
      if (NF != 3 || $1 != "gpuwaste-health" || $2 != "1" || $3 !~ /^[0-9]+$/) exit
      if ($3 + 0 > now + 60 || now - $3 > stale + 0) exit
      next
    }
    NF != 6 || $1 !~ /^[A-Za-z0-9-]+$/ || $2 !~ /^[0-9-]+$/ || $5 !~ /^[0-9]+$/ || $6 !~ /^[a-z0-9_]+$/ { next }
    $4 == "lost" || $4 == "xid" {
      count = split($3, place, ",")
      for (i = 1; i <= count; i++)
        if (place[i] ~ /^[0-9]+$/ && (place[i] + 0) in mine) { print $1, $2, $4, $5, $6; break }
    }'
}

# Goes to directory $1; succeeds where that is its real name, and only root can change it or a name on the way to it.
go_to() {
  case $1 in
  *[!A-Za-z0-9/._-]* | */) return 1 ;;
  /*) ;;
  *) return 1 ;;
  esac
  cd -P "$1" && [ "$(pwd -P)" = "$1" ] || return 1
  place=$1 me=$(id -u)
  while
    # shellcheck disable=SC2046
    set -- "$place" $(ls -ldn "${place:-/}")
    case $2 in
    d????w* | d???????w*) case $1,$2 in "$PWD",* | *,d????????[!tT]*) return 1 ;; esac ;;
    d*) ;;
    *) return 1 ;;
    esac
    [ "$4" = 0 ] || [ "$4" = "$me" ] || return 1
    [ -n "$place" ]
  do
    place=${place%/*}
  done
}

# Leaves a line where the node's administrator and their tools find it: in syslog and as JOBS_DIR/health-gate.
tell() {
  if command -v logger >/dev/null; then logger -t gpuwaste-health -p daemon.warning -- "$1"; fi
  (
    umask 022
    go_to "$jobs_dir" || exit
    new=.health-gate.$$
    set -C
    printf '%s\n' "$1" >"$new" && mv -fT "$new" health-gate || rm -f "$new"
  )
}

detached() {
  if command -v setsid >/dev/null; then setsid "$@"; else "$@"; fi
}

check() {
  settings && trusted "$run_dir" && cd -P "$run_dir" && trusted . || return 0
  case $mode in
  off) return 0 ;;
  suggest | drain | requeue) ;;
  *)
    tell "$file: mode is off, suggest, drain or requeue; taken for off"
    return 0
    ;;
  esac
  case $SLURM_JOB_GPUS$SLURM_JOB_ID in
  '' | *[!0-9,-]*) return 0 ;;
  esac
  case $SLURMD_NODENAME in
  '' | *[!A-Za-z0-9._-]*) return 0 ;;
  esac
  trusted health && [ -f health ] || return 0
  now=$(date +%s)
  is_number "$now" || return 0
  found=$(unusable "$SLURM_JOB_GPUS" "$now")
  [ -n "$found" ] || return 0
  set -- $found
  uuid=$1 minor=$2 cause=$5
  reason="gpuwaste: GPU $minor $uuid $cause"
  command="scontrol update nodename=$SLURMD_NODENAME state=drain reason=\"$reason\""
  case $mode in
  suggest) tell "job $SLURM_JOB_ID was given an unusable GPU; suggested: $command" ;;
  drain)
    tell "job $SLURM_JOB_ID was given an unusable GPU; done: $command"
    detached timeout 30 "$scontrol" update "nodename=$SLURMD_NODENAME" state=drain "reason=$reason" \
      </dev/null >/dev/null 2>&1 &
    ;;
  requeue)
    tell "job $SLURM_JOB_ID was given an unusable GPU and is held back; suggested: $command"
    return $SICK
    ;;
  esac
  return 0
}

if [ "$1" = check ]; then
  check
  exit
fi
[ -n "$SLURM_JOB_GPUS" ] || exit 0
# The check runs in a session of its own with its output closed: where a disk hangs it is left behind, not waited for.
{ detached "$0" check; } </dev/null >/dev/null 2>&1 & # braces: else a shell keeps a copy of the output open
checker=$!
trap 'exit 0' ALRM
{
  sleep $DEADLINE_S
  kill -ALRM $$
} </dev/null >/dev/null 2>&1 &
watchdog=$!
wait $checker
status=$?
kill $watchdog 2>/dev/null
[ $status -ne $SICK ] || exit 1
exit 0
