#!/usr/bin/env bash
# Fuzzes the running service along its own OpenAPI document: no 500, and every answer as it is described. Fixed seed, bounded time.
# schemathesis lives in a venv of its own under TEST_SCHEMATHESIS_HOME (/var/tmp/mailroom-schemathesis) and is reused when it is
# there. Needs Python 3.10 or newer with venv. Arguments go to `schemathesis run`; `install` alone runs nothing.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=4.32.5
home=${TEST_SCHEMATHESIS_HOME:-/var/tmp/mailroom-schemathesis}
program=$home/bin/schemathesis

. test/support/shell.sh

if ! "$program" --version 2>/dev/null | grep -qF "$version"; then
  python3 -m venv "$home"
  thrice "$home/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version"
fi

if [ "${1:-}" = install ]; then exit 0; fi

checks=no_lasting_server_error,status_code_conformance,content_type_conformance,response_headers_conformance
checks+=,response_schema_conformance,unsupported_method,allow_header_conformance
PATH=$PWD/node_modules/.bin:$PATH exec timeout --signal=TERM 600 node test/support/schemathesis/world.ts "$program" \
  --checks "$checks" --phases examples,coverage,fuzzing --max-examples 10 --seed 20190331 --request-timeout 20 \
  --generation-database none --suppress-health-check all --warnings off --no-color "$@"
