# Shared by the scripts that set up services for tests: to be sourced by bash. Progress goes to stderr. What makes a chroot, or works
# in it, takes its directory from $root.

say() { echo "$(basename "$0"): $*" >&2; }
fail() { say "$*"; exit 1; }

# The sum of what test/run.ts added to this file, in the words of Node's own report.
show_counts() {
  local word
  for word in tests pass fail skipped; do
    awk -v word="$word" '$1 == word { sum += $2 } END { print "ℹ", word, sum + 0 }' "$1"
  done
}

# The network of a shared machine fails now and then.
thrice() {
  local try
  for try in 1 2 3; do
    if "$@"; then return 0; fi
    say "try $try of 3 failed: $*"
    sleep $((try * 4))
  done
  return 1
}

in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"; }

# /dev is read-only: rm of the chroot by hand would remove the devices of this machine.
mount_root() {
  mountpoint -q "$root/proc" || mount --bind /proc "$root/proc"
  mountpoint -q "$root/dev" || mount --bind -o ro /dev "$root/dev"
}

unmount_root() {
  local dir
  for dir in "$root/dev" "$root/proc"; do
    if mountpoint -q "$dir"; then umount "$dir" || fail "cannot unmount $dir"; fi
  done
}

# Never into a mounted /proc or /dev: rm would follow them.
remove_tree() {
  if grep -q " $1/" /proc/self/mounts; then fail "$1 has mounts in it; not removing"; fi
  rm -rf --one-file-system "$1"
}

mirror() {
  local found
  found=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -1)
  if [ -z "$found" ]; then
    found=$(sed -n 's/^deb \(\[[^]]*\] \)\?\(http[^ ]*\).*/\2/p' /etc/apt/sources.list 2>/dev/null | head -1)
  fi
  echo "${found:-http://deb.debian.org/debian}"
}

bootstrap_once() { # SUITE
  remove_tree "$root.partial"
  debootstrap --variant=minbase "$1" "$root.partial" "$(mirror)"
}

make_chroot() { # SUITE: a minimal Debian in $root, in which nothing starts while packages are set up
  if ! command -v debootstrap >/dev/null; then
    thrice apt-get update >&2
    thrice apt-get install -y --no-install-recommends debootstrap >&2 || fail 'cannot install debootstrap'
  fi
  if [ ! -d "$root" ]; then
    say "building the chroot in $root"
    thrice bootstrap_once "$1" >&2 || fail 'debootstrap failed three times'
    mv "$root.partial" "$root"
  fi
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod 755 "$root/usr/sbin/policy-rc.d"
}

install_once() { in_root apt-get update && in_root apt-get install -y --no-install-recommends "$@"; }

install_in_root() { # PACKAGE…
  say "installing $*"
  mount_root
  thrice install_once "$@" >&2 || fail "cannot install $*"
}
