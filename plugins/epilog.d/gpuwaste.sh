#!/bin/sh
# Leaves RUN_DIR/jobs/JOBID.end for the gpuwaste agent; the file's own time is the time of the event.
# The agent works without it; with it the end is known to the millisecond.
#
# It can neither delay nor fail a job: the work is done in a session of its own, in the background and with its output
# closed, so that slurmd does not wait for it and does not end it with the epilog; the exit status is always 0.
LC_ALL=C
export LC_ALL
unset IFS

# Prints the value if it consists of the allowed characters alone, else nothing.
safe() {
  case $1 in
  *[!0-9,-]*) ;;
  *) printf %s "$1" ;;
  esac
}

# Succeeds for a directory, no link, of root or the agent, that nobody else may write to.
trusted() {
  [ -d "$1" ] && [ ! -L "$1" ] || return 1
  # shellcheck disable=SC2046
  set -- $(ls -ldn "$1")
  case $1 in
  d????w* | d???????w*) return 1 ;;
  esac
  [ "$3" = 0 ] || [ "$3" = "$(id -u "${GPUWASTE_USER:-gpuwaste}")" ]
}

write() {
  umask 022
  job=$SLURM_JOB_ID
  case $job in
  '' | *[!0-9]* | ???????????*) return ;;
  esac
  run=${GPUWASTE_RUN_DIR:-/run/gpuwaste}
  trusted "$run" && trusted "$run/jobs" || return
  file=$run/jobs/$job.end
  new=$run/jobs/.$job.end.$$
  set -C
  printf 'job=%s\nrestarts=%s\n' "$job" "$(safe "$SLURM_JOB_RESTART_COUNT")" >"$new" && mv -fT "$new" "$file" || rm -f "$new"
}

if [ "$1" = write ]; then
  write &
elif command -v setsid >/dev/null; then
  setsid "$0" write
else
  write &
fi </dev/null >/dev/null 2>&1
exit 0
