#!/usr/bin/env bash
# Mail servers for the tests that no package of this machine may bring: Cyrus and Courier (their Debian packages and Dovecot's exclude
# each other) in a chroot, GreenMail as one jar, and pymap in a Python environment of its own. Everything lives under TEST_MAIL_HOME
# (/var/tmp/mailroom-mail), outside the checkout, and is reused when it is there. The tests start and end servers of their own from it.
#
#   mail-servers.sh install [cyrus] [courier] [greenmail] [pymap]   installs what is missing; all when none is named
#   mail-servers.sh remove                                          removes everything
#
# Cyrus and Courier need root; debootstrap is installed when it is missing. GreenMail needs Maven to be fetched, and Java 11 or newer to run
# (Debian: maven, default-jre-headless). pymap needs Python 3.11 or newer (Debian: python3-venv).
set -euo pipefail

home=${TEST_MAIL_HOME:-/var/tmp/mailroom-mail}
root=$home/root
greenmail_version=2.1.8
greenmail=$home/greenmail-standalone.jar
pymap_version=0.36.7
pymap=$home/pymap

. "$(dirname "${BASH_SOURCE[0]}")/shell.sh"

install_cyrus() {
  if [ -e "$root/.mailroom-ready" ]; then return 0; fi
  [ "$(id -u)" = 0 ] || fail 'Cyrus needs root: it runs in a chroot'
  make_chroot trixie
  install_in_root cyrus-imapd sasl2-bin libsasl2-modules
  unmount_root
  touch "$root/.mailroom-ready"
}

download_courier() {
  in_root sh -c 'cd /tmp && apt-get download courier-imap courier-base courier-authlib courier-authdaemon courier-authlib-pipe'
}

# Beside Cyrus its packages cannot be installed, so they are unpacked.
install_courier() {
  if [ -e "$root/.courier-ready" ]; then return 0; fi
  [ "$(id -u)" = 0 ] || fail 'Courier needs root: it runs in a chroot'
  make_chroot trixie
  install_in_root libcourier-unicode8 libgdbm6t64 libidn2-0 libltdl7 libpcre2-8-0
  thrice download_courier >&2 || fail 'cannot fetch Courier'
  in_root sh -c 'for package in /tmp/courier-*.deb; do dpkg --extract "$package" / && rm "$package"; done'
  unmount_root
  touch "$root/.courier-ready"
}

install_greenmail() {
  if [ "$(cat "$greenmail.version" 2>/dev/null)" = "$greenmail_version" ]; then return 0; fi
  command -v mvn >/dev/null || fail 'GreenMail needs mvn (Debian: maven)'
  say "fetching GreenMail $greenmail_version"
  thrice mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy -Dmdep.stripVersion=true \
    "-Dartifact=com.icegreen:greenmail-standalone:$greenmail_version" "-DoutputDirectory=$home" || fail 'cannot fetch GreenMail'
  echo "$greenmail_version" >"$greenmail.version"
}

install_pymap() {
  if [ "$(cat "$pymap/version" 2>/dev/null)" = "$pymap_version" ]; then return 0; fi
  say "installing pymap $pymap_version"
  rm -rf "$pymap"
  python3 -m venv "$pymap" || fail 'pymap needs Python with venv (Debian: python3-venv)'
  thrice "$pymap/bin/pip" install --quiet --disable-pip-version-check "pymap==$pymap_version" || fail 'cannot install pymap'
  echo "$pymap_version" >"$pymap/version"
}

install() { # SERVER…
  local server
  mkdir -p "$home"
  exec 9>"$home/install.lock"
  flock 9
  for server in "$@"; do
    case $server in
      cyrus | courier | greenmail | pymap) "install_$server" ;;
      *) fail "unknown server \"$server\": cyrus, courier, greenmail or pymap" ;;
    esac
  done
  exec 9>&-
}

remove() {
  if [ -d "$root" ]; then unmount_root; fi
  remove_tree "$home"
}

command=${1:-}
shift || true
case $command in
  install)
    if [ $# = 0 ]; then set -- cyrus courier greenmail pymap; fi
    install "$@"
    ;;
  remove) remove ;;
  *) fail "unknown command \"$command\"; see the head of this file" ;;
esac
