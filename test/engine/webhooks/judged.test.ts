/** Arrival, dry run and explain say the same of every filter; a thread is found as soon as its message is there. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { changeId } from '../../../engine/store/ids.ts'
import type { SyncBatch } from '../../../engine/store/port.ts'
import type { MessageFacts, WebhookFilters } from '../../../engine/store/records.ts'
import { emptyBatch } from '../../store/contract/mailbox.ts'
import { attachmentRecord } from '../../store/contract/records.ts'
import { until } from '../../support/until.ts'
import { arrive, changeOf, facts, freely } from './fixture.ts'
import { account, hook, rig, running, useScene } from './scene.ts'

useScene()

const words = fc.constantFrom('alpha', 'beta', 'gamma')
const folders = fc.constantFrom('INBOX', 'Work', 'Work/2024')

const allFilters: Readonly<Record<keyof WebhookFilters, fc.Arbitrary<string>>> = {
  to: fc.tuple(words, words).map(([a, b]) => `${a}@example.com, ${b}*`),
  from: words.map((word) => `${word}@*`),
  cc: fc.oneof(
    words,
    words.map((word) => `/^${word}$/`),
  ),
  subject: fc.oneof(
    words,
    words.map((word) => `/^${word}/`),
  ),
  thread: fc.constantFrom('<root-alpha@example.com>', 'root-beta@example.com', 'root-nowhere@example.com'),
  fileName: fc.constantFrom('*.pdf', 'a?pha*', '[bg]*'),
  folderAdded: fc.oneof(folders, fc.constant('w*')),
  folderRemoved: fc.oneof(folders, fc.constant('/2024$/')),
  toDomain: fc.constantFrom('example.com', 'example.org', 'com'),
  fromDomain: fc.constantFrom('example.com', 'mail.example.org', 'org'),
  bodySearch: fc.oneof(
    words,
    words.map((word) => `${word}*gold`),
  ),
}

/** One filter for sure, and up to two more. */
const someFilters: fc.Arbitrary<WebhookFilters> = fc
  .uniqueArray(fc.constantFrom(...(Object.keys(allFilters) as (keyof WebhookFilters)[])), {
    minLength: 1,
    maxLength: 3,
  })
  .chain((names) => fc.record(Object.fromEntries(names.map((name) => [name, allFilters[name]]))))

const someMail = fc.record({
  subject: words,
  from: words,
  to: words,
  cc: words,
  domain: fc.constantFrom('example.com', 'mail.example.org'),
  file: words,
  thread: fc.constantFrom('alpha', 'beta', 'other'),
  body: fc.tuple(words, words).map((both) => `${both.join(' ')} gold`),
  folder: folders,
  removed: fc.boolean(),
})
type Mail = typeof someMail extends fc.Arbitrary<infer T> ? T : never

/** A thread's id, the same for its first message and those that follow. */
function threadOf(name: string): string {
  return Buffer.from(`${name}--------`).toString('hex').slice(0, 16)
}

function factsOf(name: string, mail: Mail): MessageFacts {
  const base = facts(name)
  const file = attachmentRecord(0, `${mail.file}.pdf`)
  return {
    ...base,
    subject: mail.subject,
    threadId: threadOf(mail.thread),
    attachments: [file],
    addresses: {
      ...base.addresses,
      from: [{ name: '', email: `${mail.from}@${mail.domain}` }],
      to: [{ name: '', email: `${mail.to}@example.com` }],
      cc: [{ name: mail.cc, email: 'copy@example.com' }],
    },
  }
}

suite('arrival, dry run and explain', () => {
  test('are of one mind, whatever the filters', async () => {
    for (const name of ['alpha', 'beta']) {
      await arrive(rig.store, null, account, [{ facts: facts(`root-${name}`, { threadId: threadOf(name) }) }])
    }
    const used = new Set<string>()
    const outcomes = { sent: 0, not: 0 }
    let count = 0
    await fc.assert(
      fc.asyncProperty(someFilters, someMail, async (filters, mail) => {
        count += 1
        for (const name of Object.keys(filters)) used.add(name)
        const webhook = await hook('/judged', { filters })
        const arrival = {
          facts: { ...factsOf(`p${count}`, mail), sentAt: Date.now() + count * 60_000 },
          path: mail.folder,
        }
        const { messages } = await arrive(rig.store, null, account, [arrival])
        const [message] = messages
        assert.ok(message)
        rig.mail.bodies.set(message.id, { '1': mail.body })
        // Stored as the sync does it, with its change and the rows that are planned from it.
        const id = changeId(account.id, `p${count}`, '1', 1, 'added', 0)
        const kind = mail.removed ? ('folder_removed' as const) : ('received' as const)
        const change = changeOf(account, message, { ...arrival, kind, first: !mail.removed }, id)
        const planned = await running.webhooks.plan(account, [{ change, message }], (path) => path)
        const applied = await rig.store.sync.apply({
          ...(await batchOf(mail.folder)),
          changes: [change],
          outbox: planned,
        })
        running.webhooks.stored(account.id, planned, applied.changes)
        const sent = await wasSent(webhook.id)
        outcomes[sent ? 'sent' : 'not'] += 1

        const story = JSON.stringify({ filters, mail })
        const dry = (await running.webhooks.dryRun(webhook, account, 1, freely)).find(
          (row) => row.message.id === message.id,
        )
        const told = await running.webhooks.explain(webhook, account, message, freely)
        assert.equal(told.matched, sent, `${story} ${JSON.stringify(told.verdicts)}`)
        assert.equal(
          told.verdicts.every(({ matched }) => matched),
          sent,
          story,
        )
        if (sent) assert.equal(dry?.matched, true, story)
        // The dry run also tells of an arrival now: it may match where the removal did not, never the other way about.
        else if (!mail.removed) assert.equal(dry?.matched, false, `${story} ${JSON.stringify(dry?.verdicts)}`)
        await running.webhooks.remove(webhook)
      }),
      { numRuns: 150 },
    )
    assert.deepEqual([...used].sort(), Object.keys(allFilters).sort())
    // Some twenty of 150 are sent.
    assert.ok(outcomes.sent > 2 && outcomes.not > 2, JSON.stringify(outcomes))
  })

  test('of a message of which only a later event was seen, the dry run judges its arrival and explain that event', async () => {
    const webhook = await hook('/judged', { filters: { subject: 'old' } })
    const { messages } = await arrive(rig.store, null, account, [{ facts: facts('old') }])
    const [message] = messages
    assert.ok(message)
    const id = changeId(account.id, 'flags', '1', 1, 'flags', 1)
    const change = changeOf(account, message, { facts: message, kind: 'flags_changed', first: false }, id)
    await rig.store.sync.apply({ ...(await batchOf('INBOX')), changes: [change] })
    const [dry] = await running.webhooks.dryRun(webhook, account, 10, freely)
    const told = await running.webhooks.explain(webhook, account, message, freely)
    assert.equal(told.changes.length, 1)
    assert.equal(told.matched, false)
    assert.equal(told.verdicts.find(({ filter }) => filter === 'receive_all_changes')?.matched, false)
    assert.equal(dry?.matched, true)
  })
})

/** A batch that changes nothing yet. */
async function batchOf(path: string): Promise<SyncBatch> {
  const folder = await rig.store.folders.byPath(account.id, path)
  assert.ok(folder?.cursor)
  return emptyBatch(account, folder.id, folder.cursor)
}

async function wasSent(webhookId: string): Promise<boolean> {
  const rows = await until('all rows have ended', async () => {
    const now = await rig.store.outbox.list({ webhookId }, { limit: 10, offset: 0 })
    return now.every(({ state }) => state !== 'pending') ? now : null
  })
  return rows.some(({ state }) => state === 'delivered')
}

suite('a thread by a Message-ID', () => {
  test('whose message arrives later matches from then on', async () => {
    const webhook = await hook('/judged', { filters: { thread: '<later@example.com>', from: '/reply/' } })
    const reply = (name: string) => {
      const base = facts(name, { threadId: threadOf('later') })
      return { ...base, addresses: { ...base.addresses, from: [{ name: '', email: 'reply@example.org' }] } }
    }
    await arrive(rig.store, running.webhooks, account, [{ facts: reply('early') }])
    assert.equal(await wasSent(webhook.id), false)
    // The message itself is not from those that the webhook asks for: nothing is planned from it.
    const first = await arrive(rig.store, running.webhooks, account, [
      { facts: facts('later', { threadId: threadOf('later') }) },
    ])
    assert.equal(first.rows.length, 0)
    const { messages } = await arrive(rig.store, running.webhooks, account, [{ facts: reply('reply') }])
    assert.equal(await wasSent(webhook.id), true)
    const [message] = messages
    assert.ok(message)
    const told = await running.webhooks.explain(webhook, account, message, freely)
    assert.equal(told.deliveries.filter(({ state }) => state === 'delivered').length, 1)
  })
})
