# Functions to install Debian and PyPI packages; sourced by ./check and scripts/install-mpi.
#
# Another process may hold apt's locks: these functions wait for it, at most `package_wait` seconds, instead of failing.

package_wait=${FERRIER_PACKAGE_WAIT:-300}
package_pause=3

is_debian_root() { [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null 2>&1; }

# apt LOG WORDS...: apt-get, waiting for dpkg's lock (an option of apt) and for those of the lists and the archives
# (apt has no option for them: run again while its message says that a lock is held).
apt() {
  local log=$1 until=$((SECONDS + package_wait)) code
  shift
  while :; do
    DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o "DPkg::Lock::Timeout=$package_wait" "$@" >"$log.part" 2>&1
    code=$?
    cat "$log.part" >>"$log"
    if ((code != 0 && SECONDS < until)) &&
      grep -qE 'Could not (get|open) lock|Unable to (acquire|lock)|is another process using it' "$log.part"; then
      echo "waiting for another package manager" >>"$log"
      sleep "$package_pause"
      continue
    fi
    rm -f "$log.part"
    return $code
  done
}

# apt_install LOG PACKAGE...
apt_install() {
  local log=$1
  shift
  : >"$log"
  apt "$log" install -y --no-install-recommends "$@" ||
    { apt "$log" update && apt "$log" install -y --no-install-recommends "$@"; }
}

# pip_install LOG VENV PACKAGE...: makes the environment if need be; one process at a time works on it.
pip_install() {
  local log=$1 venv=$2
  shift 2
  mkdir -p "$(dirname "$venv")"
  (
    flock -w "$package_wait" 9 || { echo "$venv is locked by another process"; exit 1; }
    [[ -x $venv/bin/pip ]] || python3 -m venv "$venv" || exit 1
    "$venv/bin/pip" install --disable-pip-version-check --retries 5 "$@"
  ) >"$log" 2>&1 9>"$venv.lock"
}
