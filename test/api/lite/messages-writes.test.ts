/**
 * Flags, read and move on real Dovecot: on the server when answered, in the index at once, and told like anybody's
 * change, once. Foreign changes made afterwards are the proof: once they are told, whatever echo there was has been
 * seen too.
 */
import assert from 'node:assert/strict'
import { after, before, beforeEach, suite, test } from 'node:test'
import { mail } from '../../support/mail.ts'
import { startReceiver, subjectOf, type CallbackReceiver } from '../../support/callbacks.ts'
import type { RawImap } from '../../support/raw-imap.ts'
import { needs } from '../../support/require.ts'
import { until } from '../../support/until.ts'
import { startMessageRig, type Json, type Mailbox, type MessageRig } from './messages-rig.ts'

const subjects = ['plain', 'copied', 'moved', 'stays', 'unread', 'foreign', 'nowhere', 'elsewhere']

suite('writes on Dovecot', needs('dovecot'), () => {
  let rig: MessageRig
  let mailbox: Mailbox
  let imap: RawImap
  let receiver: CallbackReceiver
  const id = new Map<string, string>()
  const idOf = (subject: string): string => id.get(subject) ?? assert.fail(subject)

  before(async () => {
    receiver = await startReceiver()
    rig = await startMessageRig()
    mailbox = await rig.mailbox(
      'writer',
      subjects.map((subject) => mail({ to: 'writer@mail.example', subject })),
    )
    imap = await rig.dovecot.connect(mailbox.email)

    await imap.command('SELECT INBOX')
    await imap.command('UID COPY 2 Archive')
    await imap.append('Archive', [mail({ to: mailbox.email, subject: 'fence' })])
    await imap.append('Trash', [mail({ to: mailbox.email, subject: 'trash fence' })])
    await mailbox.holds(subjects.length + 2)
    for (const [index, subject] of subjects.entries()) id.set(subject, await mailbox.idOf(index + 1))
    id.set('fence', await mailbox.idOf(2, 'Archive'))
    await until('the copy in the index', async () => (await placesOf('copied')).length === 2)
    await rig.ok(`/lite/users/${mailbox.userId}/webhooks`, 'POST', {
      callback_url: receiver.url,
      receive_all_changes: 1,
      receive_drafts: 1,
    })
  })
  after(async () => {
    await imap.close()
    await rig.close()
    await receiver.close()
  })
  let seen = 0
  let cursor = ''
  beforeEach(async () => {
    seen = receiver.all.length
    cursor = (await changesSince('now')).cursor
  })

  const placesOf = async (subject: string) =>
    (await rig.engine.store.messages.get(mailbox.accountId, idOf(subject)))?.placements ?? []
  const serverFlags = async (folder: string, uid: number): Promise<string> => {
    await imap.command(`SELECT "${folder}"`)
    return (await imap.command(`UID FETCH ${uid} (FLAGS)`)).join(' ')
  }
  const changesSince = async (cursor: string): Promise<{ readonly told: string[]; readonly cursor: string }> => {
    const page = await rig.ok(`/lite/users/${mailbox.userId}/changes?since=${cursor}&limit=1000`)
    const names = new Map([...id].map(([subject, message]) => [message, subject]))
    const told = (page['changes'] as Json[]).map(
      (one) => `${String(one['event'])} ${names.get(String(one['message_id'])) ?? '?'} ${String(one['folder'])}`,
    )
    return { told, cursor: String(page['cursor']) }
  }
  /**
   * What the test has done is in the change log and has its callbacks, and nothing else but somebody's changes that are
   * made now.
   */
  const isReported = async (wanted: readonly string[]): Promise<void> => {
    assert.deepEqual((await changesSince(cursor)).told, wanted, 'when it is answered')
    for (const [folder, uid] of [
      ['INBOX', 6],
      ['Archive', 2],
    ] as const) {
      await imap.command(`SELECT "${folder}"`)
      await imap.command(`UID STORE ${uid} +FLAGS ($Fence${folder}${seen})`)
    }
    const foreign = ['flags_changed foreign INBOX', 'flags_changed fence Archive']
    const news = async (): Promise<string[]> => (await changesSince(cursor)).told
    const areTold = async (): Promise<boolean> => {
      const told = await news()
      return foreign.every((line) => told.includes(line))
    }
    await until('the foreign changes', areTold, { withinMs: 15_000 })
    const subjectsOf = (lines: readonly string[]): string[] => lines.map((line) => line.split(' ')[1] ?? '').sort()
    const all = [...wanted, ...foreign]
    assert.deepEqual((await news()).sort(), [...all].sort())
    await until('the callbacks', () => receiver.all.length - seen >= all.length, { withinMs: 15_000 })
    assert.deepEqual(receiver.all.slice(seen).map(subjectOf).sort(), subjectsOf(all))
  }

  for (const path of ['messages', 'folders/INBOX/messages']) {
    test(`flags through ${path}: set, unset, answered and listed`, async () => {
      const message = `${mailbox.path}/${path}/${idOf('plain')}`
      const set = await rig.ok(`${message}/flags`, 'POST', {
        seen: 1,
        answered: '1',
        flagged: true,
        deleted: 0,
        draft: 0,
      })
      assert.deepEqual(set, {
        success: true,
        flags: { read: true, answered: true, flagged: true, deleted: false, draft: false },
      })
      assert.match(await serverFlags('INBOX', 1), /\\Answered.*\\Flagged.*\\Seen|\\Seen/)
      const got = await rig.ok(`${message}/flags`)
      assert.deepEqual(got['flags'], {
        read: true,
        answered: true,
        flagged: true,
        draft: false,
        raw: ['\\Answered', '\\Flagged', '\\Seen'],
      })
      assert.equal(
        got['resource_url'],
        `${rig.url}${message.replace('/0/', `/${encodeURIComponent(await labelOf())}/`)}/flags`,
      )
      const [listed] = (await rig.list(`${mailbox.path}/messages?include_flags=1&subject=plain`)) as [Json]
      assert.deepEqual(listed['flags'], got['flags'])
      const unset = await rig.ok(`${message}/flags`, 'POST', { seen: 0, answered: 0, flagged: 0 })
      assert.deepEqual(unset['flags'], { read: false, answered: false, flagged: false, deleted: false, draft: false })
      assert.doesNotMatch(await serverFlags('INBOX', 1), /Seen|Answered|Flagged/)
      await rig.ok(`${message}/flags`, 'POST', { seen: 0, answered: 0, flagged: 0 })
      await isReported(['flags_changed plain INBOX', 'flags_changed plain INBOX'])
    })
  }
  const labelOf = async (): Promise<string> => String((await rig.ok(mailbox.path))['label'])

  test('deleted and draft are set too, and shown in raw', async () => {
    const message = `${mailbox.path}/messages/${idOf('plain')}/flags`
    const set = await rig.ok(message, 'POST', { deleted: 1, draft: 1 })
    assert.deepEqual(set['flags'], { read: false, answered: false, flagged: false, deleted: true, draft: true })
    assert.match(await serverFlags('INBOX', 1), /\\Deleted.*\\Draft/)
    await rig.ok(message, 'POST', { deleted: 0, draft: 0 })
    await isReported(['flags_changed plain INBOX', 'flags_changed plain INBOX'])
  })

  test('a change without a folder is made in all folders of the message; with one, in that one', async () => {
    await rig.ok(`${mailbox.path}/messages/${idOf('copied')}/flags`, 'POST', { flagged: 1 })
    for (const place of await placesOf('copied')) {
      assert.deepEqual(place.flags, ['\\Flagged'])
      assert.match(await serverFlags(place.path, place.uid), /\\Flagged/)
    }
    await rig.ok(`${mailbox.path}/folders/Archive/messages/${idOf('copied')}/flags`, 'POST', { flagged: 0 })
    const flags = new Map((await placesOf('copied')).map((place) => [place.path, place.flags]))
    assert.deepEqual(flags.get('Archive'), [])
    assert.deepEqual(flags.get('INBOX'), ['\\Flagged'])
    const through = async (folder: string) =>
      (await rig.ok(`${mailbox.path}/folders/${folder}/messages/${idOf('copied')}?include_flags=1`))['flags'] as Json
    assert.equal((await through('INBOX'))['flagged'], true)
    assert.equal((await through('Archive'))['flagged'], false)
    await isReported(['INBOX', 'Archive', 'Archive'].map((folder) => `flags_changed copied ${folder}`))
  })

  test('read and unread', async () => {
    const message = `${mailbox.path}/folders/INBOX/messages/${idOf('unread')}`
    assert.deepEqual(await rig.ok(`${message}/read`, 'POST'), { success: true })
    assert.match(await serverFlags('INBOX', 5), /\\Seen/)
    assert.equal(((await rig.ok(`${message}/flags`))['flags'] as Json)['read'], true)
    assert.deepEqual(await rig.ok(`${message}/read`, 'DELETE'), { success: true })
    assert.doesNotMatch(await serverFlags('INBOX', 5), /\\Seen/)
    assert.equal(((await rig.ok(`${message}/flags`))['flags'] as Json)['read'], false)
    await rig.ok(`${message}/read`, 'DELETE')
    await isReported(['flags_changed unread INBOX', 'flags_changed unread INBOX'])
  })

  test('no flag at all, and one that is neither 0 nor 1, are 400', async () => {
    const message = `${mailbox.path}/messages/${idOf('plain')}/flags`
    assert.equal((await rig.call('POST', message, { body: {} })).status, 400)
    assert.equal((await rig.call('POST', message, { body: { seen: 'maybe' } })).status, 400)
  })

  test('a move is done on the server and in the index, and told, once', async () => {
    const from = `${mailbox.path}/folders/INBOX/messages/${idOf('moved')}`
    assert.deepEqual(await rig.ok(`${from}?new_folder_id=Archive`, 'PUT'), { success: true })
    assert.deepEqual(
      (await placesOf('moved')).map(({ path }) => path),
      ['Archive'],
    )
    assert.equal((await rig.call('GET', from)).status, 404)
    const there = await rig.ok(`${mailbox.path}/folders/Archive/messages/${idOf('moved')}`)
    assert.deepEqual(there['folders'], ['Archive'])
    await imap.command('SELECT Archive')
    assert.match((await imap.command('UID SEARCH SUBJECT "moved"')).join(' '), /SEARCH \d+$/)
    await imap.command('SELECT INBOX')
    assert.match((await imap.command('UID SEARCH SUBJECT "moved"')).join(' '), /SEARCH$/)
    await isReported(['folder_added moved Archive', 'folder_removed moved INBOX'])
    // and on to the next one, in the body and with a delimiter
    await rig.ok(`${mailbox.path}/folders/Archive/messages/${idOf('moved')}`, 'PUT', {
      new_folder_id: 'Trash',
      delimiter: '.',
    })
    assert.equal((await rig.list(`${mailbox.path}/folders/Trash/messages?subject=moved`)).length, 1)
    assert.equal((await rig.list(`${mailbox.path}/folders/Archive/messages?subject=moved`)).length, 0)
  })

  test('a move into the same folder changes nothing; into an unknown one it is 404; without one 400', async () => {
    const message = `${mailbox.path}/folders/INBOX/messages/${idOf('stays')}`
    const before = await placesOf('stays')
    assert.deepEqual(await rig.ok(`${message}?new_folder_id=inbox`, 'PUT'), { success: true })
    assert.deepEqual(await placesOf('stays'), before)
    const unknown = await rig.call('PUT', `${message}?new_folder_id=No%2FSuch`)
    assert.equal(unknown.status, 404)
    assert.match(String(unknown.json()['value']), /folder No\/Such is invalid/)
    assert.equal((await rig.call('PUT', message)).status, 400)
  })

  test('a folder made a moment ago by somebody else can be moved to', async () => {
    await imap.command('CREATE Brandnew')
    await rig.ok(`${mailbox.path}/messages/${idOf('elsewhere')}?new_folder_id=Brandnew`, 'PUT')
    assert.deepEqual(
      (await placesOf('elsewhere')).map(({ path }) => path),
      ['Brandnew'],
    )
  })

  test('a message that has gone from the server behind the index is 404 on a write', async () => {
    await imap.command('SELECT INBOX')
    const place = (await placesOf('nowhere'))[0] ?? assert.fail()
    const stale = (await rig.engine.store.messages.get(mailbox.accountId, idOf('nowhere'))) ?? assert.fail()
    await imap.command(`UID STORE ${place.uid} +FLAGS (\\Deleted)`)
    await imap.command(`UID EXPUNGE ${place.uid}`)
    await assert.rejects(rig.engine.accounts.setFlags(stale, place, { add: ['\\Seen'], remove: [] }), {
      code: 'not_found',
    })
    // While a folder is read, it may turn up there: that is a 503 first.
    const path = `${mailbox.path}/messages/${idOf('nowhere')}/read`
    const answer = await until('an answer', async () => {
      const one = await rig.call('POST', path)
      return one.status === 503 ? null : one
    })
    assert.equal(answer.status, 404, JSON.stringify(answer.json()))
  })
})
