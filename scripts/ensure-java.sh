#!/usr/bin/env bash
# Find Java 17 or newer, or install it, and print its home on stdout; everything else goes to stderr.
# Looked for in JAVA_HOME, on PATH, and where Linux distributions put it. Exit 1, with what to do, where there is none.
set -euo pipefail

wanted=17
# A test's stand-in for the folder that distributions install Java in.
installed=${TRIMTAB_JVM_DIR:-/usr/lib/jvm}

say() { echo "ensure-java: $*" >&2; }

# The home of a java command that is new enough. Java is asked itself, since the command may be a link or a wrapper.
home_of() {
  local settings version
  settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
  version=$(sed -n 's/^ *java\.specification\.version = \([0-9]*\).*/\1/p' <<<"$settings") # "1.8" is older still
  [ "${version:-0}" -ge "$wanted" ] && sed -n 's/^ *java\.home = //p' <<<"$settings"
}

find_java() {
  local java
  for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" "$installed"/*/bin/java; do
    if [ -x "$java" ] && home_of "$java"; then
      return
    fi
  done
  return 1
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo -n "$@"
  fi
}

may_install() {
  command -v apt-get >/dev/null || return 1
  [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

# Newer Debian releases have no 17 any more.
install_java() {
  local package
  as_root apt-get update -q >&2 || say "apt-get update failed; trying with the package lists at hand."
  for package in openjdk-17-jre-headless openjdk-21-jre-headless; do
    say "installing $package"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package" >&2 && return
  done
  return 1
}

find_java && exit
say "no Java $wanted or newer in JAVA_HOME, on PATH or under $installed."
if may_install; then
  install_java && find_java && exit
  say "the installation failed; see above."
fi
say "Spark needs Java $wanted or newer. Install it (Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless;" \
  "Fedora: sudo dnf install java-17-openjdk-headless), or set JAVA_HOME to where it is, and run this again."
exit 1
