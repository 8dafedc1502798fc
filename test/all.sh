#!/usr/bin/env bash
# `npm run test:all`: what `npm test` leaves out. Tests that take long or need other servers, the whole service on MongoDB, what mail
# servers, tenants and strangers may try, the API along its own document, the demo, two minutes of faults, nodes that fail, and a minute of
# everything at once.
# Needs Dovecot, Cyrus, Courier, GreenMail, Chromium and a MongoDB (MONGODB_URI, or one of its own is started; that needs root).
set -euo pipefail
cd "$(dirname "$0")/.."
. test/support/shell.sh

section() { printf '\n=== %s (after %d s)\n' "$*" "$SECONDS"; }

# What runs beside the next commands: its output is kept until it is waited for.
declare -A beside=()
begin() { # NAME COMMAND…
  local name=$1
  shift
  "$@" >"$MAILROOM_TEST_ARTEFACTS/$name.txt" 2>&1 &
  beside[$name]=$!
}
end() { # NAME
  local status=0
  wait "${beside[$1]}" || status=$?
  unset "beside[$1]"
  section "$1"
  cat "$MAILROOM_TEST_ARTEFACTS/$1.txt"
  return "$status"
}

# Pictures of the pages of console and wizard, what ran beside other commands, and the counts of tests.
export MAILROOM_TEST_ARTEFACTS=${MAILROOM_TEST_ARTEFACTS:-$PWD/artefacts}
mkdir -p "$MAILROOM_TEST_ARTEFACTS"
# .ci/run gives the file that `npm test` has added its counts to.
if [ -z "${MAILROOM_TEST_COUNTS:-}" ]; then
  export MAILROOM_TEST_COUNTS=$MAILROOM_TEST_ARTEFACTS/counts.txt
  : >"$MAILROOM_TEST_COUNTS"
fi

mongo_started=no
finish() {
  local status=$?
  if [ "${#beside[@]}" != 0 ]; then kill "${beside[@]}" 2>/dev/null || true; fi
  if [ "$mongo_started" = yes ]; then bash test/support/mongo.sh stop; fi
  if [ "$status" = 0 ]; then section 'test:all passed'; else section "test:all FAILED with status $status"; fi
  show_counts "$MAILROOM_TEST_COUNTS"
  exit "$status"
}
trap finish EXIT
trap 'exit 1' INT TERM

# One that runs already is used, and left running.
if ! MONGODB_URI=${MONGODB_URI:-$(bash test/support/mongo.sh uri 2>/dev/null)}; then
  mongo_started=yes
  MONGODB_URI=$(bash test/support/mongo.sh start)
fi
export MONGODB_URI MAILROOM_REQUIRE=dovecot,cyrus,courier,greenmail,pymap,mongodb,chromium

section 'what takes long, kills, and the store on MongoDB'
# Of test/hostile those that look at nobody's wait.
untimed=('test/hostile/{call-log,connections,credentials,failing-writes,files,hosts,kept-memory}.test.ts'
  'test/hostile/{kills-*,linear,management,names,plaintext,reconnect-links}.test.ts')
# What takes longest first: at the end it would have the machine to itself.
longest=(test/engine/accounts/model.long.test.ts test/console/console.long.test.ts 'test/hostile/kills-*.test.ts'
  'test/e2e/{servers,nodes,transfers,own-writes}.long.test.ts' 'test/{connect/wizard,api/core/docs-pages}.long.test.ts')
MAILROOM_TEST_AT_ONCE=6 node test/run.ts "${longest[@]}" 'test/**/*.long.test.ts' \
  'test/store/*.test.ts' '!test/store/sqlite*.test.ts' "${untimed[@]}"

section 'the whole service on MongoDB; and beside it kills, and two minutes of networks and mail servers that fail'
# The bench of faults waits most of its time, and no kill waits for the tests.
begin 'two minutes of faults' npm run bench -- faults --seconds 120 --accounts 50 --untimed
begin 'kills of the service on MongoDB' env MAILROOM_TEST_STORE=mongodb node test/run.ts test/hostile/kills-of-the-service.test.ts
# The other files hold no test that the store makes different: they are about mail servers, values, pages, the command
# line. The API runs on MongoDB with two nodes, further down.
on_store=('test/e2e/{burst,dovecot,dovecot-v2,reseal}.long.test.ts'
  'test/engine/accounts/{own-writes,restarted,reused}.long.test.ts' 'test/engine/webhooks/{history,isolation}.long.test.ts'
  'test/{api/core,engine/accounts,engine/webhooks}/!(*.long).test.ts'
  'test/engine/{mailboxes,readiness,retention,oauth/tokens}.test.ts' test/connect/sign-in.test.ts
  'test/hostile/{credentials,files,reconnect-links}.test.ts'
  '!test/api/core/{answers,docs,oauth1*,openapi,requests,router,server,tries,values}.test.ts'
  '!test/engine/accounts/{command-logins,confused-search,link,model*,notify,odd-answers,plain-server}.test.ts'
  '!test/engine/accounts/{plan,plan-old,sets,stale-view,streams}.test.ts'
  '!test/engine/webhooks/{channel-log,envelope,http,lines,match,name-service,pace,patterns}.test.ts'
  '!test/engine/webhooks/{retry-after,shared-health,shared-places,turns,verdicts}.test.ts')
MAILROOM_TEST_STORE=mongodb MAILROOM_TEST_AT_ONCE=3 node test/run.ts "${on_store[@]}"
end 'kills of the service on MongoDB'
end 'two minutes of faults'

section 'the API on two nodes with MongoDB, each call to either of them; and beside it nodes that fail'
# The bench waits most of its time: for others to notice a node that is silent.
begin 'nodes that fail' npm run bench -- nodes --faults --short
MAILROOM_TEST_STORE=mongodb MAILROOM_TEST_NODES=2 MAILROOM_TEST_AT_ONCE=3 node test/run.ts \
  'test/e2e/{own-writes,in-process}.long.test.ts' 'test/api/lite/messages-{anew,lists}.long.test.ts' \
  'test/api/{lite,v2,admin}/!(*.long).test.ts'
end 'nodes that fail'

# These tests measure the waits of others in processor time: two files at once do not lengthen them.
section 'test/hostile'
MAILROOM_TEST_AT_ONCE=2 node test/run.ts --alone 'test/hostile/*.test.ts' "${untimed[@]/#/!}"

section 'test/hostile on MongoDB: what is read from the store, or written to it'
# One file at a time: the database of the tests needs a core for a large batch.
# The others are about sockets, mail servers, parsers, pages, or what the embedded store alone has (large-lists: reader
# threads); failing-writes, kills-of-migrations, kills-of-stores and many-messages take both stores.
MAILROOM_TEST_STORE=mongodb MAILROOM_TEST_AT_ONCE=1 node test/run.ts --alone \
  'test/hostile/{call-log,event-streams,large-lists-by-api,recipients,stored-limits,wide-lists}.test.ts'

section 'schemathesis; and beside it schemathesis on MongoDB, the demo, and a minute of everything at once'
bash test/support/schemathesis.sh install
# The document is the same: what values meet in the store is what is new.
begin 'schemathesis on MongoDB' env MAILROOM_TEST_STORE=mongodb bash test/support/schemathesis.sh --phases fuzzing --max-examples 6
begin 'the demo' npm run demo -- --once
begin 'a minute of everything at once' npm run bench -- soak --seconds 60 --accounts 100 --untimed
bash test/support/schemathesis.sh
end 'schemathesis on MongoDB'
end 'the demo'
end 'a minute of everything at once'
