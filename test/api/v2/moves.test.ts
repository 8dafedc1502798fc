/** Moves of 2.0 lose no mail: between sources that see one folder, of mails that are alike, and at the same time. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Folder } from '../../support/imap-server/mailbox.ts'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type LiteRig } from '../lite/rig.ts'
import { addSource, v2Mailbox, type V2Mailbox } from './rig.ts'

const other = 'mover-2@mail.example'

suite('moves of 2.0 lose nothing', () => {
  let rig: LiteRig
  let box: V2Mailbox
  let otherLabel = ''
  let otherId = ''
  before(async () => {
    rig = await startLiteRig()
    box = await v2Mailbox(rig, 'mover')
    rig.imap.addUser(other, {})
    share(rig.imap.folder(box.email, 'Archive'), rig.imap.createFolder(other, 'Shared'))
    ;({ label: otherLabel, accountId: otherId } = await addSource(rig, box, other))
  })
  after(async () => {
    await rig.close()
  })

  /** `seen` is the same folder as `folder` from now on, under its own name. */
  const share = (folder: Folder, seen: Folder): void => {
    for (const key of Object.keys(seen).filter((name) => name !== 'name') as (keyof Folder)[])
      Object.defineProperty(seen, key, {
        get: () => folder[key],
        set: (value: unknown) => void Object.assign(folder, { [key]: value }),
      })
  }
  const raws = (email: string, folder: string, subject: string): string[] =>
    rig.imap
      .folder(email, folder)
      .messages.map(({ raw }) => raw.toString())
      .filter((raw) => raw.includes(`Subject: ${subject}\r\n`))
  const lies = (subject: string, email = box.email): string[] =>
    ['INBOX', 'Archive', 'Sent'].flatMap((folder) => raws(email, folder, subject).map(() => folder))
  const flagsIn = (email: string, folder: string, subject: string): string[][] =>
    rig.imap
      .folder(email, folder)
      .messages.filter(({ raw }) => raw.includes(`Subject: ${subject}\r\n`))
      .map(({ flags }) => [...flags].filter((flag) => flag !== '\\Recent').sort())
  /** The id in each of the two sources. */
  const idIn = (accountId: string, subject: string, places = 1): Promise<string> =>
    until(`${subject} in the index`, async () => {
      const [found] = await rig.engine.store.messages.list(accountId, { subject }, { limit: 1, offset: 0 })
      return found !== undefined && found.placements.length >= places ? found.id : undefined
    })
  /** Of what is the same mail in both: its header has it in seconds. */
  const date = new Date()
  const path = (id: string): string => `${box.account}/messages/${id}`
  const across = { dst_source: '', dst_folder: 'INBOX', move: 1 }
  const there = () => ({ ...across, dst_source: otherLabel })

  test('to a folder that is the one where it lies, under another name', async () => {
    await box.deliver({ subject: 'shared' }, 'Archive')
    await rig.ok('POST', path(await idIn(box.accountId, 'shared')), { ...there(), dst_folder: 'Shared' })
    assert.equal(raws(box.email, 'Archive', 'shared').length, 1)
  })

  test('of two mails that the index takes for one only that which was read is moved', async () => {
    const raw = (job: number): string =>
      `From: cron@x.example\r\nSubject: job\r\nDate: Mon, 6 May 2024 10:00:00 +0000\r\n\r\njob ${job}\r\n`
    const arrived = new Date('2024-05-06T10:00:01Z')
    for (const job of [1, 2]) rig.imap.append(box.email, 'INBOX', raw(job), [], arrived)
    const move = { ...there(), dst_folder: 'Archive' }
    await rig.ok('POST', path(await idIn(box.accountId, 'job', 2)), move)
    const both = () => [...raws(box.email, 'INBOX', 'job'), ...raws(other, 'Archive', 'job')].sort()
    assert.deepEqual(both(), [raw(1), raw(2)])
    assert.equal(raws(other, 'Archive', 'job').length, 1)
    await rig.ok('POST', path(await idIn(box.accountId, 'job')), move)
    assert.deepEqual(raws(other, 'Archive', 'job').sort(), [raw(1), raw(2)])
    assert.deepEqual(lies('job'), [])
  })

  test('two moves in opposite directions at the same time', async () => {
    const raw = mail({ to: box.email, subject: 'opposite' })
    rig.imap.append(box.email, 'INBOX', raw)
    rig.imap.append(other, 'INBOX', raw)
    const [here, over] = [await idIn(box.accountId, 'opposite'), await idIn(otherId, 'opposite')]
    // Each waits before its first \Deleted: both have seen what the other has.
    rig.imap.hooks = {
      command: ({ name }) => (name === 'UID STORE' ? { delayMs: 300, proceed: true } : undefined),
    }
    await Promise.all([
      rig.call('POST', path(here), there()),
      rig.call('POST', path(over), { ...across, dst_source: box.label }),
    ])
    rig.imap.hooks = {}
    assert.equal(lies('opposite').length + lies('opposite', other).length, 1)
  })

  test('the copy is looked for once more before the message is removed', async () => {
    const id = await box.deliver({ subject: 'fleeting', date })
    rig.imap.append(other, 'INBOX', mail({ to: box.email, subject: 'fleeting', date }))
    const uid = rig.imap.folder(other, 'INBOX').messages.at(-1)?.uid ?? assert.fail()
    let looks = 0
    // Gone after it was found and its flags were set.
    rig.imap.hooks = {
      command: ({ name, user }) => {
        if (user?.name === other && name === 'UID STORE') looks += 1
        if (looks === 1 && name === 'SELECT' && user?.name === other) {
          looks += 1
          rig.imap.expunge(other, 'INBOX', uid)
        }
        return undefined
      },
    }
    const answer = await rig.call('POST', path(id), { ...there(), flag_answered: 1 })
    rig.imap.hooks = {}
    assert.equal(answer.status, 409, answer.text)
    assert.match(answer.text, /copy in folder INBOX was removed meanwhile/)
    assert.deepEqual([lies('fleeting'), lies('fleeting', other)], [['INBOX'], []])
  })

  test('a copy that is marked for removal there is none', async () => {
    const id = await box.deliver({ subject: 'marked', date })
    rig.imap.append(other, 'INBOX', mail({ to: box.email, subject: 'marked', date }), ['\\Deleted'])
    await rig.ok('POST', path(id), there())
    assert.deepEqual(flagsIn(other, 'INBOX', 'marked'), [['\\Deleted'], []])
    assert.deepEqual(lies('marked'), [])
  })

  test('flags that are named are set on a copy that is there already', async () => {
    const id = await box.deliver({ subject: 'known', date })
    rig.imap.append(other, 'Archive', mail({ to: box.email, subject: 'known', date }), ['\\Flagged'])
    const copy = { dst_source: otherLabel, dst_folder: 'Archive', flag_answered: 1, flag_flagged: 0 }
    await rig.ok('POST', path(id), copy)
    assert.deepEqual(flagsIn(other, 'Archive', 'known'), [['\\Answered']])
    const copied = await rig.engine.store.messages.get(otherId, await idIn(otherId, 'known'))
    assert.deepEqual(copied?.placements[0]?.flags, ['\\Answered'])
  })

  test('a copy that is asked for twice at the same time is made once', async () => {
    const calls = [
      ['copytwice', 'POST', '', { dst_folder: 'Archive' }],
      ['addtwice', 'POST', '/folders', { add: 'Archive' }],
      ['settwice', 'PUT', '/folders', { folders: ['INBOX', 'Archive'] }],
    ] as const
    for (const [subject, method, tail, body] of calls) {
      const at = `${path(await box.deliver({ subject }))}${tail}`
      // The first copy goes on while the second is asked for.
      rig.imap.hooks = {
        command: ({ name }) => (name === 'UID COPY' ? { delayMs: 300, proceed: true } : undefined),
      }
      const answers = await Promise.all([rig.call(method, at, body), rig.call(method, at, body)])
      rig.imap.hooks = {}
      assert.deepEqual(
        answers.map(({ text }) => text),
        ['{"success":true}', '{"success":true}'],
      )
      assert.deepEqual(lies(subject), ['INBOX', 'Archive'], subject)
    }
  })

  test('two changes of its folders at the same time leave it in one', async () => {
    for (const [subject, method, field] of [
      ['put', 'PUT', 'folders'],
      ['post', 'POST', 'remove'],
    ] as const) {
      const at = `${path(await box.deliver({ subject }))}/folders`
      await rig.ok('POST', at, { add: 'Archive' })
      // The first removal goes on while the second is asked for.
      rig.imap.hooks = {
        command: ({ name }) => (name === 'UID STORE' ? { delayMs: 300, proceed: true } : undefined),
      }
      const answers = await Promise.all(['INBOX', 'Archive'].map((name) => rig.call(method, at, { [field]: name })))
      rig.imap.hooks = {}
      assert.equal(lies(subject).length, 1, subject)
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409])
      const refused = answers.find(({ status }) => status === 409)
      assert.match(refused?.text ?? '', /lies in no other folder now/)
    }
  })

  test('where it is marked for removal the mark is taken off before it leaves another folder', async () => {
    const calls = [
      ['movedto', 'POST', '', { dst_folder: 'Archive', move: 1 }],
      ['copiedto', 'POST', '', { dst_folder: 'Archive' }],
      ['putto', 'PUT', '/folders', { folders: ['Archive'] }],
      ['addedto', 'POST', '/folders', { add: 'Archive', remove: 'INBOX' }],
    ] as const
    for (const [subject, method, tail, body] of calls) {
      const raw = mail({ to: box.email, subject })
      const arrived = new Date('2024-05-06T10:00:01Z')
      rig.imap.append(box.email, 'INBOX', raw, [], arrived)
      rig.imap.append(box.email, 'Archive', raw, ['\\Deleted'], arrived)
      await rig.ok(method, `${path(await idIn(box.accountId, subject, 2))}${tail}`, body)
      assert.deepEqual(flagsIn(box.email, 'Archive', subject), [[]], subject)
      assert.deepEqual(lies(subject), subject === 'copiedto' ? ['INBOX', 'Archive'] : ['Archive'])
    }
  })

  test('a folder that only shows it is left when the call names it', async () => {
    const folders = { INBOX: [], Archive: ['\\Archive'], Everything: ['\\All'] }
    const viewer = await v2Mailbox(rig, 'viewer', { folders })
    const raw = mail({ to: viewer.email, subject: 'shown' })
    const arrived = new Date('2024-05-06T10:00:01Z')
    for (const folder of ['INBOX', 'Everything']) rig.imap.append(viewer.email, folder, raw, [], arrived)
    const at = `${viewer.account}/messages/${await idIn(viewer.accountId, 'shown', 2)}/folders`
    const places = (): string[] => Object.keys(folders).filter((one) => raws(viewer.email, one, 'shown').length > 0)
    await rig.ok('PUT', at, { folders: ['INBOX'] })
    assert.deepEqual(places(), ['INBOX', 'Everything'])
    const answer = await rig.call('PUT', at, { folders: ['\\All'] })
    assert.equal(answer.status, 400, answer.text)
    assert.match(answer.text, /folders: must name one/)
    assert.deepEqual(places(), ['INBOX', 'Everything'])
    await rig.ok('PUT', at, { folders: ['Archive', 'Everything'] })
    assert.deepEqual(places(), ['Archive', 'Everything'])
    await rig.ok('POST', at, { remove: 'Everything' })
    assert.deepEqual(places(), ['Archive'])
  })

  test('archived into a folder that only shows it, where the mail server has an id for each message', async (t) => {
    const { capabilities } = rig.imap
    t.after(() => (rig.imap.capabilities = capabilities))
    rig.imap.capabilities = [...capabilities, 'OBJECTID']
    const folders = { INBOX: [], Everything: ['\\All'] }
    const archiver = await v2Mailbox(rig, 'archiver', { folders })
    const at = `${archiver.account}/messages/${await archiver.deliver({ subject: 'archived' })}/folders`
    await rig.ok('POST', at, { add: 'Everything' })
    await rig.ok('PUT', at, { folders: ['\\All'] })
    const places = Object.keys(folders).filter((one) => raws(archiver.email, one, 'archived').length > 0)
    assert.deepEqual(places, ['Everything'])
  })

  /** In INBOX and Archive; another mail program takes it out of one when that is to be changed. */
  const takenFrom = async (folder: string, subject: string, command: string): Promise<string> => {
    const at = path(await box.deliver({ subject }))
    await rig.ok('POST', at, { dst_folder: 'Archive' })
    await rig.ok('POST', `${at}/flags`, { seen: 0 })
    const taken = rig.imap.folder(box.email, folder).messages.find(({ raw }) => raw.includes(`Subject: ${subject}\r\n`))
    rig.imap.hooks = {
      command: ({ name, text, folder: selected }) => {
        const isThere = name === 'SELECT' ? text.includes(folder) : selected?.name === folder
        if (name === command && isThere && raws(box.email, folder, subject).length > 0)
          rig.imap.expunge(box.email, folder, taken?.uid ?? assert.fail(subject))
        return undefined
      },
    }
    return at
  }

  test('one that was just taken out of one of its folders gets its flags in the other', async () => {
    for (const [folder, other] of [
      ['Archive', 'INBOX'],
      ['INBOX', 'Archive'],
    ] as const) {
      const at = await takenFrom(folder, `half${folder}`, 'UID STORE')
      const answer = await rig.call('POST', `${at}/flags`, { flagged: 1 })
      rig.imap.hooks = {}
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual([lies(`half${folder}`), flagsIn(box.email, other, `half${folder}`)], [[other], [['\\Flagged']]])
    }
  })

  test('and is moved from the other', async () => {
    const at = await takenFrom('INBOX', 'stalemove', 'SELECT')
    const answer = await rig.call('POST', at, { dst_folder: 'Sent', move: 1 })
    rig.imap.hooks = {}
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(lies('stalemove'), ['Sent'])
  })

  test('and to take it out of that one is a success', async () => {
    const at = await takenFrom('Archive', 'staleremove', 'UID STORE')
    const answer = await rig.call('POST', `${at}/folders`, { remove: 'Archive' })
    rig.imap.hooks = {}
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(lies('staleremove'), ['INBOX'])
  })

  test('from its last folder but one where it is marked for removal it is not taken', async () => {
    const raw = mail({ to: box.email, subject: 'lastlive' })
    const arrived = new Date('2024-05-06T10:00:01Z')
    rig.imap.append(box.email, 'INBOX', raw, [], arrived)
    rig.imap.append(box.email, 'Archive', raw, ['\\Deleted'], arrived)
    const at = `${path(await idIn(box.accountId, 'lastlive', 2))}/folders`
    const answer = await rig.call('POST', at, { remove: 'INBOX' })
    assert.equal(answer.status, 409, answer.text)
    assert.deepEqual(lies('lastlive'), ['INBOX', 'Archive'])
  })

  test('a move that another call ends meanwhile is a success for both', async () => {
    const id = await box.deliver({ subject: 'ended' })
    const move = { ...there(), dst_folder: 'Archive' }
    let second: ReturnType<LiteRig['call']> | undefined
    // The second finds the message in the index, and reads it when the first has removed it.
    rig.imap.hooks = {
      command: ({ name, user }) => {
        if (name !== 'UID STORE' || user?.name !== box.email) return undefined
        second ??= rig.call('POST', path(id), move)
        return { delayMs: 500, proceed: true }
      },
    }
    await rig.ok('POST', path(id), move)
    rig.imap.hooks = {}
    assert.equal((await second)?.text, '{"success":true}')
    assert.equal(raws(other, 'Archive', 'ended').length, 1)
  })

  test('a move that is done is a success again where the other source has newer mail of its own with that Message-ID', async () => {
    const id = await box.deliver({ subject: 'addressed', date: new Date('2024-05-06T10:00:00Z') })
    rig.imap.append(other, 'INBOX', mail({ to: other, subject: 'addressed', text: 'Hello, all.' }))
    await idIn(otherId, 'addressed')
    const move = { ...there(), dst_folder: 'Archive' }
    await rig.ok('POST', path(id), move)
    const again = await rig.call('POST', path(id), move)
    assert.equal(again.text, '{"success":true}')
    assert.deepEqual(lies('addressed', other), ['INBOX', 'Archive'])
  })

  test('asked for again by Message-ID, a move takes nothing that others have of that mail', async () => {
    const arrived = new Date('2024-05-06T10:00:01Z')
    const third = 'mover-3@mail.example'
    rig.imap.addUser(third, {})
    const { accountId: thirdId } = await addSource(rig, box, third)
    for (const [subject, email, accountId, text] of [
      ['ownmail', other, otherId, 'Hello, other.'],
      ['samemail', other, otherId, 'Hello.'],
      ['thirdmail', third, thirdId, 'Hello.'],
    ] as const) {
      rig.imap.append(box.email, 'INBOX', mail({ to: box.email, subject, date }), [], arrived)
      // Of two mails the newer one is found first.
      const own = text === 'Hello.' ? date : new Date(date.getTime() + 5000)
      rig.imap.append(email, 'INBOX', mail({ to: box.email, subject, date: own, text }), [], arrived)
      await Promise.all([idIn(box.accountId, subject), idIn(accountId, subject)])
      const at = path(encodeURIComponent(`<${subject}@sender.example>`))
      const move = { ...there(), dst_folder: 'Archive' }
      await rig.ok('POST', at, move)
      await rig.ok('POST', at, { ...move, flag_flagged: 1 })
      assert.equal(raws(email, 'INBOX', subject).length, 1, subject)
      assert.deepEqual([lies(subject), flagsIn(other, 'Archive', subject)], [[], [['\\Flagged']]])
      // What never was in the folder is moved.
      await rig.ok('POST', at, { ...move, dst_folder: 'Sent' })
      assert.deepEqual(raws(other, 'Sent', subject).length, 1, subject)
    }
  })

  test('of two mails that the index takes for one none leaves a folder without its own copy', async () => {
    const raw = (run: number): string =>
      `From: cron@x.example\r\nSubject: run\r\nDate: Mon, 6 May 2024 10:00:00 +0000\r\n\r\nrun ${run}\r\n`
    const arrived = new Date('2024-05-06T10:00:01Z')
    for (const run of [1, 2]) rig.imap.append(box.email, 'INBOX', raw(run), [], arrived)
    const id = await idIn(box.accountId, 'run', 2)
    const all = (): string[] =>
      [...new Set(['INBOX', 'Archive'].flatMap((name) => raws(box.email, name, 'run')))].sort()
    const answer = await rig.call('PUT', `${path(id)}/folders`, { folders: ['Archive'] })
    assert.equal(answer.status, 409, answer.text)
    assert.match(answer.text, /another mail there/)
    assert.deepEqual(all(), [raw(1), raw(2)])
    const uids = rig.imap.folder(box.email, 'INBOX').messages.filter((one) => one.raw.includes('run 1'))
    rig.imap.expunge(box.email, 'INBOX', ...uids.map(({ uid }) => uid))
    await until(
      'the index',
      async () => (await rig.engine.store.messages.get(box.accountId, id))?.placements.length === 2,
    )
    assert.equal((await rig.call('POST', path(id), { dst_folder: 'Archive', move: 1 })).status, 409)
    assert.deepEqual(all(), [raw(1), raw(2)])
    // One that lies in both folders with the same bytes leaves one of them.
    await rig.ok('POST', `${path(id)}/folders`, { add: 'Sent' })
    await rig.ok('POST', `${path(id)}/folders`, { remove: 'Sent' })
  })

  test('a removal that the mail server says OK to, and does not do, is an error', async (t) => {
    const id = await box.deliver({ subject: 'unmovable' })
    t.after(() => (rig.imap.hooks = {}))
    rig.imap.hooks = { command: ({ name }) => (name === 'UID STORE' ? { tagged: 'OK Store completed.' } : undefined) }
    const answer = await rig.call('DELETE', path(id))
    assert.equal(answer.status, 503, answer.text)
    assert.match(answer.text, /lets no mail be removed from folder INBOX/)
    assert.deepEqual(lies('unmovable'), ['INBOX'])
    await rig.ok('GET', path(id))
  })
})
