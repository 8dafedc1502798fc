/** Removal of accounts and users with all that hangs on them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isAppError } from '../../../engine/errors.ts'
import { contactId } from '../../../engine/store/ids.ts'
import type { SyncBatch } from '../../../engine/store/port.ts'
import type { AccountRecord } from '../../../engine/store/records.ts'
import { createMailbox, emptyBatch, listed, type Mailbox, type Subject } from './mailbox.ts'
import { accountRecord, epochStart, outboxRecord, tokenRecord, webhookRecord } from './records.ts'

/** A mailbox with one of everything that hangs on an account. */
async function furnish({ store }: Subject, mailbox: Mailbox) {
  const webhook = webhookRecord(mailbox.developer.id, { userId: mailbox.user.id })
  await store.webhooks.create(webhook)
  const added = [1, 2, 3].map((uid) => mailbox.added('INBOX', uid))
  const events = added.map((one) => mailbox.event(one, 'received', webhook.id))
  const delta = {
    userId: mailbox.user.id,
    email: 'sender@example.com',
    name: '',
    key: 'm:r',
    total: 1,
    direct: 0,
    indirect: 1,
    receivedAt: epochStart,
  }
  await mailbox.apply('INBOX', {
    added,
    changes: events.flatMap((event) => event.changes),
    outbox: events.flatMap((event) => event.outbox),
    contacts: [delta],
  })
  await mailbox.apply('INBOX', { vanished: [3], vanishedAt: epochStart })
  const scan = { webhookId: webhook.id, accountId: mailbox.account.id, after: null, done: false }
  await store.webhooks.saveScan(scan, [])
  const token = tokenRecord(mailbox.developer.id, { userId: mailbox.user.id, accountId: mailbox.account.id })
  await store.tokens.create(token)
  const { id: inbox } = await mailbox.folder('INBOX')
  return { webhook, added, rows: events.flatMap((event) => event.outbox), inbox, token }
}

type Furniture = Awaited<ReturnType<typeof furnish>>

async function assertGone({ store }: Subject, mailbox: Mailbox, things: Furniture): Promise<void> {
  const { id } = mailbox.account
  assert.equal(await store.accounts.get(id), null)
  assert.deepEqual(await store.folders.list(id), [])
  for (const { id: message } of things.added) assert.equal(await store.messages.get(id, message), null)
  assert.equal(await store.messages.count(id), 0)
  assert.deepEqual(await store.messages.list(id, { folderId: things.inbox }, { limit: 9, offset: 0 }), [])
  assert.deepEqual(await store.messages.gone(id, epochStart * 2, 9), [])
  assert.deepEqual(await store.messages.knownUids(things.inbox, '1', 0, 99), [])
  assert.equal(await store.changes.lastSeq(id), 0)
  for (const row of things.rows) assert.equal(await store.outbox.get(row.id), null)
  assert.equal(await store.webhooks.scan(things.webhook.id, id), null)
  assert.equal(await store.tokens.find(things.token.token), null)
}

export function removalContract(subject: Subject): void {
  const { store } = subject
  const page = { limit: 9, offset: 0 }

  describe('removal', () => {
    test('of an account takes all that hangs on it, and nothing of the others', async () => {
      const mailbox = await createMailbox(store)
      const neighbour = await createMailbox(store)
      const [things, theirs] = [await furnish(subject, mailbox), await furnish(subject, neighbour)]
      const second = accountRecord(mailbox.user)
      await store.accounts.create(second)
      await store.accounts.remove(mailbox.account.id)
      await assertGone(subject, mailbox, things)
      assert.deepEqual(await store.accounts.listByUser(mailbox.user.id), [second])
      assert.deepEqual(await store.webhooks.get(things.webhook.id), things.webhook)
      const contact = contactId(mailbox.user.id, 'sender@example.com')
      assert.equal(await store.contacts.get(mailbox.user.id, contact), null)
      const { developerId } = mailbox.user
      assert.deepEqual(await store.users.list(developerId, { email: mailbox.account.email }, page), [])

      assert.equal(await store.messages.count(neighbour.account.id), 2)
      assert.equal(await store.changes.lastSeq(neighbour.account.id), 3)
      for (const row of theirs.rows) assert(await store.outbox.get(row.id))
      assert(await store.webhooks.scan(theirs.webhook.id, neighbour.account.id))
      await store.accounts.remove(mailbox.account.id)
    })

    test('of a user leaves nothing of what is created at the same time', async () => {
      for (let round = 0; round < 4; round += 1) {
        const { user, account } = await createMailbox(store)
        const come: AccountRecord[] = []
        const tokens: string[] = []
        /** Creates one after the other until the user is gone. */
        const creating = async (create: () => Promise<unknown>): Promise<void> => {
          for (;;) {
            const error: unknown = await create().then(
              () => null,
              (error: unknown) => error,
            )
            if (error === null) continue
            assert(isAppError(error, 'not_found'))
            return
          }
        }
        const [taken] = await Promise.all([
          store.users.remove(user.id),
          creating(async () => {
            const one = accountRecord(user)
            await store.accounts.create(one)
            come.push(one)
          }),
          creating(() => store.webhooks.create(webhookRecord(user.developerId, { userId: user.id }))),
          creating(async () => {
            const one = tokenRecord(user.developerId, { userId: user.id })
            tokens.push(one.token)
            await store.tokens.create(one)
          }),
        ])
        assert.deepEqual(await store.accounts.listByUser(user.id), [])
        assert.deepEqual(await store.webhooks.listByUser(user.id), [])
        for (const token of tokens) assert.equal(await store.tokens.find(token), null)
        for (const { id } of [account, ...come]) assert(taken.includes(id), 'the removal says what it took')
      }
    })

    test('of an account that is made again starts from nothing', async () => {
      const mailbox = await createMailbox(store)
      await furnish(subject, mailbox)
      await store.accounts.remove(mailbox.account.id)
      await store.accounts.create({ ...mailbox.account, epoch: 0 })
      await store.accounts.claim(mailbox.account.id)
      await store.folders.reconcile(mailbox.account.id, 1, [listed('INBOX')], true)
      const one = mailbox.added('INBOX', 1)
      const { changes } = await mailbox.apply('INBOX', { added: [one], ...mailbox.event(one) })
      assert.deepEqual(
        changes.map((change) => change.seq),
        [1],
      )
      assert.equal(await store.messages.count(mailbox.account.id), 1)
    })

    test('of a user takes accounts, webhooks, contacts and tokens along', async () => {
      const mailbox = await createMailbox(store)
      const neighbour = await createMailbox(store)
      const [things, theirs] = [await furnish(subject, mailbox), await furnish(subject, neighbour)]
      const loose = outboxRecord(things.webhook, { kind: 'test', userId: mailbox.user.id })
      const token = tokenRecord(mailbox.developer.id, { userId: mailbox.user.id })
      await store.outbox.enqueue([loose])
      await store.tokens.create(token)
      assert.deepEqual(await store.users.remove(mailbox.user.id), [mailbox.account.id])
      await assertGone(subject, mailbox, things)
      assert.equal(await store.users.get(mailbox.user.developerId, mailbox.user.id), null)
      assert.equal(await store.webhooks.get(things.webhook.id), null)
      assert.equal(await store.outbox.get(loose.id), null)
      assert.equal(await store.tokens.find(token.token), null)
      const contact = contactId(mailbox.user.id, 'sender@example.com')
      assert.equal(await store.contacts.get(mailbox.user.id, contact), null)
      assert.deepEqual(await store.users.list(mailbox.user.developerId, {}, page), [])
      const [email] = mailbox.user.emailAddresses
      assert(email !== undefined)
      assert.deepEqual(await store.users.list(mailbox.user.developerId, { email }, page), [])

      assert.deepEqual(await store.users.get(neighbour.user.developerId, neighbour.user.id), neighbour.user)
      assert.equal(await store.messages.count(neighbour.account.id), 2)
      assert(await store.webhooks.get(theirs.webhook.id))
      const other = contactId(neighbour.user.id, 'sender@example.com')
      assert(await store.contacts.get(neighbour.user.id, other))
      await store.users.remove(mailbox.user.id)
    })

    test('of an account fences a writer that is at work: what it still writes is refused, and nothing is left', async () => {
      const mailbox = await createMailbox(store)
      const { account } = mailbox
      const many = Array.from({ length: 2300 }, (_, index) => mailbox.added('INBOX', index + 1))
      await mailbox.apply('INBOX', { added: many })
      const { id: folderId, cursor } = await mailbox.folder('INBOX')
      let over = false
      const removing = store.accounts.remove(account.id).then(() => (over = true))
      const written: SyncBatch[] = []
      const outcomes: string[] = []
      while (!over) {
        const one = mailbox.added('INBOX', 5000 + written.length)
        const batch = { ...emptyBatch(account, folderId, cursor), added: [one], ...mailbox.event(one) }
        written.push(batch)
        const writing = store.sync.apply(batch)
        outcomes.push(
          await writing.then(
            () => 'stored',
            (error: unknown) => (isAppError(error) ? error.code : String(error)),
          ),
        )
      }
      await removing
      // Only what was under way before the first step of the removal.
      assert(outcomes.filter((outcome) => outcome === 'stored').length <= 2, outcomes.join())
      assert.deepEqual(
        [...new Set(outcomes)].filter((outcome) => outcome !== 'stored'),
        ['lease_lost'],
      )
      for (const { added, outbox } of written) {
        for (const { id } of added) assert.equal(await store.messages.get(account.id, id), null)
        for (const { id } of outbox) assert.equal(await store.outbox.get(id), null)
      }
      assert.equal(await store.changes.lastSeq(account.id), 0)
      assert.deepEqual(await store.folders.list(account.id), [])
    })

    test('of an account takes along what an owner stores who takes it over meanwhile', async () => {
      const mailbox = await createMailbox(store)
      const { id } = mailbox.account
      await mailbox.apply('INBOX', {
        added: Array.from({ length: 1100 }, (_, index) => mailbox.added('INBOX', index + 1)),
      })
      let over = false
      const removing = store.accounts.remove(id).then(() => (over = true))
      const written: SyncBatch[] = []
      const takeOver = async (): Promise<void> => {
        const owner = await store.accounts.claim(id)
        if (owner === null) return
        await store.folders.reconcile(id, owner.epoch, [listed('INBOX')], true)
        const [inbox] = await store.folders.list(id)
        if (inbox === undefined) return
        const one = mailbox.added('INBOX', 5000 + written.length)
        const batch = { ...emptyBatch(owner, inbox.id, inbox.cursor), added: [one], ...mailbox.event(one) }
        written.push(batch)
        await store.sync.apply(batch)
      }
      while (!over) {
        // The removal may take the account or the folder in between.
        await takeOver().catch((error: unknown) => assert(isAppError(error, 'lease_lost'), String(error)))
      }
      await removing
      // On MongoDB a batch that ends after the removal leaves its rows to the tidying.
      await store.tidy()
      for (const { added, outbox } of written) {
        for (const one of added) assert.equal(await store.messages.get(id, one.id), null)
        for (const row of outbox) assert.equal(await store.outbox.get(row.id), null)
      }
      assert.equal(await store.messages.count(id), 0)
      assert.equal(await store.changes.lastSeq(id), 0)
      assert.deepEqual(await store.folders.list(id), [])
    })

    test('of a large mailbox goes in steps, to the end', async () => {
      const mailbox = await createMailbox(store)
      const added = Array.from({ length: 2300 }, (_, index) => mailbox.added('INBOX', index + 1))
      await mailbox.apply('INBOX', { added })
      assert.equal(await store.messages.count(mailbox.account.id), 2300)
      const { id } = await mailbox.folder('INBOX')
      await store.accounts.remove(mailbox.account.id)
      assert.equal(await store.messages.count(mailbox.account.id), 0)
      assert.deepEqual(await store.messages.knownUids(id, '1', 0, 9999), [])
      assert.equal(await store.accounts.get(mailbox.account.id), null)
    })
  })
}
