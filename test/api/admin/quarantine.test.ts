/** Messages that the mail server does not give: where an operator sees them, and how they are asked for again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { showExplanation } from '../../../api/cli/show.ts'
import { inSet } from '../../../engine/accounts/session/uids.ts'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { callRaw } from '../core/raw-call.ts'
import type { Json } from '../lite/rig.ts'
import { startAdminRig } from './rig.ts'

test('a poisoned message is listed with its reason and next try, and read at once when asked and healed', async (t) => {
  const password = 'a password of an operator'
  const rig = await startAdminRig({ env: { MAILROOM_ADMIN_PASSWORD: password } })
  t.after(() => rig.close())
  const box = await rig.mailbox('ann', { subjects: ['one'] })
  const path = `/admin/accounts/${box.accountId}`
  const explain = () => rig.good('read', 'GET', `${path}/explain`)
  const listed = async () => (await explain())['quarantined'] as Json[]
  const subjects = async () => (await rig.list(`${box.path}/messages`)).map((one) => one['subject']).sort()
  assert.deepEqual(await listed(), [])

  const uid = 2
  rig.imap.hooks = {
    command({ text }) {
      const set = /UID FETCH (\S+) \(UID FLAGS INTERNALDATE/.exec(text)?.[1]
      const isIn = set !== undefined && inSet(set)(uid)
      return isIn ? { tagged: 'NO [SERVERBUG] System Error (Failure)' } : undefined
    },
  }
  for (const subject of ['poison', 'three']) rig.imap.append(box.email, 'INBOX', mail({ to: box.email, subject }))
  const [row] = await until('the quarantine', async () => (await listed()).length > 0 && listed())
  const { next_try: nextTry, ...message } = row ?? assert.fail('no row')
  assert.deepEqual(message, { folder: 'INBOX', uid, reason: 'NO System Error (Failure)' })
  assert(Number(nextTry) >= Math.floor(Date.now() / 1000) - 60 && Number(nextTry) <= Date.now() / 1000 + 301)
  await until('its neighbours', async () => (await subjects()).includes('three'))
  assert.deepEqual(await subjects(), ['one', 'three'])
  const { quarantined } = (await rig.good('read', 'GET', path))['explain'] as { quarantined: Json[] }
  assert.deepEqual(
    quarantined.map((one) => one['uid']),
    [uid],
  )
  assert.match(showExplanation(await explain()).join('\n'), /NOT GIVEN[^]*INBOX 2 .*NO System Error/)

  const signIn = { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: `password=${password}` }
  const cookie = (await callRaw(rig.port, 'POST', '/console/login', signIn)).headers['set-cookie']?.[0]?.split(';')[0]
  const page = async () =>
    (await callRaw(rig.port, 'GET', `/console/accounts/${box.accountId}`, { headers: { cookie: cookie ?? '' } })).text
  assert((await page()).includes('<button name="folder" value="INBOX">'))

  const anew = () => rig.good('act', 'POST', `${path}/read-anew`, { folder: 'INBOX' })
  await anew()
  assert.deepEqual(
    (await listed()).map((one) => one['uid']),
    [uid],
    'still poisoned',
  )
  rig.imap.hooks = {}
  await anew()
  assert.deepEqual(await listed(), [])
  assert.deepEqual(await subjects(), ['one', 'poison', 'three'])
  assert(!(await page()).includes('<button name="folder" value="INBOX">'))
})
