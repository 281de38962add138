#!/bin/sh
# Leaves JOBS_DIR/JOBID.end for the gpuwaste agent; the file's own time is the time of the event. The agent works without
# it; with it the end is known to the millisecond. Then it removes what runs left that ended more than ten minutes ago.
#
# JOBS_DIR is /run/gpuwaste-jobs unless GPUWASTE_JOBS_DIR names another: a directory that root alone can change, so that
# no other user, gpuwaste included, can put a link, a pipe or a device in the place of what root writes.
#
# It can neither delay nor fail a job: the work is done in a session of its own, in the background and with its output
# closed, so that slurmd does not wait for it and does not end it with the epilog; the exit status is always 0.
LC_ALL=C
export LC_ALL
unset IFS CDPATH

# Prints the value if it consists of the allowed characters alone, else nothing.
safe() {
  case $1 in
  *[!0-9,-]*) ;;
  *) printf %s "$1" ;;
  esac
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

# Removes the pairs of old runs, for whose end an agent that restarts may have looked, and files that nobody finished.
sweep() {
  find . -maxdepth 1 -type f -name '[0-9]*.end' -mmin +10 | head -n 10000 | while read -r end; do
    start=${end%.end}.start
    [ "$start" -nt "$end" ] || rm -f "$start" # a newer start is of a run that goes on
    rm -f "$end"
  done
  find . -maxdepth 1 -type f -name '.[0-9]*' -mmin +1440 -exec rm -f {} +
}

write() {
  umask 022
  job=$SLURM_JOB_ID
  case $job in
  '' | *[!0-9]* | ???????????*) return ;;
  esac
  go_to "${GPUWASTE_JOBS_DIR:-/run/gpuwaste-jobs}" || return
  new=.$job.end.$$
  set -C
  printf 'job=%s\nrestarts=%s\n' "$job" "$(safe "$SLURM_JOB_RESTART_COUNT")" >"$new" && mv -fT "$new" "$job.end" || rm -f "$new"
  sweep
}

if [ "$1" = write ]; then
  write &
elif command -v setsid >/dev/null; then
  setsid "$0" write
else
  write &
fi </dev/null >/dev/null 2>&1
exit 0
