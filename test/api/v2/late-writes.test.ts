/** Writes of 2.0 on a mail server that is slow, or that fails when it has the message already. */
import assert from 'node:assert/strict'
import { after, afterEach, before, suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { basic } from '../core/raw-call.ts'
import { startLiteRig, type Json, type LiteRig } from '../lite/rig.ts'
import { addSource, v2Mailbox, type V2Mailbox } from './rig.ts'

const other = 'late-2@mail.example'

suite('late writes of 2.0', () => {
  let rig: LiteRig
  let box: V2Mailbox
  let otherLabel = ''
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_COMMAND_TIMEOUT: '6s' } })
    box = await v2Mailbox(rig, 'late')
    rig.imap.addUser(other, {})
    otherLabel = (await addSource(rig, box, other)).label
  })
  afterEach(() => {
    rig.imap.hooks = {}
  })
  after(async () => {
    await rig.close()
  })

  const held = (subject: string, email: string): string[] =>
    rig.imap
      .folder(email, 'Archive')
      .messages.map(({ raw }) => raw.toString())
      .filter((raw) => raw.includes(`Subject: ${subject}\r\n`))

  for (const [what, subject, answer] of [
    ['is not given', 'refusedlook', { tagged: 'NO [UNAVAILABLE] busy' }],
    ['breaks off', 'cutlook', { close: 'end' }],
  ] as const)
    test(`what the mail server has is added, also when a look at it ${what}`, async () => {
      const appended = new Set<string>()
      rig.imap.hooks = {
        command: ({ name, user, text }) => {
          if (name === 'APPEND') appended.add(user?.name ?? '')
          return / SELECT "?Archive/.test(text) && appended.delete(user?.name ?? '') ? answer : undefined
        },
      }
      const made: Json = await rig.ok('POST', `${box.account}/messages`, {
        dst_folder: 'Archive',
        message: mail({ to: box.email, subject }),
      })
      assert.equal(made['success'], true)
      const id = await box.indexed(subject)
      // The other account would have to connect again.
      if (what === 'breaks off') rig.imap.hooks = {}
      await rig.ok('POST', `${box.account}/messages/${id}`, { dst_folder: 'Archive', dst_source: otherLabel, move: 1 })
      assert.deepEqual([held(subject, box.email).length, held(subject, other).length], [0, 1])
    })

  test('a large message is waited for while it makes progress', async () => {
    const letter = (subject: string): string =>
      mail({ to: box.email, subject, text: 'x'.repeat(70).concat('\r\n').repeat(12_000) })
    const id = await box.deliver({ subject: 'largesent', text: letter('text') })
    // Each well within the time of a command, and all of them not; the size of the message allows 13 s more.
    rig.imap.hooks = {
      command: ({ text }) => (/ (?:APPEND|SELECT) "?Archive/.test(text) ? { delayMs: 2400, proceed: true } : undefined),
    }
    // One after the other: the connection of an account has one piece of work at a time.
    await rig.ok('POST', `${box.account}/messages`, { dst_folder: 'Archive', message: letter('largeadded') })
    await rig.ok('POST', `${box.account}/messages/${id}`, { dst_folder: 'Archive', dst_source: otherLabel })
    assert.deepEqual([held('largeadded', box.email).length, held('largesent', other).length], [1, 1])
  })

  /** Holds back what asks for the message, until the test says so. */
  const slowToAsk = () => {
    const [asked, given] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()]
    rig.imap.hooks = {
      // Too late for the call, and not for APPEND, which begins after that.
      command: ({ name }) => (name === 'UID SEARCH' ? { delayMs: 4000, proceed: true } : undefined),
      async send(response) {
        if (!response.toString().startsWith('+ go')) return response
        asked.resolve(undefined)
        await given.promise
        return response
      },
    }
    return { asked: asked.promise, give: () => given.resolve(undefined) }
  }

  test('after a 504 the transfer goes on, and the same call again makes no second copy', async () => {
    const path = `${box.account}/messages/${await box.deliver({ subject: 'onwards' })}`
    const copy = { dst_folder: 'Archive', dst_source: otherLabel }
    const { give } = slowToAsk()
    const answer = await rig.call('POST', path, copy)
    assert.equal(answer.status, 504, answer.text)
    give()
    await until('the copy', () => held('onwards', other).length > 0)
    rig.imap.hooks = {}
    await rig.ok('POST', path, copy)
    assert.equal(held('onwards', other).length, 1)
  })

  test('a message under way arrives whole when the client goes away', async () => {
    const form = new FormData()
    form.append('dst_folder', 'Archive')
    form.append('message', new Blob([mail({ to: box.email, subject: 'alone' })]), 'mail.eml')
    const { asked, give } = slowToAsk()
    const leaving = new AbortController()
    const headers = { authorization: basic }
    const { signal } = leaving
    const call = fetch(`${rig.url}${box.account}/messages`, { method: 'POST', headers, body: form, signal })
    await asked
    leaving.abort()
    await assert.rejects(call, { name: 'AbortError' })
    // By then the call has let go of it.
    await sleep(200)
    give()
    await box.indexed('alone')
    assert.equal(held('alone', box.email).length, 1)
  })
})
