# Checks a host before gpuwaste is installed there: sh before-install.sh [--role agent|hub|advisor|login]...
#
# One line for each check: ok, warn or fail, what was found, what to do; exit code 1 if one fails. It needs nothing but a
# POSIX shell and the host's own commands, as any user; root sees more. It changes nothing. The same checks:
# gpuwaste doctor --before-install. Options: --role (repeatable; default: all), --packages DIR (the RPMs that this host
# takes: also whether rpm would install them), --python NAME (the interpreter that the packages were built for), --fields
# (columns separated by tabs), --root DIR (look for files below DIR).
#
# What commands print is cut to 16 KiB of printable characters, and no command is waited for longer than 10 s, rpm 60 s.
LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/sbin:/sbin
set -f
roles='' python='' fields='' root='' packages='' limit=10 bad=0

while [ $# -gt 0 ]; do
  case $1 in
  --fields) fields=1 && shift && continue ;;
  --role | --python | --root | --packages) [ $# -gt 1 ] || { echo "before-install: $1 needs a value" >&2 && exit 2; } ;;
  *) echo "before-install: unknown option $1: see the head of this file" >&2 && exit 2 ;;
  esac
  case $1=$2 in
  --role=agent | --role=hub | --role=advisor | --role=login) roles="$roles $2" ;;
  --role=*) echo "before-install: --role $2: expected agent, hub, advisor or login" >&2 && exit 2 ;;
  --python=*) python=$2 ;;
  --root=*) root=$2 ;;
  --packages=*) packages=$2 ;;
  esac
  shift 2
done
[ -n "$roles" ] || roles="agent hub advisor login"

line() {
  [ "$1" != fail ] || bad=1
  if [ -n "$fields" ]; then
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4"
  else
    printf '%-5s%-13s%s%s\n' "$1" "$2" "$3" "${4:+: $4}"
  fi
}
ok() { line ok "$1" "$2" ''; }
warn() { line warn "$1" "$2" "$3"; }
fail() { line fail "$1" "$2" "$3"; }

wants() { case " $roles " in *" $1 "*) return 0 ;; esac && return 1; }
have() { command -v "$1" >/dev/null 2>&1; }
clean() { head -c 16384 | tr -cd '\12\40-\176' 2>/dev/null; } # its reader may have enough before the end
content() { [ ! -r "$root$1" ] || clean <"$root$1"; }
bounded() { if have timeout; then timeout -k 1 "$limit" "$@"; else "$@"; fi; }
ask() { bounded "$@" 2>/dev/null </dev/null | clean; }
first() { head -n 1 | cut -c 1-100; }
setting() { sed -n "s/^$1[ ]*=[ ]*//p" | tr -d '"' | first; }
# Is the version $1 at least $2? By their first two numbers; a text without numbers is version 0.
at_least() {
  printf '%s %s\n' "$1" "$2" | awk '{split($1, a, "."); split($2, b, "."); exit !(a[1]+0 > b[1]+0 || (a[1]+0 == b[1]+0 && a[2]+0 >= b[2]+0))}'
}

system() {
  release=$(content /etc/os-release)
  id=$(printf '%s\n' "$release" | setting ID)
  version=$(printf '%s\n' "$release" | setting VERSION_ID)
  case " $id $(printf '%s\n' "$release" | setting ID_LIKE) " in *' rhel '* | *' fedora '*) el=${version%%.*} ;; *) el= ;; esac
  machine=$(ask uname -m | first)
  found="${id:-unknown} ${version:-unknown}, $machine"
  case $machine in
  x86_64 | aarch64) ;;
  *) fail system "$found" "there are packages for x86_64 and aarch64 only" && return ;;
  esac
  case $el:$id:$version in
  8:* | 9:* | 10:*) warn system "$found" "packages are built for it, but were never installed on it: report what you see" ;;
  :debian:12) ok system "$found" ;;
  :debian:13 | :ubuntu:24.04) warn system "$found" "packages are built for it, with fewer tests than Debian 12" ;;
  *) warn system "$found" "not a release that packages are built for (Enterprise Linux 8 to 10, Debian 12 and 13, Ubuntu 24.04)" ;;
  esac
}

interpreter() {
  if [ -z "$python" ]; then
    case $el:$id:$version in
    *:debian:12) python=python3.11 ;;
    *:debian:13) python=python3.13 ;;
    *) python=python3.12 ;;
    esac
  fi
  if ! have "$python"; then
    warn python "no $python here" "the packages require it: is it in a repository of this host?"
    return
  fi
  needed='import bz2, ctypes, lzma, sqlite3, ssl, zlib, zoneinfo, sys; print("%d.%d.%d" % sys.version_info[:3])'
  found=$(ask "$python" -I -c "$needed" | first)
  if [ -n "$found" ]; then
    ok python "$python is $found"
  else
    fail python "$python cannot import bz2, ctypes, lzma, sqlite3, ssl, zlib or zoneinfo" "install its whole standard library"
  fi
}

libc() {
  found=$(ask getconf GNU_LIBC_VERSION | first)
  case $found in
  'glibc '*) ;;
  *) fail glibc "no glibc" "the packages need glibc 2.28 or later" && return ;;
  esac
  if at_least "${found#glibc }" 2.28; then
    ok glibc "$found"
  else
    fail glibc "$found" "the packages need 2.28 or later"
  fi
}

rpm_features() {
  have rpm && [ -n "$el" ] || return 0
  found=$(ask rpm --version | first)
  if ask rpm --showrc | grep -q 'rpmlib(PayloadIsZstd)'; then
    ok rpm "$found reads packages compressed with zstd"
  else
    fail rpm "$found does not read packages compressed with zstd" "build them with --define 'gpuwaste_payload w7.xzdio'"
  fi
}

service_manager() {
  if [ ! -d "$root/run/systemd/system" ]; then
    warn systemd "not running" "the services are units of systemd: start the daemons in your own way"
    return
  fi
  found=$(ask systemctl --version | first)
  number=$(printf '%s' "$found" | sed -n 's/^systemd \([0-9]*\).*/\1/p')
  if at_least "${number:-0}" 239; then
    ok systemd "systemd $number"
  else
    warn systemd "${found:-unknown version}" "the units are written for systemd 239 and later"
  fi
}

# The packages create the users with fixed ids unless a line "u NAME UID" in /etc/sysusers.d says otherwise.
users() {
  for pair in gpuwaste:463 gpuwaste-actor:464; do
    name=${pair%:*} uid=${pair#*:}
    said=$(sed -n "s/^u[!]*[[:space:]]\{1,\}${name}[[:space:]]\{1,\}\([0-9]\{1,\}\).*/\1/p" "$root/etc/sysusers.d/$name.conf" 2>/dev/null | first)
    uid=${said:-$uid}
    entry=$(ask getent passwd "$name" | first)
    taken=$(ask getent passwd "$uid" | first)
    [ -n "$taken" ] || taken=$(ask getent group "$uid" | first)
    if [ -n "$entry" ]; then
      uid=$(printf '%s' "$entry" | cut -d : -f 3)
      ok user "$name exists with uid $uid"
    elif [ -z "$taken" ]; then
      ok user "$name will get uid $uid, which is free here"
    else
      fail user "uid or gid $uid of $name belongs to ${taken%%:*}" "write u $name UID with a free one to /etc/sysusers.d/$name.conf on all hosts"
    fi
  done
}

selinux() {
  mode=$(ask getenforce | first)
  case $mode in
  Enforcing | Permissive) ;;
  Disabled) ok selinux "disabled" && return ;;
  *) ok selinux "not on this host" && return ;;
  esac
  policy=$(ask sestatus | sed -n 's/^Loaded policy name: *//p' | first)
  if [ "$mode" = Permissive ]; then
    warn selinux "permissive, policy ${policy:-unknown}" "denials are only logged (ausearch -m avc); see docs/how-to/selinux.md"
  elif [ "$policy" = targeted ]; then
    warn selinux "enforcing, policy targeted" "expected to work without a module, but never tried; see docs/how-to/selinux.md"
  else
    warn selinux "enforcing, policy ${policy:-unknown}" "only the policy targeted lets services without a module run unconfined; see docs/how-to/selinux.md"
  fi
  set --
  for path in /etc/gpuwaste /usr/bin/gpuwaste /usr/lib/gpuwaste /usr/libexec/gpuwaste /var/lib/gpuwaste /run/gpuwaste /run/gpuwaste-jobs; do
    [ ! -e "$root$path" ] || set -- "$@" "$root$path"
  done
  if ! have restorecon; then
    warn labels "no restorecon" "install policycoreutils, to check and set labels of files"
  elif [ $# -eq 0 ]; then
    ok labels "no file of gpuwaste yet; run this again after the installation"
  else
    wrong=$(ask restorecon -nrv "$@" | grep -c '^Would relabel')
    if [ "$wrong" -eq 0 ]; then
      ok labels "files of gpuwaste have the labels of the policy"
    else
      warn labels "$wrong files of gpuwaste have other labels than the policy's" "restorecon -rv $*"
    fi
  fi
  ask ps -eo label=,comm= | awk '$2 ~ /^(slurmctld|slurmd|munged|gpuwaste)$/ && !seen[$1 $2]++ && n++ < 8 {print $2, $1}' | while read -r name label; do
    case $label in
    *:unconfined_service_t:* | *:unconfined_t:*) ok domain "$name runs unconfined" ;;
    *) warn domain "$name runs as $label" "does its policy let it connect to sockets in /run/gpuwaste and read /run/gpuwaste-jobs?" ;;
    esac
  done
}

fapolicy() {
  [ "$(ask systemctl is-active fapolicyd | first)" = active ] || return 0
  warn fapolicyd "active" "it trusts files of RPMs only: install the packages, not a copy or pip; run fapolicyd-cli --update after it"
}

crypto() {
  policy=$(ask update-crypto-policies --show | first)
  fips=$(content /proc/sys/crypto/fips_enabled | first)
  case $fips:$policy in
  1:*) warn crypto "FIPS mode, policy ${policy:-unknown}" "never tried: see docs/how-to/selinux.md" ;;
  *:FIPS*) warn crypto "policy $policy, but the kernel is not in FIPS mode" "fips-mode-setup --check" ;;
  *:FUTURE*) warn crypto "policy $policy" "certificates of hub and brokers need RSA keys of 3072 bits or more" ;;
  *:) ok crypto "no system-wide policy" ;;
  *) ok crypto "policy $policy" ;;
  esac
}

firewall() {
  if [ "$(ask firewall-cmd --state | first)" != running ]; then
    ok firewall "firewalld does not run; other packet filters are not checked"
    return
  fi
  for pair in hub:9461 agent:9460; do
    ! wants "${pair%:*}" || port "${pair%:*}" "${pair#*:}"
  done
}

port() {
  if [ "$(ask firewall-cmd --query-port="$2/tcp" | first)" = yes ]; then
    ok firewall "port $2/tcp ($1) is open"
  else
    warn firewall "port $2/tcp ($1) is closed" "if other hosts connect to it: firewall-cmd --permanent --add-port=$2/tcp && firewall-cmd --reload"
  fi
}

credentials() {
  if ! have munge || ! have unmunge; then
    warn munge "no munge here" "install and start it; or use a token for each node (docs/how-to/cluster.md)"
    return
  fi
  found=$(ask sh -c 'munge -n | unmunge')
  result=$(printf '%s\n' "$found" | sed -n 's/^STATUS: *//p' | first)
  address=$(printf '%s\n' "$found" | sed -n 's/^ENCODE_HOST:.*(\([0-9a-fA-F.:]*\)).*/\1/p' | first)
  case $result:$address in
  Success*:127.0.1.*) warn munge "credentials work, but have the address $address" "the hub refuses them from other hosts: give the host its real address in /etc/hosts" ;;
  Success*) ok munge "credentials work, address ${address:-unknown}" ;;
  *) fail munge "credentials do not work: ${result:-no answer}" "start munged; the key is the same on all hosts" ;;
  esac
}

slurm() {
  if ! have scontrol; then
    warn slurm "no scontrol on PATH" "set PATH of Slurm's commands in /etc/gpuwaste/environment"
    return
  fi
  # Without a configuration scontrol does not even tell its version; the daemons do.
  for command in 'scontrol --version' 'slurmd -V' 'slurmctld -V'; do
    # shellcheck disable=SC2086
    number=$(ask $command | sed -n 's/^slurm[a-z-]* \([0-9][0-9.]*\).*/\1/p' | first)
    [ -z "$number" ] || break
  done
  found="Slurm ${number:-of an unknown version}"
  if at_least "$number" 22.05 && ! at_least "$number" 26.06; then
    ok slurm "$found"
  else
    warn slurm "$found" "tested with Slurm 22.05 to 26.05"
  fi
  owner
  config=$(ask scontrol show config)
  kind=$(printf '%s\n' "$config" | setting AccountingStorageType)
  folder=$(printf '%s\n' "$config" | setting PluginDir)
  if [ -z "$folder" ]; then
    warn slurm "slurmctld does not answer" "run this again when it does: accounting and PluginDir are not checked"
    return
  fi
  ! wants hub || accounting
  ! wants advisor || plugins
}

# The package of the plugins requires the package of Slurm in exactly its version.
owner() {
  wants advisor && have rpm && [ -n "$el" ] || return 0
  package=$(ask rpm -qf --qf '%{NAME} %{VERSION}\n' "$(command -v scontrol)" | first)
  case $package in
  "slurm $number") ok package "Slurm is the package $package" ;;
  *' '"$number") warn package "Slurm is the package $package" "build gpuwaste-slurm-plugin with --define 'slurm_requires ${package% *}'" ;;
  *) warn package "no package owns scontrol in version $number" "gpuwaste-slurm-plugin requires one: install it with --nodeps, or the plugin by hand" ;;
  esac
}

accounting() {
  gpus=$(printf '%s\n' "$config" | setting AccountingStorageTRES)
  case $kind:,$gpus, in
  *slurmdbd*:*,gres/gpu,*) ok accounting "slurmdbd, with gres/gpu" ;;
  *slurmdbd*) warn accounting "AccountingStorageTRES has no gres/gpu" "add it to slurm.conf: GPUs of jobs are unknown without it" ;;
  *) fail accounting "AccountingStorageType is ${kind:-unknown}" "the hub reads jobs from slurmdbd" ;;
  esac
}

plugins() {
  for one in $(printf '%s' "$folder" | tr ':' ' '); do
    [ -d "$root$one" ] || continue
    if [ -z "$el" ] || [ "$one" = /usr/lib64/slurm ]; then
      ok plugindir "$one"
    else
      warn plugindir "$one" "build gpuwaste-slurm-plugin with --define 'slurm_plugindir $one'"
    fi
    return
  done
  fail plugindir "$folder is not a directory here" "run this on the hosts of slurmctld"
}

gpus() {
  wants agent || return 0
  if ask ldconfig -p | grep -q 'libnvidia-ml\.so\.1'; then
    ok nvml "libnvidia-ml.so.1 is installed"
  else
    warn nvml "no libnvidia-ml.so.1" "on a node with NVIDIA GPUs: install the driver; elsewhere: nothing to do"
  fi
  case $(ask stat -f -c %T "$root/sys/fs/cgroup" | first) in
  cgroup2fs) ok cgroup "version 2" ;;
  tmpfs) ok cgroup "version 1 or hybrid" ;;
  *) warn cgroup "no cgroup filesystem in /sys/fs/cgroup" "jobs are attributed by fewer sources" ;;
  esac
}

clock() {
  case $(ask timedatectl show -p NTPSynchronized --value | first) in
  yes) ok clock "synchronised" ;;
  no) warn clock "not synchronised" "start chronyd: credentials are valid for minutes only" ;;
  *) warn clock "unknown" "check that chronyd runs: credentials are valid for minutes only" ;;
  esac
}

# Free space where packages and state go; the figures are those of a host with all packages.
disk() {
  for pair in /usr:1 /var/lib:2; do
    free=$(ask df -Pk "$root${pair%:*}" | awk 'NR == 2 && $4 ~ /^[0-9]+$/ {print int($4 / 1048576)}')
    if [ "${free:-0}" -ge "${pair#*:}" ]; then
      ok disk "${pair%:*}: $free GiB free"
    else
      warn disk "${pair%:*}: ${free:-unknown} GiB free" "the packages and the state of a host need ${pair#*:} GiB or more there"
    fi
  done
}

# Whether rpm would install the packages: a test of the transaction, which changes nothing.
requirements() {
  [ -n "$packages" ] || return 0
  set +f
  set -- "$packages"/gpuwaste*.rpm
  set -f
  if [ ! -e "$1" ]; then
    fail requires "no gpuwaste*.rpm in $packages" "name the directory with the packages that this host takes"
    return
  fi
  limit=60
  result=$({ bounded rpm -U --test --nosignature "$@" 2>&1 </dev/null && echo "done" || echo "error: rpm ended"; } | clean)
  needs=$(printf '%s\n' "$result" | sed -n 's/^ *\(.*\) is needed by .*/\1/p' | sort -u | head -n 40)
  problem=$(printf '%s\n' "$result" | sed -n 's/^error: *//p' | first)
  case $needs:$problem:$result in
  ::*done) ok requires "rpm would install $# packages: this host has all that they require" && return ;;
  :*) warn requires "rpm cannot test it: $problem" "run this as root, with the packages of one version" && return ;;
  esac
  while read -r need; do
    case $need in
    'rpmlib('*) fail requires "$need is missing" "the packages need a newer rpm" ;;
    'libc.so'* | 'rtld('*) fail requires "$need is missing" "build gpuwaste-slurm-plugin on this release of the system" ;;
    'gpuwaste'*) fail requires "$need is missing" "it is one of the packages: put it into $packages" ;;
    *) warn requires "$need is missing" "dnf installs it if a repository of this host has it: dnf provides '$need'" ;;
    esac
  done <<END
$needs
END
}

system
interpreter
libc
rpm_features
service_manager
users
selinux
fapolicy
crypto
firewall
credentials
slurm
gpus
clock
disk
requirements
exit $bad
