/** Flags, folders, copy and move, removal and new messages by the 2.0 API. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { after, before, suite, test } from 'node:test'
import { shortSection } from '../../support/imap-server/short-section.ts'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { userBody } from '../../support/users.ts'
import { basic } from '../core/raw-call.ts'
import { startLiteRig, type Json, type LiteRig } from '../lite/rig.ts'
import { addSource, v2Mailbox, type V2Mailbox } from './rig.ts'

const subjects = 'flagged copied moved dropped foldered set sent given kept twice both doubled alone disguised'.split(
  ' ',
)
const other = 'second@mail.example'
const messageLimit = 100_000

suite('writes of 2.0', () => {
  let rig: LiteRig
  let box: V2Mailbox
  let otherLabel = ''
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_MESSAGE_LIMIT: String(messageLimit), MAILROOM_BODY_LIMIT: '20000' } })
    box = await v2Mailbox(rig, 'writer', { subjects })
    rig.imap.addUser(other, {})
    otherLabel = (await addSource(rig, box, other)).label
  })
  after(async () => {
    await rig.close()
  })

  /** Both spellings. */
  const one = async (subject: string, word = 'messages'): Promise<string> =>
    `${box.account}/${word}/${await box.indexed(subject)}`
  /** Subjects on the server. */
  const onServer = (folder: string, email = box.email): string[] =>
    rig.imap.folder(email, folder).messages.map(({ raw }) => /^Subject: (.*)$/m.exec(raw.toString())?.[1]?.trim() ?? '')
  const flagsOf = (folder: string, subject: string, email = box.email): string[] => {
    const { messages } = rig.imap.folder(email, folder)
    const found = messages.filter(({ raw }) => raw.includes(`Subject: ${subject}\r\n`))
    assert.equal(found.length, 1, `${subject} in ${folder}`)
    return [...(found[0]?.flags ?? [])].filter((flag) => flag !== '\\Recent').sort()
  }
  const refused = async (
    method: string,
    path: string,
    body: Json | undefined,
    status: number,
    value: RegExp,
  ): Promise<void> => {
    const answer = await rig.call(method, path, body)
    assert.equal(answer.status, status, answer.text)
    assert.match(String(answer.json['value']), value)
  }

  test('POST flags: success and the flags that it has now, under both spellings', async () => {
    const path = await one('flagged', 'message')
    assert.deepEqual(await rig.ok('POST', `${path}/flags`, { seen: 1, flagged: '1' }), {
      success: true,
      flags: { seen: true, answered: false, flagged: true, deleted: false, draft: false },
    })
    const answer = await rig.ok('POST', `${await one('flagged')}/flags`, { seen: 0, answered: 1 })
    assert.deepEqual(answer['flags'], { seen: false, answered: true, flagged: true, deleted: false, draft: false })
    assert.deepEqual(flagsOf('INBOX', 'flagged'), ['\\Answered', '\\Flagged'])
    await refused('POST', `${path}/flags`, {}, 400, /^seen: /)
    await refused('POST', `${box.account}/messages/nobody@x.example/flags`, { seen: 1 }, 404, /nobody@x.example/)
  })

  test('copy within a source, with flags; asked for twice, it is there once; an empty source is none', async () => {
    const path = await one('copied')
    const copy = { dst_folder: 'Archive', flag_seen: 1, flag_flagged: 1 }
    for (const source of [{}, { dst_source: '' }])
      assert.deepEqual(await rig.ok('POST', path, { ...copy, ...source }), { success: true })
    await refused('POST', path, { ...copy, dst_folder: '' }, 400, /^dst_folder: /)
    assert.deepEqual(flagsOf('Archive', 'copied'), ['\\Flagged', '\\Seen'])
    assert.deepEqual(flagsOf('INBOX', 'copied'), [])
  })

  test('move within a source, to a folder by its use; again changes only flags', async () => {
    const path = await one('moved', 'message')
    assert.deepEqual(await rig.ok('POST', path, { dst_folder: '\\Trash', move: 1, dst_source: box.label }), {
      success: true,
    })
    assert.deepEqual(flagsOf('Trash', 'moved'), [])
    assert.deepEqual(await rig.ok('POST', path, { dst_folder: 'Trash', move: 1, flag_answered: 1 }), { success: true })
    assert.deepEqual(flagsOf('Trash', 'moved'), ['\\Answered'])
    assert(!onServer('INBOX').includes('moved'))
  })

  test('move to where a copy lies: it leaves INBOX, and asked for twice nothing else', async () => {
    const path = await one('doubled')
    for (const folder of ['Archive', 'Sent']) await rig.ok('POST', path, { dst_folder: folder })
    const lies = (): string[] => ['INBOX', 'Archive', 'Sent'].filter((name) => onServer(name).includes('doubled'))
    assert.deepEqual(lies(), ['INBOX', 'Archive', 'Sent'])
    const moves = [1, 2].map(() => rig.ok('POST', path, { dst_folder: 'Archive', move: 1 }))
    assert.deepEqual(await Promise.all(moves), [{ success: true }, { success: true }])
    await rig.ok('POST', path, { dst_folder: 'Archive', move: 1, flag_seen: 1 })
    assert.deepEqual(lies(), ['Archive', 'Sent'])
    assert.deepEqual(flagsOf('Archive', 'doubled'), ['\\Seen'])
  })

  test('copy to another source: flags, bytes and time of arrival go along; again makes no second one', async () => {
    await rig.ok('POST', `${await one('sent')}/flags`, { seen: 1, flagged: 1, deleted: 1 })
    for (let n = 0; n < 2; n += 1)
      await rig.ok('POST', await one('sent'), {
        dst_folder: 'Archive',
        dst_source: otherLabel,
        flag_flagged: 0,
      })
    assert.deepEqual(flagsOf('Archive', 'sent', other), ['\\Seen'])
    const of = (email: string, folder: string) =>
      rig.imap.folder(email, folder).messages.find(({ raw }) => raw.includes('Subject: sent\r\n'))
    const [before, copy] = [of(box.email, 'INBOX'), of(other, 'Archive')]
    assert(before !== undefined && copy !== undefined)
    assert(copy.raw.equals(before.raw))
    assert.equal(Math.floor(copy.internalDate / 1000), Math.floor(before.internalDate / 1000))
    assert.deepEqual(
      readdirSync(rig.engine.config.MAILROOM_DATA_DIR).filter((name) => name.startsWith('spool')),
      [],
    )
  })

  test('move to another source: gone here, there it is; the same call again finds it done', async () => {
    const path = await one('given')
    await rig.ok('POST', path, { dst_folder: 'Archive' })
    const move = { dst_folder: 'INBOX', dst_source: otherLabel, move: 1 }
    assert.deepEqual(await rig.ok('POST', path, move), { success: true })
    assert.deepEqual([onServer('INBOX').includes('given'), onServer('Archive').includes('given')], [false, false])
    assert.deepEqual(flagsOf('INBOX', 'given', other), [])
    assert.deepEqual(await rig.ok('POST', path, move), { success: true })
    await refused('POST', path, { ...move, dst_folder: 'Archive' }, 404, /^message /)
    assert.deepEqual(onServer('INBOX', other), ['given'])
  })

  test('two sources of one mailbox: a move between them is one within the mailbox, and loses nothing', async () => {
    const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
    const twin = String((await rig.ok('POST', `${box.account}/sources`, userBody(server, box.email)))['label'])
    assert.notEqual(twin, box.label)
    const path = await one('alone')
    const lies = (): string[] => ['INBOX', 'Archive'].filter((name) => onServer(name).includes('alone'))
    await rig.ok('POST', path, { dst_folder: 'INBOX', dst_source: twin, move: 1 })
    assert.deepEqual(lies(), ['INBOX'])
    await rig.ok('POST', path, { dst_folder: 'Archive', dst_source: twin, move: 1 })
    assert.deepEqual(lies(), ['Archive'])
    await rig.ok('POST', path, { dst_folder: 'Archive', dst_source: twin, move: 1 })
    assert.deepEqual(lies(), ['Archive'])
    await rig.ok('DELETE', `${box.account}/sources/${encodeURIComponent(twin)}`)
  })

  test('nor does one under another name of the server', async () => {
    const server = { host: 'localhost', port: rig.imap.port, password: 'secret' }
    const twin = String((await rig.ok('POST', `${box.account}/sources`, userBody(server, box.email)))['label'])
    const path = await one('disguised')
    const lies = (): string[] => ['INBOX', 'Archive'].filter((name) => onServer(name).includes('disguised'))
    await rig.ok('POST', path, { dst_folder: 'INBOX', dst_source: twin, move: 1 })
    assert.deepEqual(lies(), ['INBOX'])
    await rig.ok('POST', await one('disguised'), { dst_folder: 'Archive', dst_source: twin, move: 1 })
    assert.deepEqual(lies(), ['Archive'])
    await rig.ok('DELETE', `${box.account}/sources/${encodeURIComponent(twin)}`)
  })

  test('the same move asked for at the same time is done once, and is a success for both', async () => {
    const path = await one('both')
    const move = { dst_folder: 'Archive', dst_source: otherLabel, move: 1 }
    const answers = await Promise.all([rig.call('POST', path, move), rig.call('POST', path, move)])
    assert.deepEqual(
      answers.map(({ text }) => text),
      ['{"success":true}', '{"success":true}'],
    )
    assert.deepEqual(flagsOf('Archive', 'both', other), [])
    assert(!onServer('INBOX').includes('both'))
  })

  test('what is wrong with a copy is named, and nothing has changed', async () => {
    const path = await one('kept')
    await refused('POST', path, { move: 1 }, 400, /^dst_folder: /)
    await refused('POST', path, { dst_folder: 'Nowhere', move: 1 }, 404, /^folder Nowhere is invalid$/)
    await refused('POST', path, { dst_folder: 'Archive', dst_source: 'no::one' }, 404, /^source no::one is invalid$/)
    await refused('POST', path, { dst_folder: 'Nowhere', dst_source: otherLabel }, 404, /^folder Nowhere is invalid$/)
    await refused('POST', path, { dst_folder: 'Archive', move: 'perhaps' }, 400, /^move: /)
    rig.imap.hooks = { command: ({ name }) => (name === 'APPEND' ? { tagged: 'NO [OVERQUOTA] full' } : undefined) }
    await refused('POST', path, { dst_folder: 'Archive', dst_source: otherLabel, move: 1 }, 503, /full/)
    rig.imap.hooks = {}
    assert.deepEqual([onServer('INBOX').includes('kept'), onServer('Archive', other).includes('kept')], [true, false])
  })

  test('a message that the mail server gives cut short stays where it is', async () => {
    const cut = shortSection('', 50)
    const move = { dst_folder: 'Archive', dst_source: otherLabel, move: 1 }
    rig.imap.hooks = { send: (response) => (response.includes('BODY[]<0>') ? cut(response) : response) }
    await refused('POST', await one('twice'), move, 503, /gives 50 of its \d+ bytes/)
    rig.imap.hooks = {}
    assert.deepEqual([onServer('INBOX').includes('twice'), onServer('Archive', other).includes('twice')], [true, false])
    await rig.ok('POST', await one('twice'), move)
    assert.deepEqual([onServer('INBOX').includes('twice'), onServer('Archive', other).includes('twice')], [false, true])
  })

  test('folders of a message: added, taken out, and said as a whole', async () => {
    const path = `${await one('foldered')}/folders`
    const lies = (): string[] =>
      ['INBOX', 'Archive', 'Sent', 'Trash'].filter((name) => onServer(name).includes('foldered'))
    assert.deepEqual(await rig.ok('POST', path, { add: 'Archive' }), { success: true })
    assert.deepEqual(lies(), ['INBOX', 'Archive'])
    await rig.ok('POST', path, { add: '\\Sent', remove: 'INBOX' })
    assert.deepEqual(lies(), ['Archive', 'Sent'])
    await rig.ok('POST', path, { remove: 'Sent' })
    await refused('POST', path, { remove: 'Archive' }, 400, /^remove: .*no other folder/)
    await refused('POST', path, {}, 400, /^add: /)
    await refused('POST', path, { add: 'Nowhere' }, 404, /^folder Nowhere is invalid$/)
    assert.deepEqual(lies(), ['Archive'])
    const put = async (body: string, type = 'application/json') =>
      rig.call('PUT', path, undefined, { headers: { authorization: basic, 'content-type': type }, body })
    assert.equal((await put('[{"name":"INBOX"},{"symbolic_name":"\\\\Sent"}]')).text, '{"success":true}')
    assert.deepEqual(lies(), ['INBOX', 'Sent'])
    assert.equal((await put('{"folders":["Archive"]}')).status, 200)
    assert.deepEqual(lies(), ['Archive'])
    const form = new URLSearchParams({ folders: '[{"name":"INBOX"}]' }).toString()
    assert.equal((await put(form, 'application/x-www-form-urlencoded')).status, 200)
    assert.deepEqual(lies(), ['INBOX'])
    assert.equal((await put('folders=Archive', 'application/x-www-form-urlencoded')).status, 200)
    assert.deepEqual(lies(), ['Archive'])
    assert.equal((await put('[]')).status, 400)
    assert.equal((await put('["Nowhere"]')).status, 404)
    const headers = { authorization: basic, 'content-type': 'application/json' }
    assert.equal((await rig.call('POST', path, undefined, { headers, body: '[1]' })).status, 400)
    assert.deepEqual(lies(), ['Archive'])
  })

  test('DELETE removes it from all folders', async () => {
    const path = await one('dropped', 'message')
    await rig.ok('POST', path, { dst_folder: 'Archive' })
    assert.deepEqual(await rig.ok('DELETE', path), { success: true })
    assert.deepEqual([onServer('INBOX').includes('dropped'), onServer('Archive').includes('dropped')], [false, false])
    await refused('DELETE', path, undefined, 404, /^message /)
  })

  test('folders are made, emptied of what is deleted, and removed', async () => {
    const folder = `${box.source}/folders/Projects/New`
    for (const method of ['PUT', 'POST']) {
      const at = method === 'PUT' ? folder : `${box.source}/folders/Projects%2FOther`
      const made = await rig.ok(method, at)
      assert.equal(made['success'], true)
      assert.match(
        String(made['resource_url']),
        /\/2\.0\/accounts\/\w+\/sources\/writer%3A%3Aimap\/folders\/Projects%2F/,
      )
    }
    await refused('PUT', `${box.source}/folders/Projects.New?delim=.`, undefined, 409, /exists/)
    rig.imap.append(box.email, 'Projects/New', mail({ to: box.email, subject: 'old' }), ['\\Deleted'])
    rig.imap.append(box.email, 'Projects/New', mail({ to: box.email, subject: 'new' }))
    assert.deepEqual(await rig.ok('POST', `${folder}/expunge`), { success: true })
    assert.deepEqual(onServer('Projects/New'), ['new'])
    // The folder is open now, and the connection has not heard of this one.
    rig.imap.append(box.email, 'Projects/New', mail({ to: box.email, subject: 'just now' }), ['\\Deleted'])
    assert.deepEqual(await rig.ok('POST', `${folder}/expunge`), { success: true })
    assert.deepEqual(onServer('Projects/New'), ['new'])
    assert.deepEqual(await rig.ok('DELETE', folder), { success: true })
    assert.throws(() => rig.imap.folder(box.email, 'Projects/New'))
    await refused('DELETE', folder, undefined, 404, /^folder Projects\/New is invalid$/)
    await refused('POST', `${folder}/expunge`, undefined, 404, /^folder Projects\/New is invalid$/)
    await refused('DELETE', `${box.source}/folders/inbox`, undefined, 400, /^folder: INBOX/)
  })

  test('an expunged message is a 404 at once for the caller, in INBOX too; what is not \\Deleted stays', async () => {
    const going = ['one', 'two', 'three', 'four', 'five', 'six']
    const mine = await v2Mailbox(rig, 'expunger', { subjects: ['stays', ...going] })
    for (const [at, subject] of going.entries()) {
      const path = `${mine.account}/messages/${await mine.indexed(subject)}`
      const folder = at % 2 === 0 ? 'INBOX' : 'Archive'
      // The move puts it into the index of a folder that has not been read since.
      if (folder !== 'INBOX') await rig.ok('POST', path, { dst_folder: folder, move: 1 })
      await rig.ok('POST', `${path}/flags`, { deleted: 1 })
      // What comes at the same time leaves the number of messages as it was.
      if (at % 3 === 0) rig.imap.append(mine.email, folder, mail({ to: mine.email, subject: `${subject} comes` }))
      assert.deepEqual(await rig.ok('POST', `${mine.source}/folders/${folder}/expunge`), { success: true })
      await refused('GET', path, undefined, 404, /^message /)
      const { nb_messages } = await rig.ok('GET', `${mine.source}/folders/${folder}`)
      assert.equal(nb_messages, onServer(folder, mine.email).length, subject)
    }
    await rig.ok('GET', `${mine.account}/messages/${await mine.indexed('stays')}`)
  })

  test('folders are emptied and removed by their use too, hidden or not', async () => {
    const mine = await v2Mailbox(rig, 'user')
    for (const [use, name] of [
      ['\\Trash', 'Trash'],
      ['\\sent', 'Sent'],
    ] as const) {
      const folder = `${mine.source}/folders/${encodeURIComponent(use)}`
      rig.imap.append(mine.email, name, mail({ to: mine.email, subject: 'old' }), ['\\Deleted'])
      assert.deepEqual(await rig.ok('POST', `${folder}/expunge`), { success: true })
      assert.deepEqual(onServer(name, mine.email), [])
      assert.deepEqual(await rig.ok('DELETE', folder), { success: true })
      assert.throws(() => rig.imap.folder(mine.email, name))
    }
    await refused('DELETE', `${mine.source}/folders/%5CInbox`, undefined, 400, /^folder: INBOX/)
    await refused('DELETE', `${mine.source}/folders/%5CAll`, undefined, 404, /^folder \\All is invalid$/)
  })

  const upload = (
    fields: Readonly<Record<string, string>>,
    message: string | Uint8Array<ArrayBuffer> | null,
    name = 'message',
  ) => {
    const form = new FormData()
    for (const [field, value] of Object.entries(fields)) form.append(field, value)
    if (message !== null) form.append(name, new Blob([message], { type: 'message/rfc822' }), 'mail.eml')
    return fetch(`${rig.url}${box.account}/messages`, { method: 'POST', headers: { authorization: basic }, body: form })
  }
  const answered = async (response: Response, status: number): Promise<Json> => {
    const text = await response.text()
    assert.equal(response.status, status, text)
    return JSON.parse(text) as Json
  }

  test('a message is added by multipart: byte for byte, with flags, and its id is answered', async () => {
    const raw = mail({ to: box.email, subject: 'added', text: 'grün\r\n'.repeat(5000) })
    const made = await answered(
      await upload({ dst_folder: 'Archive', flag_seen: '1', dst_source: box.label }, raw),
      200,
    )
    const id = await box.indexed('added')
    assert.deepEqual(made, {
      success: true,
      message_id: id,
      email_message_id: '<added@sender.example>',
      resource_url: `${rig.url}${box.account}/messages/${id}`,
    })
    assert.deepEqual(flagsOf('Archive', 'added'), ['\\Seen'])
    const found = rig.imap.folder(box.email, 'Archive').messages.find((one) => one.raw.includes('Subject: added\r\n'))
    assert(found?.raw.equals(Buffer.from(raw)))
  })

  test('LF alone becomes CRLF; a message may come as text; without a Message-ID none is answered', async () => {
    const bare = 'From: ben@example.org\nSubject: bare\n\nHello\n'
    const made = await answered(await upload({ dst_folder: 'Archive' }, bare), 200)
    assert.equal(made['email_message_id'], undefined)
    assert.equal(made['message_id'], await box.indexed('bare'))
    const found = rig.imap.folder(box.email, 'Archive').messages.find((one) => one.raw.includes('Subject: bare'))
    assert.equal(found?.raw.toString(), bare.replaceAll('\n', '\r\n'))
    await rig.ok('POST', `${box.account}/messages`, { dst_folder: 'Archive', message: 'Subject: text\r\n\r\nHi' })
    assert.equal(flagsOf('Archive', 'text').length, 0)
  })

  test('what is wrong with a new message is named, and nothing is added', async () => {
    const raw = mail({ to: box.email, subject: 'wrong' })
    const value = async (response: Response, status: number): Promise<string> =>
      String((await answered(response, status))['value'])
    assert.match(await value(await upload({}, raw), 400), /^dst_folder: /)
    assert.equal(await value(await upload({ dst_folder: 'Nowhere' }, raw), 404), 'folder Nowhere is invalid')
    assert.equal(await value(await upload({ dst_folder: 'INBOX' }, null), 400), 'message: is required')
    assert.equal(await value(await upload({ dst_folder: 'INBOX' }, raw, 'file'), 400), 'message: is required')
    for (const bad of ['', '\r\nbody', '<html></html>', 'hello\r\n\r\nworld', new Uint8Array([0, 1, 2, 255])])
      assert.match(await value(await upload({ dst_folder: 'INBOX' }, bad), 400), /^message: /)
    const large = `${raw}${'x'.repeat(messageLimit)}`
    assert.match(await value(await upload({ dst_folder: 'INBOX' }, large), 413), /^message: larger than 100000 bytes/)
    const huge = `${raw}${'x'.repeat(2 * messageLimit)}`
    assert.match(await value(await upload({ dst_folder: 'INBOX' }, huge), 413), /^(?:message|body): larger than/)
    assert.equal(await value(await upload({ dst_folder: 'INBOX', dst_source: 'x' }, raw), 404), 'source x is invalid')
    rig.imap.hooks = { command: ({ name }) => (name === 'APPEND' ? { tagged: 'NO [OVERQUOTA] full' } : undefined) }
    assert.match(await value(await upload({ dst_folder: 'INBOX' }, raw), 503), /full/)
    rig.imap.hooks = {}
    const cut = await rig.call('POST', `${box.account}/messages`, undefined, {
      headers: { authorization: basic, 'content-type': 'multipart/form-data; boundary=b' },
      body: '--b\r\ncontent-disposition: form-data; name="message"; filename="m"\r\n\r\nSubject: wrong\r\n',
    })
    assert.equal(cut.status, 400, cut.text)
    assert(!onServer('INBOX').includes('wrong'))
  })

  test('an upload without a key is 401, and other calls have the usual limit', async () => {
    const form = new FormData()
    form.append('message', new Blob(['x'.repeat(80_000)]), 'mail.eml')
    const response = await fetch(`${rig.url}${box.account}/messages`, { method: 'POST', body: form })
    assert.equal((await answered(response, 401))['type'], 'error')
    await refused(
      'POST',
      `${box.account}/messages`,
      { dst_folder: 'INBOX', message: 'x'.repeat(30_000) },
      413,
      /^body: /,
    )
  })

  test('a message that is written by 2.0 is told once', async () => {
    await box.deliver({ subject: 'fence' })
    await until('quiet', async () => (await box.indexed('fence')).length > 0)
    const { changes } = await rig.ok('GET', `/lite/users/${box.userId}/changes?limit=1000`)
    const id = await box.indexed('added')
    const told = (changes as Json[]).filter((change) => change['message_id'] === id)
    assert.deepEqual(
      told.map(({ event, folder }) => [event, folder]),
      [['received', 'Archive']],
    )
  })
})
