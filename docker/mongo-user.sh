#!/bin/sh
# Run once by the mongo image, while its volume is empty: a user of Mailroom's own, with rights on its own database alone.
mongosh --quiet --host 127.0.0.1 --username "$MONGO_INITDB_ROOT_USERNAME" --password "$MONGO_INITDB_ROOT_PASSWORD" \
  --authenticationDatabase admin <<'SCRIPT'
db.getSiblingDB('mailroom').createUser({
  user: 'mailroom',
  pwd: process.env.MONGO_MAILROOM_PASSWORD,
  roles: [{ role: 'readWrite', db: 'mailroom' }],
})
SCRIPT
