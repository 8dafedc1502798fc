/** Create, edit, secrets, samples, dry run, explain, redelivery, levels, the change stream. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../../../engine/errors.ts'
import { createSealer } from '../../../engine/secrets/seal.ts'
import type { MessageFacts, WebhookFilters } from '../../../engine/store/records.ts'
import type { WebhookInput } from '../../../engine/webhooks/admin.ts'
import { bodySignatureValid, standardSignatureValid } from '../../support/receiver.ts'
import { attachmentRecord } from '../../store/contract/records.ts'
import { until } from '../../support/until.ts'
import { apiSecret, arrive, developerId, facts, freely } from './fixture.ts'
import { account, freshPath, hook, redelivered, rig, startAnew, receiver, user, running, useScene } from './scene.ts'

useScene()

function subjects(path: string): string[] {
  return receiver.at(path).map((one) => (one.body['message_data'] as { subject: string }).subject)
}

suite('webhooks as developers see them', () => {
  test('creation checks its input and stores nothing that is wrong', async () => {
    const owner = { developerId, userId: user.id, version: 'lite' } as const
    const bad: readonly (readonly [WebhookInput, RegExp])[] = [
      [{}, /^callback_url/],
      [{ callbackUrl: 'ftp://x' }, /^callback_url/],
      [{ callbackUrl: receiver.url('/x'), failureNotifUrl: 'nowhere' }, /^failure_notif_url/],
      [{ callbackUrl: receiver.url('/x'), filters: { subject: '/(/' } }, /^filter_subject.*position/],
      [{ callbackUrl: receiver.url('/x'), bodyType: 'pdf' }, /^body_type/],
    ]
    for (const [input, message] of bad) {
      await assert.rejects(
        running.webhooks.create(owner, input),
        (error: Error & { code?: string }) => error.code === 'bad_request' && message.test(error.message),
      )
    }
    assert.equal((await rig.store.webhooks.listByUser(user.id)).length, 0)
  })

  test('an edit changes what it names, and an empty string removes', async () => {
    const webhook = await hook(freshPath(), {
      filters: { subject: 'one', from: 'a@b.c' },
      includeBody: true,
      bodyType: 'text/plain',
    })
    const edited = await running.webhooks.edit(webhook, { filters: { subject: '', to: 'x@y.z' }, includeBody: false })
    assert.deepEqual(edited.filters, { from: 'a@b.c', to: 'x@y.z' })
    assert.equal(edited.includeBody, false)
    assert.equal(edited.bodyType, 'text/plain')
    assert.equal(edited.active, true)
    await assert.rejects(running.webhooks.edit(edited, { filters: { cc: '[' } }), { code: 'bad_request' })
    assert.deepEqual((await rig.store.webhooks.get(webhook.id))?.filters, edited.filters)
    await running.webhooks.remove(edited)
    assert.equal(await rig.store.webhooks.get(webhook.id), null)
    assert.equal(running.webhooks.view(webhook.id), null)
    assert.equal((await arrive(rig.store, running.webhooks, account, [{ facts: facts('nobody') }])).rows.length, 0)
  })

  test('application level covers users that were there before, and each webhook has its own rows', async () => {
    const [one, two] = [freshPath(), freshPath()]
    await hook(one, {}, null)
    await hook(two)
    const stranger = await rig.account(await rig.user())
    const { rows } = await arrive(rig.store, running.webhooks, account, [{ facts: facts('mine') }])
    assert.equal(new Set(rows.map((row) => row.id)).size, 2)
    await arrive(rig.store, running.webhooks, stranger, [{ facts: facts('other') }])
    await until('all', () => receiver.at(one).length === 2 && receiver.at(two).length === 1)
    assert.deepEqual(subjects(one).sort(), ['Subject of mine', 'Subject of other'])
    const kept = await rig.store.webhooks.get(rows[0]?.webhookId ?? '')
    assert.ok(kept)
  })

  test('a removed user takes its webhooks along', async () => {
    const webhook = await hook(freshPath())
    assert.ok(running.webhooks.view(webhook.id))
    await rig.store.users.remove(user.id)
    running.webhooks.forget(user.id)
    await until('its actor ended', () => running.webhooks.view(webhook.id) === null)
    assert.deepEqual(running.webhooks.facts(), [])
  })

  test('a replaced secret signs along until its overlap ends', async () => {
    const path = freshPath()
    const webhook = await hook(path)
    const old = running.webhooks.secret(webhook)
    const fresh = await running.webhooks.rotateSecret(webhook)
    assert.notEqual(fresh, old)
    assert.match(fresh, /^whsec_/)
    assert.equal(running.webhooks.secret(webhook), fresh)
    await running.webhooks.test(webhook)
    const [request] = receiver.at(path)
    assert.ok(request && standardSignatureValid(request, fresh) && standardSignatureValid(request, old))
    await running.stop()
    await startAnew({ MAILROOM_SECRET_OVERLAP: '1ms' })
    const stored = await rig.store.webhooks.get(webhook.id)
    assert.ok(stored)
    const last = await running.webhooks.rotateSecret(stored)
    await until('the overlap ends', async () => {
      await running.webhooks.test(stored)
      const newest = receiver.at(path).at(-1)
      return newest !== undefined && standardSignatureValid(newest, last) && !standardSignatureValid(newest, fresh)
    })
  })

  test('a node that has not heard of the webhook yet sends its sample', async () => {
    const other = await rig.start()
    const webhook = await hook(freshPath(), {}, null)
    assert.equal((await other.webhooks.test(webhook)).state, 'delivered')
    await other.stop()
  })

  test('replaced several times at once: every secret that was handed out signs', async () => {
    const path = freshPath()
    const webhook = await hook(path)
    const secrets = await Promise.all(Array.from({ length: 5 }, () => running.webhooks.rotateSecret(webhook)))
    await running.webhooks.test(webhook)
    const [request] = receiver.at(path)
    assert.ok(request)
    assert.deepEqual(
      secrets.filter((secret) => !standardSignatureValid(request, secret)),
      [],
    )
    assert.equal(running.webhooks.secret(webhook), secrets.at(-1))
  })

  test('a secret whose key is lost is replaced, and what waited goes out with the new one', async () => {
    const path = freshPath()
    const webhook = await hook(path)
    await running.stop()
    const sealedSecrets = createSealer(randomBytes(32)).seal('[]', webhook.id)
    const stored = await rig.store.webhooks.edit(webhook.id, { sealedSecrets })
    assert.ok(stored)
    await startAnew()
    const { rows } = await arrive(rig.store, running.webhooks, account, [{ facts: facts('waits') }])
    await until('tried in vain', () => running.webhooks.view(webhook.id)?.next?.what === 'sends a callback again')
    assert.throws(() => running.webhooks.secret(stored), { code: 'internal' })
    const fresh = await running.webhooks.rotateSecret(stored)
    assert.equal(running.webhooks.secret(stored), fresh)
    const [request] = await until('sent', () => receiver.at(path).length > 0 && receiver.at(path))
    assert.ok(request && standardSignatureValid(request, fresh))
    assert.equal(request.id, rows[0]?.id)
  })

  test('edits that come at once keep what the others have named', async () => {
    const webhook = await hook(freshPath())
    await Promise.all([
      running.webhooks.edit(webhook, { filters: { subject: 'yes' } }),
      running.webhooks.edit(webhook, { filters: { to: 'me@example.com' } }),
    ])
    const stored = await rig.store.webhooks.get(webhook.id)
    assert.deepEqual(stored?.filters, { subject: 'yes', to: 'me@example.com' })
  })

  test('the sample goes out at once and is kept in the log', async () => {
    const path = freshPath()
    receiver.script(path, [{ status: 200, body: 'thanks' }, { status: 500 }])
    const webhook = await hook(path, { filters: { subject: 'never' } })
    const good = await running.webhooks.test(webhook)
    assert.equal(good.state, 'delivered')
    assert.equal(good.attempts[0]?.response, 'thanks')
    const [request] = receiver.at(path)
    assert.ok(request && bodySignatureValid(request, apiSecret))
    assert.equal(request.body['test'], true)
    assert.equal((await running.webhooks.test(webhook)).state, 'failed')
    const log = await rig.store.outbox.list({ webhookId: webhook.id }, { limit: 10, offset: 0 })
    assert.equal(log.length, 2)
  })

  test('redelivery of one and of a time, under the same webhook-id', async () => {
    const path = freshPath()
    const webhook = await hook(path)
    const { rows } = await arrive(rig.store, running.webhooks, account, [
      { facts: facts('r1') },
      { facts: facts('r2') },
    ])
    await until('both', () => receiver.at(path).length === 2)
    const settled = () =>
      until('recorded', async () => {
        const log = await rig.store.outbox.list({ webhookId: webhook.id }, { limit: 10, offset: 0 })
        return log.every((row) => row.state === 'delivered')
      })
    await settled()
    const second = await rig.store.outbox.get(rows[1]?.id ?? '')
    assert.ok(second)
    assert.equal(await running.webhooks.resend(second), 1)
    await until('the third', () => receiver.at(path).length === 3)
    assert.equal(receiver.at(path)[2]?.id, rows[1]?.id)
    await settled()
    assert.equal(await redelivered(webhook, { from: Date.now() - 60_000, until: Date.now() + 1 }), 2)
    await until('all again', () => receiver.at(path).length === 5)
    assert.equal(await redelivered(webhook, { from: Date.now() + 60_000 }), 0)
  })

  test('a creation whose outcome the store does not know is taken back, and told nothing', async () => {
    const path = freshPath()
    const store = rig.store.webhooks as { create: typeof rig.store.webhooks.create }
    const { create } = store
    let made = ''
    store.create = async (webhook) => {
      await create(webhook)
      made = webhook.id
      throw new AppError('store_unavailable', 'the answer was lost')
    }
    try {
      await assert.rejects(hook(path), { code: 'store_unavailable' })
    } finally {
      store.create = create
    }
    assert.notEqual(made, '')
    assert.equal(await rig.store.webhooks.get(made), null)
    assert.equal(running.webhooks.view(made), null)
    const again = await hook(path)
    await arrive(rig.store, running.webhooks, account, [{ facts: facts('after-all') }])
    const [callback] = await until('one callback', () => (receiver.at(path).length > 0 ? receiver.at(path) : null))
    assert.equal(callback?.body['webhook_id'], again.id)
  })

  test('removed while an edit is under way: it is gone, and gets nothing', async () => {
    const path = freshPath()
    const webhook = await hook(path)
    const store = rig.store.webhooks as { edit: typeof rig.store.webhooks.edit }
    const { edit } = store
    const answer = Promise.withResolvers<undefined>()
    let stored = false
    store.edit = async (...given) => {
      const edited = await edit(...given)
      stored = true
      await answer.promise
      return edited
    }
    try {
      const editing = running.webhooks.edit(webhook, { receiveDrafts: true })
      await until('stored', () => stored)
      const removing = running.webhooks.remove(webhook)
      answer.resolve(undefined)
      await Promise.all([editing, removing])
    } finally {
      store.edit = edit
    }
    assert.deepEqual(await running.webhooks.all(), [])
    const { rows } = await arrive(rig.store, running.webhooks, account, [{ facts: facts('after the end') }])
    assert.deepEqual(rows, [])
  })

  test('dry run and explain tell which filter said no', async () => {
    const webhook = await hook(freshPath(), { filters: { subject: 'yes', bodySearch: 'gold' } })
    const { messages } = await arrive(rig.store, running.webhooks, account, [
      { facts: facts('yes-with') },
      { facts: facts('yes-without') },
      { facts: facts('no') },
    ])
    for (const [index, message] of messages.entries())
      rig.mail.bodies.set(message.id, { '1': index === 0 ? 'Gold!' : 'sand' })
    const rows = await running.webhooks.dryRun(webhook, account, 10, freely)
    const matched = new Map(rows.map((row) => [row.message.emailMessageId, row.matched]))
    assert.deepEqual(
      matched,
      new Map([
        ['yes-with@example.com', true],
        ['yes-without@example.com', false],
        ['no@example.com', false],
      ]),
    )
    const [, , third] = messages
    assert.ok(third)
    const story = await running.webhooks.explain(webhook, account, third, freely)
    assert.equal(story.changes.length, 1)
    assert.equal(story.deliveries.length, 0)
    assert.equal(story.verdicts.find((one) => one.filter === 'filter_subject')?.matched, false)
    assert.equal(story.verdicts.find((one) => one.filter === 'active')?.matched, true)
  })

  test('a filter that matches on arrival matches in the dry run', async () => {
    const words = fc.constantFrom('alpha', 'beta', 'gamma', 'delta')
    const filters: fc.Arbitrary<WebhookFilters> = fc.record(
      {
        subject: fc.oneof(
          words,
          words.map((word) => `/^${word}/`),
        ),
        from: words.map((word) => `${word}@*`),
        to: fc.tuple(words, words).map(([a, b]) => `${a}@example.com, ${b}*`),
        fromDomain: fc.constantFrom('example.com', 'example.org', 'com'),
        fileName: fc.constantFrom('*.pdf', 'a?pha*'),
        folderAdded: fc.constantFrom('INBOX', 'Work', 'w*'),
      },
      { requiredKeys: [] },
    )
    const message = fc.record({
      subject: words,
      from: words,
      to: words,
      domain: fc.constantFrom('example.com', 'mail.example.org'),
      file: words,
      folder: fc.constantFrom('INBOX', 'Work'),
    })
    let count = 0
    await fc.assert(
      fc.asyncProperty(filters, message, async (chosen, mail) => {
        count += 1
        const webhook = await hook('/property', { filters: chosen })
        const base = facts(`p${count}`)
        const file = attachmentRecord(0, `${mail.file}.pdf`)
        const made: MessageFacts = {
          ...base,
          subject: mail.subject,
          attachments: [file],
          addresses: {
            ...base.addresses,
            from: [{ name: '', email: `${mail.from}@${mail.domain}` }],
            to: [{ name: '', email: `${mail.to}@example.com` }],
          },
        }
        const { rows, messages } = await arrive(rig.store, running.webhooks, account, [
          { facts: made, path: mail.folder },
        ])
        const dry = await running.webhooks.dryRun(webhook, account, 100, freely)
        const row = dry.find((one) => one.message.id === messages[0]?.id)
        assert.equal(row?.matched, rows.length > 0, JSON.stringify({ chosen, mail, verdicts: row?.verdicts }))
        await running.webhooks.remove(webhook)
      }),
      { numRuns: 60 },
    )
  })

  test('a thread by any of its Message-IDs', async () => {
    const path = freshPath()
    await arrive(rig.store, null, account, [{ facts: facts('sibling', { threadId: 'abcdabcdabcdabcd' }) }])
    await hook(path, { filters: { thread: '<sibling@example.com>' } })
    await arrive(rig.store, running.webhooks, account, [
      { facts: facts('t1', { threadId: 'abcdabcdabcdabcd' }) },
      { facts: facts('t2', { threadId: '0000000000000000' }) },
      { facts: facts('t3', { threadId: 'abcdabcdabcdabcd' }) },
    ])
    await until('both', () => receiver.at(path).length === 2)
    await until('the other is skipped', async () => {
      const log = await rig.store.outbox.list({ accountId: account.id }, { limit: 10, offset: 0 })
      return log.every((row) => row.state !== 'pending')
    })
    assert.deepEqual(subjects(path), ['Subject of t1', 'Subject of t3'])
  })
})

suite('the change stream', () => {
  test('tells who listens, and stops when told', async () => {
    const heard: string[] = []
    const stop = running.webhooks.subscribe([account.id], (id) => heard.push(id))
    await arrive(rig.store, running.webhooks, account, [{ facts: facts('s1') }])
    stop()
    await arrive(rig.store, running.webhooks, account, [{ facts: facts('s2') }])
    assert.deepEqual(heard, [account.id])
  })
})
