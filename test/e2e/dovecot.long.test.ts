/** End to end on real Dovecot. */
import { startDovecot } from '../support/dovecot.ts'
import { needs } from '../support/require.ts'
import { promisesOn } from './promises.ts'

promisesOn('Dovecot', needs('dovecot'), startDovecot)
