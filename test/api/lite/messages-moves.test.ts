/**
 * Moves and flags on real Dovecot: the folder's counts say the same at once, no twin stays behind, and whoever comes
 * late is answered truly.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { mail } from '../../support/mail.ts'
import type { RawImap } from '../../support/raw-imap.ts'
import { needs } from '../../support/require.ts'
import { until } from '../../support/until.ts'
import { startMessageRig, type Mailbox, type MessageRig } from './messages-rig.ts'

const letter = (subject: string): string => mail({ to: 'mover@mail.example', subject })

suite('moves on Dovecot', needs('dovecot'), () => {
  let rig: MessageRig
  let mailbox: Mailbox
  let imap: RawImap

  before(async () => {
    // A poll would heal what is wrong for a moment.
    rig = await startMessageRig({ MAILROOM_FOLDER_POLL: '30s' })
    mailbox = await rig.mailbox('mover', ['counted', 'shared', 'raced', 'both', 'gone', 'streamed'].map(letter))
    imap = await rig.dovecot.connect(mailbox.email)
    await mailbox.holds(6)
    await until(
      'the initial sync',
      async () => (await rig.engine.store.accounts.get(mailbox.accountId))?.resume.initialSyncAt,
    )
  })
  after(async () => {
    await imap.close()
    await rig.close()
  })

  const counts = async (folder: string): Promise<readonly unknown[]> => {
    const view = await rig.ok(`${mailbox.path}/folders/${folder}`)
    return [view['nb_messages'], view['nb_unseen_messages']]
  }
  const onServer = async (folder: string): Promise<readonly unknown[]> => {
    const said = (await imap.command(`STATUS "${folder}" (MESSAGES UNSEEN)`)).join(' ')
    return [Number(/MESSAGES (\d+)/.exec(said)?.[1]), Number(/UNSEEN (\d+)/.exec(said)?.[1])]
  }
  const agrees = async (...folders: string[]): Promise<void> => {
    for (const folder of folders) assert.deepEqual(await counts(folder), await onServer(folder), folder)
  }
  const idOf = async (subject: string): Promise<string> => {
    const [found] = await rig.list(`${mailbox.path}/messages?subject=${subject}`)
    return String(found?.['message_id'])
  }
  /** In the folder that is selected. */
  const uidOf = async (subject: string): Promise<string> =>
    /SEARCH (\d+)/.exec((await imap.command(`UID SEARCH SUBJECT "${subject}"`)).join(' '))?.[1] ?? assert.fail(subject)
  const foldersOf = async (id: string): Promise<unknown> => (await rig.ok(`${mailbox.path}/messages/${id}`))['folders']

  test('counts of the folders follow flags and moves at once, and are not counted twice by the sync', async () => {
    const id = await idOf('counted')
    const message = `${mailbox.path}/folders/INBOX/messages/${id}`
    const [messages, unseen] = (await counts('INBOX')) as [number, number]
    await rig.ok(`${message}/read`, 'POST')
    assert.deepEqual(await counts('INBOX'), [messages, unseen - 1])
    await rig.ok(`${message}/read`, 'DELETE')
    assert.deepEqual(await counts('INBOX'), [messages, unseen])
    await rig.ok(`${message}/flags`, 'POST', { flagged: 1 })
    assert.deepEqual(await counts('INBOX'), [messages, unseen])
    await rig.ok(`${message}?new_folder_id=Archive`, 'PUT')
    await agrees('INBOX', 'Archive')
    assert.deepEqual(await counts('Archive'), [1, 1])
    for (const folder of ['INBOX', 'Archive']) await rig.engine.accounts.syncFolder(mailbox.accountId, folder)
    await agrees('INBOX', 'Archive')
    await rig.engine.accounts.refreshFolders(mailbox.accountId)
    for (const folder of ['INBOX', 'Archive']) await rig.engine.accounts.syncFolder(mailbox.accountId, folder)
    await agrees('INBOX', 'Archive')
    await rig.ok(`${mailbox.path}/folders/Archive/messages/${id}/read`, 'POST')
    await agrees('Archive')
    await rig.ok(`${mailbox.path}/folders/Archive/messages/${id}?new_folder_id=INBOX`, 'PUT')
    await agrees('INBOX', 'Archive')
  })

  test('what others do is counted once, whether the list of folders told of it before or the folder itself', async () => {
    const { accounts } = rig.engine
    const looks = [
      async () => {
        await accounts.refreshFolders(mailbox.accountId)
        await accounts.syncFolder(mailbox.accountId, 'Trash')
      },
      () => accounts.syncFolder(mailbox.accountId, 'Trash'),
    ]
    for (const look of looks) {
      await imap.append('Trash', [letter('one'), letter('two')])
      await look()
      await agrees('Trash')
      await imap.command('SELECT Trash')
      const uid = await uidOf('one')
      await imap.command(`UID STORE ${uid} +FLAGS (\\Seen)`)
      await look()
      await agrees('Trash')
      await imap.command(`UID STORE ${uid} -FLAGS (\\Seen)`)
      await imap.command(`UID STORE ${uid} +FLAGS (\\Deleted)`)
      await imap.command(`UID EXPUNGE ${uid}`)
      await look()
      await agrees('Trash')
    }
  })

  test('a mail that lies in the folder twice leaves it as a whole', async () => {
    await imap.append('INBOX', [letter('twin')])
    await imap.command('SELECT INBOX')
    await imap.command(`UID COPY ${await uidOf('twin')} INBOX`)
    const id = await until('the twins', async () => {
      await rig.engine.accounts.syncFolder(mailbox.accountId, 'INBOX')
      const twin = await idOf('twin')
      const row = await rig.engine.store.messages.get(mailbox.accountId, twin)
      return row?.placements.length === 2 ? twin : undefined
    })
    await rig.ok(`${mailbox.path}/folders/INBOX/messages/${id}?new_folder_id=Trash`, 'PUT')
    assert.deepEqual(await foldersOf(id), ['Trash'])
    await imap.command('SELECT INBOX')
    assert.match((await imap.command('UID SEARCH SUBJECT "twin"')).join(' '), /SEARCH$/)
    await imap.command('SELECT Trash')
    assert.match((await imap.command('UID SEARCH SUBJECT "twin"')).join(' '), /SEARCH \d+ \d+$/)
    await agrees('INBOX', 'Trash')
  })

  test('four moves of one message at the same time all succeed, and move it once', async () => {
    const id = await idOf('raced')
    const move = () => rig.call('PUT', `${mailbox.path}/folders/INBOX/messages/${id}?new_folder_id=Archive`)
    const answers = await Promise.all([move(), move(), move(), move()])
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 200],
      answers.map(({ bytes }) => bytes.toString()).join('\n'),
    )
    assert.deepEqual(await foldersOf(id), ['Archive'])
    await agrees('INBOX', 'Archive')
  })

  test('without a folder it leaves INBOX, wherever else it lies', async () => {
    await imap.command('SELECT INBOX')
    await imap.command(`UID COPY ${await uidOf('both')} Archive`)
    await rig.engine.accounts.syncFolder(mailbox.accountId, 'Archive')
    const id = await idOf('both')
    await rig.ok(`${mailbox.path}/messages/${id}?new_folder_id=Trash`, 'PUT')
    assert.deepEqual(new Set((await foldersOf(id)) as string[]), new Set(['Archive', 'Trash']))
    // and to a folder where it lies already nothing is moved
    await rig.ok(`${mailbox.path}/messages/${id}?new_folder_id=Archive`, 'PUT')
    assert.deepEqual(new Set((await foldersOf(id)) as string[]), new Set(['Archive', 'Trash']))
  })

  test('one Message-ID of two messages: the one that was moved is moved already', async () => {
    const date = new Date(Date.now() + 60_000)
    await imap.append('INBOX', [mail({ to: mailbox.email, subject: 'received copy', id: 'copies' })])
    // the newer one, which the Message-ID alone means
    await imap.append('Trash', [mail({ to: mailbox.email, subject: 'other copy', id: 'copies', date })])
    for (const folder of ['INBOX', 'Trash']) await rig.engine.accounts.syncFolder(mailbox.accountId, folder)
    const at = (folder: string, name: unknown): string => `${mailbox.path}/folders/${folder}/messages/${String(name)}`
    // By its id a message is no other one, whichever has its Message-ID in that folder.
    for (const [here, there] of [['INBOX', 'Trash'] as const, ['Trash', 'INBOX'] as const]) {
      const { message_id: id } = await rig.ok(at(here, 'copies@sender.example'))
      assert.equal((await rig.ok(at(here, id)))['message_id'], id)
      assert.equal((await rig.call('GET', at(there, id))).status, 404)
    }
    const move = async (to: string) =>
      (await rig.call('PUT', `${at('INBOX', 'copies@sender.example')}?new_folder_id=${to}`)).status
    assert.deepEqual([await move('Archive'), await move('Archive')], [200, 200])
    assert.equal(await move('Trash'), 200)
    await rig.ok(`${at('Trash', 'copies@sender.example')}?new_folder_id=Archive`, 'PUT')
    assert.equal(await move('Trash'), 404)
  })

  test('moves to different folders at the same time: without a folder each finds it', async () => {
    const id = await idOf('shared')
    const answers = await Promise.all(
      ['Archive', 'Trash'].map((to) => rig.call('PUT', `${mailbox.path}/messages/${id}?new_folder_id=${to}`)),
    )
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200],
    )
    assert.deepEqual(((await foldersOf(id)) as string[]).length, 1, JSON.stringify(await foldersOf(id)))
  })

  /** By another client. */
  const takeOut = async (folder: string, subject: string): Promise<void> => {
    await imap.command(`SELECT ${folder}`)
    const uid = await uidOf(subject)
    await imap.command(`UID STORE ${uid} +FLAGS (\\Deleted)`)
    await imap.command(`UID EXPUNGE ${uid}`)
  }
  const message = async (id: string) => (await rig.engine.store.messages.get(mailbox.accountId, id)) ?? assert.fail(id)

  test('one that another client took out of where it was to stay is not taken out of the other folder', async () => {
    const { accounts, store } = rig.engine
    await imap.append('INBOX', [letter('staying')])
    await accounts.syncFolder(mailbox.accountId, 'INBOX')
    const known = await message(await idOf('staying'))
    const at = known.placements[0] ?? assert.fail()
    const archive = (await store.folders.byPath(mailbox.accountId, 'Archive')) ?? assert.fail()
    await accounts.copy(known, at, archive)
    await accounts.syncFolder(mailbox.accountId, 'Archive')
    await takeOut('Archive', 'staying')
    await assert.rejects(accounts.remove(await message(known.id), [at.folderId]), { code: 'conflict' })
    await imap.command('SELECT INBOX')
    assert(await uidOf('staying'))
  })

  test('one that another client took out of the folder that is open is not there', async () => {
    const { accounts, store } = rig.engine
    await imap.append('INBOX', ['stale', 'moved', 'copied'].map(letter))
    await accounts.syncFolder(mailbox.accountId, 'INBOX')
    const archive = (await store.folders.byPath(mailbox.accountId, 'Archive')) ?? assert.fail()
    const [first, moved, copied] = await Promise.all(
      ['stale', 'moved', 'copied'].map(async (subject) => message(await idOf(subject))),
    )
    assert(first && moved && copied)
    const inInbox = ({ placements: [at] }: typeof first) => at ?? assert.fail()
    await accounts.move(first, inInbox(first), archive)
    for (const [kind, one] of [
      ['move', moved],
      ['copy', copied],
    ] as const) {
      await takeOut('INBOX', kind === 'move' ? 'moved' : 'copied')
      await assert.rejects(accounts[kind](one, inInbox(one), archive), { code: 'not_found' }, kind)
    }
  })

  test('a message that has gone is 404 with the id that was asked for', async () => {
    const id = await idOf('gone')
    await imap.command('SELECT INBOX')
    const uid = await uidOf('gone')
    const stale = await rig.engine.store.messages.get(mailbox.accountId, id)
    assert(stale)
    const place = stale.placements[0] ?? assert.fail()
    const archive = await rig.engine.store.folders.byPath(mailbox.accountId, 'Archive')
    assert(archive)
    await imap.command(`UID STORE ${uid} +FLAGS (\\Deleted)`)
    await imap.command(`UID EXPUNGE ${uid}`)
    await assert.rejects(rig.engine.accounts.move(stale, place, archive), {
      code: 'not_found',
      message: `message ${id} is invalid`,
    })
    const named = '<gone@sender.example>'
    for (const [method, path] of [
      ['PUT', '?new_folder_id=Archive'],
      ['POST', '/read'],
      ['GET', '/body'],
      ['GET', '/raw'],
    ] as const) {
      const message = `${mailbox.path}/folders/INBOX/messages/${encodeURIComponent(named)}${path}`
      const answer = await rig.call(method, message)
      assert.equal(answer.status, 404, path)
      assert.equal(answer.json()['value'], `message ${named} is invalid`, path)
    }
  })

  test('a control character in body_search_string is a 400', async () => {
    for (const text of ['a%00b', 'a%0Ab', '%1B', '%7F']) {
      const answer = await rig.call('GET', `${mailbox.path}/messages?body_search_string=${text}`)
      assert.equal(answer.status, 400, text)
      assert.match(String(answer.json()['value']), /^body_search_string: must /)
    }
  })
})
