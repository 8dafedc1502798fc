/**
 * Folders that another client renames, makes anew or moves mail to, on real Dovecot, long before the next poll: the
 * index finds out by itself within seconds, and until then nobody hears that mail is gone which is there.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { mail } from '../../support/mail.ts'
import type { RawImap } from '../../support/raw-imap.ts'
import { needs } from '../../support/require.ts'
import { until } from '../../support/until.ts'
import { startMessageRig, type Json, type Mailbox, type MessageRig, type RawAnswer } from './messages-rig.ts'

const letter = (subject: string): string => mail({ to: 'other@mail.example', subject, text: `text of ${subject}` })

interface Opened {
  readonly mailbox: Mailbox
  /** Another client. */
  readonly imap: RawImap
}

suite('what other clients do to folders, on Dovecot', needs('dovecot'), () => {
  let rig: MessageRig
  before(async () => {
    rig = await startMessageRig({ MAILROOM_FOLDER_POLL: '5m' })
  })
  after(() => rig.close())

  /** A mailbox that has been read, with mail in INBOX and in the folder. */
  async function open(name: string, folder: string, subjects: readonly string[]): Promise<Opened> {
    const imap = await rig.dovecot.connect(`${name}@mail.example`)
    await imap.command(`CREATE ${folder}`)
    if (subjects.length > 0) await imap.append(folder, subjects.map(letter))
    const mailbox = await rig.mailbox(name, ['in one', 'in two'].map(letter))
    await mailbox.holds(2 + subjects.length)
    const { accounts } = rig.engine.store
    await until('the initial sync', async () => (await accounts.get(mailbox.accountId))?.resume.initialSyncAt)
    return { mailbox, imap }
  }

  async function idOf({ path }: Mailbox, subject: string): Promise<string> {
    const [found] = await rig.list(`${path}/messages?subject=${encodeURIComponent(subject)}`)
    return String(found?.['message_id'])
  }

  /** What is neither whole nor a true word of why not. */
  function isFalse(answer: RawAnswer): boolean {
    const { status, headers } = answer
    if (status === 200) return errorsIn(answer).some((error) => !/^folder \S+ is being read anew$/.test(error))
    return status !== 503 || !(Number(headers['retry-after']) >= 1) || !/read/.test(String(answer.json()['value']))
  }

  const isWhole = (answer: RawAnswer): boolean => answer.status === 200 && errorsIn(answer).length === 0

  function errorsIn(answer: RawAnswer): string[] {
    if (!answer.bytes.toString().startsWith('[{')) return []
    return (answer.json() as unknown as Json[]).flatMap((one) => one['body_error'] ?? []).map(String)
  }

  /** Each way to the message answers truly at once, and in full soon. */
  async function heals({ path }: Mailbox, id: string): Promise<void> {
    const message = `${path}/messages/${id}`
    const calls = [
      ['GET', `${path}/messages?include_body=1&limit=10`],
      ['GET', `${message}/body`],
      ['GET', message],
      ['GET', `${message}?include_headers=1`],
      ['GET', `${message}/raw`],
      ['POST', `${message}/read`],
    ] as const
    const said: string[] = []
    const wrong: string[] = []
    const ask = async (method: string, call: string): Promise<boolean> => {
      const answer = await rig.call(method, call)
      const line = `${method} ${call}: ${answer.status} ${answer.bytes.toString().slice(0, 300)}`
      if (isFalse(answer)) wrong.push(line)
      said.push(line)
      return isWhole(answer)
    }
    const healed = async (): Promise<boolean> => {
      const whole: boolean[] = []
      for (const [method, call] of calls) whole.push(await ask(method, call))
      return whole.every(Boolean) || wrong.length > 0
    }
    await until('all answers in full', healed, { withinMs: 20_000, explain: () => said.slice(-12).join('\n') })
    assert.deepEqual(wrong, [])
  }

  test('a renamed folder: the same messages, and no word that they are gone', async () => {
    const { mailbox, imap } = await open('renamer', 'P', ['kept one', 'kept two'])
    const id = await idOf(mailbox, 'kept one')
    // the command connection has it open
    await rig.ok(`${mailbox.path}/messages/${id}/body`)
    await imap.command('RENAME P Q')
    await heals(mailbox, id)
    assert.deepEqual((await rig.ok(`${mailbox.path}/messages/${id}`))['folders'], ['Q'])
    assert.equal(await idOf(mailbox, 'kept one'), id)
    await imap.close()
  })

  test('a renamed folder that is written to first', async () => {
    const { mailbox, imap } = await open('writer', 'P', ['kept one', 'kept two'])
    const ids = [await idOf(mailbox, 'kept one'), await idOf(mailbox, 'kept two')] as const
    await rig.ok(`${mailbox.path}/messages/${ids[0]}/body`)
    await imap.command('RENAME P Q')
    for (const [method, call] of [
      ['PUT', `/messages/${ids[1]}?new_folder_id=Archive`],
      ['POST', `/messages/${ids[0]}/flags`],
    ] as const) {
      const body = method === 'POST' ? { body: { flagged: 1 } } : {}
      const answer = await rig.call(method, `${mailbox.path}${call}`, body)
      assert(!isFalse(answer), `${answer.status} ${answer.bytes.toString()}`)
    }
    await heals(mailbox, ids[0])
    await imap.close()
  })

  test('a folder that is removed and made anew with the same mail', async () => {
    const { mailbox, imap } = await open('maker', 'P', ['kept one', 'kept two'])
    const id = await idOf(mailbox, 'kept two')
    await rig.ok(`${mailbox.path}/messages/${id}/body`)
    await imap.command('CREATE Kept')
    await imap.command('SELECT P')
    // so that UIDs are others too
    await imap.command('UID COPY 2 Kept')
    await imap.command('UID COPY 1 Kept')
    await imap.command('UNSELECT')
    await imap.command('DELETE P')
    await imap.command('RENAME Kept P')
    await heals(mailbox, id)
    assert.deepEqual((await rig.ok(`${mailbox.path}/messages/${id}`))['folders'], ['P'])
    assert.match(JSON.stringify(await rig.ok(`${mailbox.path}/messages/${id}/body`)), /text of kept two/)
    await imap.close()
  })

  test('mail that was removed with its folder is gone', async () => {
    const { mailbox, imap } = await open('remover', 'P', ['lost'])
    const message = `${mailbox.path}/messages/${await idOf(mailbox, 'lost')}`
    await rig.ok(`${message}/body`)
    await imap.command('DELETE P')
    assert([404, 503].includes((await rig.call('GET', `${message}/body`)).status))
    await until('a 404', async () => (await rig.call('GET', `${message}/body`)).status === 404)
    await imap.close()
  })

  test('mail that was removed with most of the folders at once is gone', async () => {
    const { mailbox, imap } = await open('clearer', 'P', ['lost'])
    const message = `${mailbox.path}/messages/${await idOf(mailbox, 'lost')}`
    const others = Array.from({ length: 12 }, (_, index) => `P${index}`)
    for (const name of others) await imap.command(`CREATE ${name}`)
    await rig.engine.accounts.refreshFolders(mailbox.accountId)
    // One that is opened for the first time while they go would bring a list that still has some of them.
    await until('all are opened', async () => {
      const folders = await rig.engine.store.folders.list(mailbox.accountId)
      return folders.length > others.length && folders.every(({ cursor }) => cursor !== null)
    })
    await rig.ok(`${message}/body`)
    for (const name of ['P', ...others]) await imap.command(`DELETE ${name}`)
    await until('a 404', async () => (await rig.call('GET', `${message}/body`)).status === 404)
    const names = async () => (await rig.list(`${mailbox.path}/folders`)).map((folder) => String(folder['name']))
    await until('no such folder', async () => !(await names()).some((name) => name.startsWith('P')))
    await imap.close()
  })

  test('a folder that is removed with others below it left in place holds no mail any more', async () => {
    const { mailbox, imap } = await open('parent', 'P', ['lost'])
    await rig.engine.accounts.createFolder(mailbox.accountId, 'P/Child')
    const message = `${mailbox.path}/messages/${await idOf(mailbox, 'lost')}`
    await rig.ok(`${message}/body`)
    await imap.command('DELETE P')
    await until('a 404', async () => (await rig.call('GET', `${message}/body`)).status === 404)
    // A list that is read while the folder ends is a 503.
    let list = await rig.call('GET', `${mailbox.path}/messages?subject=lost`)
    await until('a list', async () => {
      if (list.status === 503) list = await rig.call('GET', `${mailbox.path}/messages?subject=lost`)
      return list.status !== 503
    })
    assert.deepEqual([list.status, list.json()], [200, []])
    await imap.close()
  })

  test('a move out of INBOX is found soon, and told as a move', async () => {
    const { mailbox, imap } = await open('mover', 'P', [])
    const id = await idOf(mailbox, 'in one')
    await imap.command('SELECT INBOX')
    await imap.command('UID MOVE 1 P')
    const message = `${mailbox.path}/messages/${id}`
    await until('it lies there', async () => ((await rig.ok(message))['folders'] as string[])[0] === 'P')
    assert.equal((await rig.call('GET', `${message}/body`)).status, 200)
    const told = await rig.engine.store.changes.since(mailbox.accountId, 0, 100)
    assert.deepEqual(
      told.map(({ kind, path, messageId }) => [kind, path, messageId]),
      [['folder_added', 'P', id]],
    )
    await imap.close()
  })
})
