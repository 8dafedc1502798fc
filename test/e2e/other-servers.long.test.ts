/**
 * Read and written through the API on servers that do less, or name their folders in another way: Dovecot as a bare
 * IMAP4rev1 server, Dovecot with several namespaces and mdbox, and pymap.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mail } from '../support/mail.ts'
import { startDovecot } from '../support/dovecot.ts'
import { startPymap } from '../support/pymap.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { lunch } from './letters.ts'
import { openDay, openMailbox, type ServerKind } from './mailbox.ts'
import { quick, readOn } from './scenario-read.ts'
import { subjects } from './stage.ts'

const spaces: ServerKind = {
  name: 'Dovecot with namespaces and mdbox',
  start: () => startDovecot({ format: 'mdbox', namespaces: true }),
  delimiter: '.',
  personal: 'INBOX',
  keepsMail: true,
}
const bare: ServerKind = {
  name: 'Dovecot as bare IMAP4rev1',
  // No IDLE, UIDPLUS, NAMESPACE, SPECIAL-USE, CONDSTORE, MOVE, LIST-STATUS or NOTIFY.
  start: () => startDovecot({ capability: 'IMAP4rev1' }),
  delimiter: '/',
  personal: '',
  keepsMail: true,
}
const pymap: ServerKind = {
  name: 'pymap',
  start: startPymap,
  delimiter: '/',
  personal: '',
  keepsMail: false,
  inexactParts: 'pymap adds the line end before the boundary to a message that is a part',
}

readOn(bare, needs('dovecot'))
readOn(spaces, needs('dovecot'))
readOn(pymap, needs('pymap'))

test('a shared folder and a virtual one that shows it: one message in both, told once', needs('dovecot'), async (t) => {
  const day = await openDay(spaces, quick)
  t.after(() => day.close())
  const box = await openMailbox(day, 'vera', [lunch])
  await box.imap.command('CREATE Public.News')
  const path = `${box.path}/folders/${encodeURIComponent('Public/News')}`
  await until('the shared folder', async () => (await day.service.api('GET', path)).status === 200, {
    withinMs: 20_000,
  })
  const told = await box.webhook()
  await box.imap.append('Public.News', [mail({ to: 'all@mail.example', subject: 'for all' })])
  const folders = async (): Promise<unknown> => {
    const [found] = await day.service.list(`${box.path}/messages?subject=for+all`)
    return found?.['folders']
  }
  await until('both folders', async () => String(await folders()) === 'Public/News,Virtual/News', {
    withinMs: 30_000,
    explain: () => day.service.log().slice(-3000),
  })
  await box.send('INBOX', 'the end')
  await until('the end', () => subjects(told()).includes('the end'), { withinMs: 20_000 })
  assert.deepEqual(subjects(told()), ['for all', 'the end'])
})
