#!/usr/bin/env bash
# A database that speaks MongoDB's protocol, for tests, developers and the bench: Debian sid's postgresql-18-documentdb in a
# chroot, with FerretDB in front. Everything lives under TEST_MONGO_HOME (/var/tmp/mailroom-mongo), outside the checkout,
# and is reused when it is there. Needs root, and Node in the PATH; debootstrap is installed when it is missing. FerretDB is
# built by the Go of this machine when that is 1.21 or newer (such a one fetches the toolchain that it needs), else by sid's.
#
#   mongo.sh [start] [NAME]   installs what is missing, starts instance NAME (default: main), prints its URI; runs already: prints it
#   mongo.sh uri [NAME]       prints the URI of a running instance; fails when it does not run: who starts one, stops it
#   mongo.sh stop [NAME]      ends both processes
#   mongo.sh kill-db [NAME]   kill -9 of the database and its front, as a crash does
#   mongo.sh drop [NAME]      stops the instance and removes its data
#   mongo.sh install          downloads and builds only
#   mongo.sh remove           stops all instances, unmounts, removes everything
#
# The URI is the only line on stdout; progress goes to stderr.
set -euo pipefail

home=${TEST_MONGO_HOME:-/var/tmp/mailroom-mongo}
root=$home/root
ferret=$home/bin/ferretdb
ferret_version=v2.7.0
ferret_source=github.com/FerretDB/FerretDB/v2/cmd/ferretdb@$ferret_version
pg=/usr/lib/postgresql/18/bin

. "$(dirname "${BASH_SOURCE[0]}")/shell.sh"

as_postgres() {
  chroot --userspec=postgres:postgres "$root" /usr/bin/env -i PATH="$pg:/usr/bin:/bin" LC_ALL=C HOME=/tmp "$@"
}

install_database() {
  if [ -e "$root/.mailroom-ready" ]; then return 0; fi
  make_chroot sid
  mkdir -p "$root/etc/postgresql-common"
  echo 'create_main_cluster = false' >"$root/etc/postgresql-common/createcluster.conf"
  install_in_root postgresql-18-documentdb
  touch "$root/.mailroom-ready"
}

# Older ones neither build FerretDB nor fetch a Go that does.
has_go() {
  local minor
  minor=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p') || true
  [ "${minor:-0}" -ge 21 ]
}

build_here() {
  mkdir -p "$home/build"
  thrice env GOTOOLCHAIN=auto GOBIN="$home/build" go install "$ferret_source" >&2 || fail 'FerretDB could not be built'
}

# What of this machine's environment leads to modules.
go_in_root() {
  local setting settings=()
  for setting in GOPROXY GOSUMDB GONOSUMDB https_proxy HTTPS_PROXY no_proxy NO_PROXY; do
    if [ -n "${!setting:-}" ]; then settings+=("$setting=${!setting}"); fi
  done
  in_root HOME=/root "${settings[@]}" GOPATH=/var/tmp/go GOCACHE=/var/tmp/go/cache GOFLAGS=-modcacherw \
    GOTOOLCHAIN=auto GOBIN=/var/tmp/go/bin go "$@"
}

build_in_root() {
  install_in_root golang-go ca-certificates
  # an authority that this machine trusts beside the public ones
  if [ -s /etc/ssl/certs/ca-certificates.crt ]; then cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"; fi
  thrice go_in_root install "$ferret_source" >&2 || fail 'FerretDB could not be built'
  mkdir -p "$home/build"
  mv "$root/var/tmp/go/bin/ferretdb" "$home/build/"
  rm -rf --one-file-system "$root/var/tmp/go"
  in_root apt-get purge -y --auto-remove golang-go >&2 || say 'Go stays in the chroot'
}

finish_front() {
  mkdir -p "$home/bin"
  mv "$home/build/ferretdb" "$ferret"
}

install_all() {
  [ "$(id -u)" = 0 ] || fail 'needs root: the database runs in a chroot'
  command -v node >/dev/null || fail 'needs Node in the PATH'
  mkdir -p "$home"
  exec 9>"$home/install.lock"
  flock 9
  local front=
  if [ ! -x "$ferret" ] && has_go; then
    say "building FerretDB $ferret_version"
    build_here & front=$!
  fi
  install_database
  if [ -n "$front" ]; then wait "$front" || fail 'no FerretDB'; fi
  if [ ! -x "$ferret" ] && [ -z "$front" ]; then
    say "building FerretDB $ferret_version in the chroot: no Go here, or one older than 1.21"
    mount_root
    build_in_root
  fi
  if [ ! -x "$ferret" ]; then finish_front; fi
  exec 9>&-
}

# The port lies below those of outgoing connections: tests open thousands, and one of them would take a higher port.
free_port() {
  node -e "
    const choose = () => require('net').createServer().on('error', choose).listen(20000 + Math.floor(Math.random() * 12768),
      '127.0.0.1', function () { console.log(this.address().port); this.close() })
    choose()"
}

port_of() { # a port stays the same over restarts, so that clients find their server again
  local file=$state/$1.port
  [ -s "$file" ] || free_port >"$file"
  cat "$file"
}

alive() { # PID-FILE WORD: that process runs and is what we started
  local pid
  pid=$(head -1 "$1" 2>/dev/null || true)
  [ -n "$pid" ] && { tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q "$2"; } 2>/dev/null
}

set_instance() {
  name=$1
  [[ $name =~ ^[a-z0-9-]+$ ]] || fail "instance name: lower-case letters, digits and hyphens, got \"$name\""
  state=$home/instances/$name
  data=/var/lib/mailroom/$name
  pg_pid=$root$data/postmaster.pid
  front_pid=$state/ferretdb.pid
}

uri() { echo "mongodb://127.0.0.1:$(port_of mongo)/?directConnection=true"; }

# A process that is killed loses nothing without fsync, and a test's data need not outlive the machine.
write_settings() {
  cat >>"$root$data/postgresql.conf" <<SETTINGS
listen_addresses = '127.0.0.1'
port = $1
unix_socket_directories = '/tmp'
max_connections = 200
shared_buffers = 256MB
dynamic_shared_memory_type = mmap
max_wal_size = 2GB
fsync = off
shared_preload_libraries = 'pg_cron,pg_documentdb_core,pg_documentdb'
cron.database_name = 'postgres'
SETTINGS
}

start_database() {
  if alive "$pg_pid" postgres; then return 0; fi
  mount_root
  local port
  port=$(port_of postgres)
  if [ ! -e "$root$data/.initialised" ]; then
    rm -rf "${root:?}$data"
    install -d -m 755 "$root/var/lib/mailroom"
    install -d -m 700 -o "$(in_root id -u postgres)" -g "$(in_root id -g postgres)" "$root$data"
    as_postgres initdb --auth=trust -D "$data" >"$state/initdb.log" 2>&1 || fail "initdb failed: $state/initdb.log"
    write_settings "$port"
  fi
  as_postgres pg_ctl -w -t 60 -D "$data" -l "$data/server.log" start >"$state/pg_ctl.log" 2>&1 9>&- ||
    fail "the database does not start: $(tail -20 "$root$data/server.log")"
  if [ ! -e "$root$data/.initialised" ]; then
    as_postgres psql -h 127.0.0.1 -p "$port" -d postgres -qc 'CREATE EXTENSION documentdb CASCADE' >&2
    touch "$root$data/.initialised"
  fi
}

start_front() {
  if alive "$front_pid" ferretdb; then return 0; fi
  # before the fork: it would choose ports of its own
  local postgres mongo debug
  postgres=$(port_of postgres)
  mongo=$(port_of mongo)
  debug=$(port_of debug)
  FERRETDB_POSTGRESQL_URL="postgres://postgres@127.0.0.1:$postgres/postgres" \
    FERRETDB_LISTEN_ADDR="127.0.0.1:$mongo" FERRETDB_DEBUG_ADDR="127.0.0.1:$debug" \
    FERRETDB_AUTH=false FERRETDB_TELEMETRY=disable FERRETDB_STATE_DIR="$state" FERRETDB_LOG_LEVEL=warn \
    setsid "$ferret" >"$state/ferretdb.log" 2>&1 </dev/null 9>&- &
  echo $! >"$front_pid"
}

wait_for_front() {
  local deadline=$((SECONDS + ${TEST_MONGO_WAIT:-60}))
  until (exec 3<>"/dev/tcp/127.0.0.1/$(port_of mongo)") 2>/dev/null; do
    kill -0 "$(cat "$front_pid")" 2>/dev/null || fail "FerretDB ended: $(tail -20 "$state/ferretdb.log")"
    [ "$SECONDS" -lt "$deadline" ] || fail "FerretDB does not listen: $state/ferretdb.log"
    sleep 0.1
  done
}

lock_instance() {
  mkdir -p "$state"
  exec 9>"$state/lock"
  flock 9
}

start() {
  install_all
  lock_instance
  start_database
  start_front
  wait_for_front
  uri
}

ended() { # a zombie has ended: who reaps it is another's business
  case $(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) in
    '' | Z | X) return 0 ;;
    *) return 1 ;;
  esac
}

wait_ended() {
  local deadline=$((SECONDS + 30))
  until ended "$1"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "process $1 does not end"
    sleep 0.02
  done
}

stop() {
  lock_instance
  if alive "$front_pid" ferretdb; then
    kill -TERM "$(cat "$front_pid")"
    wait_ended "$(cat "$front_pid")"
  fi
  if alive "$pg_pid" postgres; then as_postgres pg_ctl -w -m fast -D "$data" stop >&2; fi
  rm -f "$front_pid"
}

# The processes of this instance, by the ids that it wrote down; backends are the postmaster's children.
kill_db() {
  lock_instance
  local pids=() pid
  if alive "$pg_pid" postgres; then
    pid=$(head -1 "$pg_pid")
    read -ra pids <"/proc/$pid/task/$pid/children" || true
    pids=("$pid" "${pids[@]}")
  fi
  if alive "$front_pid" ferretdb; then pids+=("$(cat "$front_pid")"); fi
  if [ ${#pids[@]} -gt 0 ]; then kill -KILL "${pids[@]}" 2>/dev/null || true; fi
  for pid in "${pids[@]}"; do wait_ended "$pid"; done
  # all have ended, but a zombie's id in a lock file would count as another server that runs
  rm -f "$front_pid" "$pg_pid" "$root/tmp/.s.PGSQL.$(port_of postgres)"{,.lock}
}

drop() {
  stop
  rm -rf --one-file-system "${root:?}$data" "$state"
}

remove() {
  local dir
  for dir in "$home"/instances/*/; do
    if [ -d "$dir" ]; then set_instance "$(basename "$dir")"; stop; fi
  done
  unmount_root
  remove_tree "$home"
}

set_instance "${2:-main}"
case "${1:-start}" in
  start) start ;;
  uri)
    if ! alive "$pg_pid" postgres || ! alive "$front_pid" ferretdb; then fail "instance $name does not run"; fi
    uri
    ;;
  stop) stop ;;
  kill-db) kill_db ;;
  drop) drop ;;
  install) install_all ;;
  remove) remove ;;
  *) fail "unknown command \"$1\"; see the head of this file" ;;
esac
