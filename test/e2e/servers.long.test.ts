/** The whole of it, end to end, on every real mail server that is here. */
import { startCourier } from '../support/courier.ts'
import { startCyrus } from '../support/cyrus.ts'
import { startDovecot } from '../support/dovecot.ts'
import { startGreenMail } from '../support/greenmail.ts'
import { needs, type Service } from '../support/require.ts'
import type { ServerKind } from './mailbox.ts'
import { readOn } from './scenario-read.ts'
import { watchedOn } from './scenario-watched.ts'

const kinds: readonly (readonly [Service, ServerKind])[] = [
  ['dovecot', { name: 'Dovecot', start: startDovecot, delimiter: '/', personal: '', keepsMail: true }],
  ['cyrus', { name: 'Cyrus', start: startCyrus, delimiter: '.', personal: 'INBOX', keepsMail: true }],
  [
    'courier',
    { name: 'Courier', start: startCourier, delimiter: '.', personal: 'INBOX', keepsMail: true, lacksMove: true },
  ],
  ['greenmail', { name: 'GreenMail', start: startGreenMail, delimiter: '.', personal: '', keepsMail: false }],
]

for (const [service, kind] of kinds) {
  readOn(kind, needs(service))
  watchedOn(kind, needs(service))
}
