/** Moving everything from one store to another, and going on after it was cut short. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { runStoreCommand, copyStore, countAll, transferNames } from '../../engine/store/copy.ts'
import { contactId } from '../../engine/store/ids.ts'
import type { Store } from '../../engine/store/port.ts'
import { isLive } from '../../engine/store/rows.ts'
import type { StoreTransfer, TransferName } from '../../engine/store/transfer.ts'
import { needs } from '../support/require.ts'
import { rejectsWith, type Mailbox } from './contract/mailbox.ts'
import { accountRecord, developerRecord, epochStart } from './contract/records.ts'
import { fill, messages, mongoPlace, sqlitePlace, type Place } from './copy-places.ts'

const page = { limit: 1000, offset: 0 }

/** What the port answers about everything that was filled in. */
async function seen(store: Store, { developer, user, account }: Mailbox): Promise<unknown> {
  const inbox = await store.folders.byPath(account.id, 'INBOX')
  assert(inbox)
  return {
    developer: await store.developers.byKey(developer.apiKey),
    users: await store.users.list(developer.id, { email: account.email }, page),
    accounts: await store.accounts.listByUser(user.id),
    folders: await store.folders.list(account.id),
    listed: await store.messages.list(account.id, { folderId: inbox.id }, page),
    attached: await store.messages.list(account.id, { hasAttachments: true, from: ['example.com'] }, page),
    gone: await store.messages.gone(account.id, epochStart + 1, 10),
    uids: await store.messages.knownUids(inbox.id, '1', 0, 1000),
    changes: await store.changes.since(account.id, 0, 1000),
    webhooks: await store.webhooks.listByUser(user.id),
    deliveries: await store.outbox.list({ developerId: developer.id }, page),
    pending: await store.outbox.pending('f'.repeat(24), [], 1000),
    contacts: await store.contacts.list(user.id, 'total_count', 'desc', page),
    tokens: await store.tokens.list(developer.id, {}, 10),
    providers: await store.providers.list(developer.id),
    audit: await store.audit.list(undefined, page),
    calls: await store.calls.list({ developerId: developer.id }, page),
  }
}

function copyTests(fromKind: string, from: () => Promise<Place>, toKind: string, to: () => Promise<Place>): void {
  suite(`copy from ${fromKind} to ${toKind}`, fromKind + toKind === 'SQLiteSQLite' ? {} : needs('mongodb'), () => {
    let source: Place
    let target: Place
    let mailbox: Mailbox
    let store: Store

    before(async () => {
      source = await from()
      store = await source.store()
      mailbox = await fill(store)
    })
    after(async () => {
      await store.close()
      await source.remove()
    })

    async function withTarget(work: () => Promise<void>): Promise<void> {
      target = await to()
      try {
        await work()
      } finally {
        await target.remove()
      }
    }

    test('everything is there, and answers the same', () =>
      withTarget(async () => {
        const lines: string[] = []
        const args = ['copy', '--from', source.address, '--to', target.address]
        assert.equal(await runStoreCommand(args, (line) => lines.push(line)), 0, lines.join('\n'))
        assert(
          lines.some((line) => /^messages +30$/.test(line)),
          lines.join('\n'),
        )
        assert.match(lines.at(-1) ?? '', /^copied and verified from /)
        const copy = await target.store()
        assert.deepEqual(await seen(copy, mailbox), await seen(store, mailbox))
        assert.equal(await copy.nonces.remember(mailbox.developer.apiKey, 'nonce', 1, Date.now() + 600_000), false)
        await goesOn(copy)
        await copy.close()
        await refusesAgain(args)
      }))

    /** The copy is a store to work with: the log is numbered on, and what was counted is not counted again. */
    async function goesOn(copy: Store): Promise<void> {
      const { user, account } = mailbox
      const inbox = await copy.folders.byPath(account.id, 'INBOX')
      const first = (await copy.messages.list(account.id, { order: 'asc' }, { limit: 1, offset: 0 }))[0]
      assert(inbox && first)
      const counts = { total: 1, direct: 0, indirect: 1, receivedAt: epochStart }
      const one = mailbox.added('INBOX', 1000)
      const { changes } = await copy.sync.apply({
        ...(await mailbox.batch('INBOX')),
        cursorBefore: inbox.cursor,
        added: [one],
        changes: mailbox.event(one).changes,
        contacts: [{ userId: user.id, email: 'ada@example.com', name: '', key: `${first.id}:r`, ...counts }],
      })
      assert.deepEqual(
        changes.map(({ seq }) => seq),
        [messages + 1],
      )
      assert.equal((await copy.contacts.get(user.id, contactId(user.id, 'ada@example.com')))?.totalCount, messages)
    }

    test('an account that is removed from the copy takes its contacts along', () =>
      withTarget(async () => {
        const { user, account } = mailbox
        const [out, into] = [await source.transfer('source'), await target.transfer('target')]
        await copyStore({ from: out, to: into, intoExisting: false, progress: () => undefined })
        await out.close()
        await into.close()
        const copy = await target.store()
        assert.equal((await copy.contacts.list(user.id, 'total_count', 'desc', page)).length, 1)
        await copy.accounts.remove(account.id)
        assert.deepEqual(await copy.contacts.list(user.id, 'total_count', 'desc', page), [])
        await copy.close()
      }))

    async function refusesAgain(args: readonly string[]): Promise<void> {
      const lines: string[] = []
      assert.equal(await runStoreCommand(args, (line) => lines.push(line)), 1)
      assert.match(lines.join('\n'), /is not empty \(.*31 messages.*--into-existing/)
      assert.equal(await runStoreCommand([...args, '--into-existing'], () => undefined), 0)
    }

    test('a copy that is cut short anywhere goes on where it was', () =>
      withTarget(async () => {
        const [out, whole] = [await source.transfer('source'), await target.transfer('target')]
        const written: Partial<Record<TransferName, number>> = {}
        let budget = 0
        const failing: StoreTransfer = {
          ...whole,
          import: async (collection, records) => {
            if (budget === 0) throw new Error('cut')
            budget -= 1
            written[collection] = (written[collection] ?? 0) + records.length
            await whole.import(collection, records)
          },
        }
        const options = { from: out, to: failing, intoExisting: false, progress: () => undefined, pageSize: 7 }
        let cuts = 0
        for (;;) {
          budget = 3
          try {
            await copyStore(options)
            break
          } catch (error) {
            assert(error instanceof Error && error.message === 'cut', String(error))
            cuts += 1
          }
        }
        assert(cuts > 4, `${cuts} cuts`)
        const counts = await countAll(out)
        for (const name of transferNames) assert(counts[name] > 0, `${name} has something to copy`)
        assert.deepEqual(await countAll(whole), counts)
        assert.equal(written.messages, messages, 'no page twice')
        assert.equal(await whole.progress(), null)
        await whole.close()
        await out.close()
        const copy = await target.store()
        assert.deepEqual(await seen(copy, mailbox), await seen(store, mailbox))
        await copy.close()
      }))

    test('what was copied before the source was served again is copied anew', () =>
      withTarget(async () => {
        const changing = await from()
        const first = await changing.store()
        const box = await fill(first)
        await first.close()
        await cutAt('outbox', changing)
        const serving = await changing.serve()
        await serving.developers.edit(box.developer.id, { revokedAt: epochStart })
        await serving.accounts.edit(box.account.id, { sealedCredential: 'another' })
        await serving.accounts.claim(box.account.id)
        const now = await seen(serving, box)
        await serving.close()
        const [out, into] = [await changing.transfer('source'), await target.transfer('target')]
        await copyStore({ from: out, to: into, intoExisting: false, progress: () => undefined })
        await out.close()
        await into.close()
        const copy = await target.store()
        assert.deepEqual(await seen(copy, box), now)
        assert.equal((await copy.developers.byKey(box.developer.apiKey))?.revokedAt, epochStart)
        await copy.close()
        await changing.remove()
      }))

    /** A copy that ends there, as by a power cut. */
    async function cutAt(end: TransferName, place: Place): Promise<void> {
      const [out, into] = [await place.transfer('source'), await target.transfer('target')]
      const failing: StoreTransfer = {
        ...into,
        import: (collection, records) =>
          collection === end ? Promise.reject(new Error('cut')) : into.import(collection, records),
      }
      const options = { from: out, to: failing, intoExisting: false, progress: () => undefined }
      await assert.rejects(copyStore(options), /cut/)
      await out.close()
      await into.close()
    }

    test('nonces: what has expired stays behind, and what expires on the way is no failure', () =>
      withTarget(async () => {
        const [out, whole] = [await source.transfer('source'), await target.transfer('target')]
        const copied: unknown[] = []
        const forgetful: StoreTransfer = {
          ...whole,
          import: async (collection, records) => {
            if (collection !== 'nonces') return whole.import(collection, records)
            copied.push(...records)
            await whole.import(collection, records.slice(1))
          },
        }
        const counts = await copyStore({ from: out, to: forgetful, intoExisting: false, progress: () => undefined })
        assert.deepEqual([counts.nonces, copied.length], [2, 2])
        await out.close()
        await whole.close()
      }))

    test('half a store is none: neither the service nor a copy from it takes it', () =>
      withTarget(async () => {
        await cutAt('outbox', source)
        await rejectsWith(target.store(), 'conflict')
        await rejectsWith(target.transfer('source'), 'conflict')
        const [out, again] = [await source.transfer('source'), await target.transfer('target')]
        await copyStore({ from: out, to: again, intoExisting: false, progress: () => undefined })
        await again.close()
        await out.close()
        const copy = await target.store()
        assert.deepEqual(await seen(copy, mailbox), await seen(store, mailbox))
        await copy.close()
      }))

    test('a source in which a removal was cut short is refused until it is finished', () =>
      withTarget(async () => {
        const cut = await from()
        const filled = await cut.store()
        const { account } = await fill(filled)
        await filled.close()
        await cut.cutRemoval(account.id)
        const refusal = { code: 'conflict', message: /: a removal was cut short: start the service on it/ }
        await assert.rejects(cut.transfer('source'), refusal)
        const serving = await cut.serve()
        await serving.tidy()
        assert.equal(await serving.accounts.get(account.id), null)
        await serving.close()
        const [out, into] = [await cut.transfer('source'), await target.transfer('target')]
        const counts = await copyStore({ from: out, to: into, intoExisting: false, progress: () => undefined })
        assert.equal(counts.accounts, 0)
        await out.close()
        await into.close()
        await cut.remove()
      }))

    test('a UID that another message has by now is its own, in whatever order the two are written over', () =>
      withTarget(async () => {
        const [out, into] = [await source.transfer('source'), await target.transfer('target')]
        const [one, two] = (await out.export('messages', null, 10)).records.filter(({ message }) => isLive(message))
        assert(one && two)
        const [place] = one.message.placements
        assert(place)
        await into.import('folders', (await out.export('folders', null, 10)).records)
        await into.import('messages', [one])
        const taken = { ...two, message: { ...two.message, placements: [place] } }
        const left = { ...one, message: { ...one.message, placements: [] } }
        await into.import('messages', [taken, left])
        await out.close()
        await into.close()
        const copy = await target.store()
        const known = await copy.messages.knownUids(place.folderId, place.uidValidity, 0, 1000)
        assert.deepEqual(
          known.map(({ uid, messageId }) => [uid, messageId]),
          [[place.uid, two.message.id]],
        )
        await copy.close()
      }))

    test('an API key that another developer has there is refused before anything is written', () =>
      withTarget(async () => {
        const other = { ...developerRecord(), apiKey: mailbox.developer.apiKey }
        const existing = await target.store()
        await existing.developers.create(other)
        await existing.close()
        const [out, into] = [await source.transfer('source'), await target.transfer('target')]
        const copying = copyStore({ from: out, to: into, intoExisting: true, progress: () => undefined })
        const words = new RegExp(
          `^developer ${mailbox.developer.id} of .+ and developer ${other.id} of .+ the same API key$`,
        )
        await assert.rejects(copying, { code: 'conflict', message: words })
        assert.equal(await into.progress(), null)
        assert.deepEqual((await into.export('developers', null, 10)).records, [other])
        await out.close()
        await into.close()
      }))

    test('of what is there nothing makes room for another record with the same unique value', () =>
      withTarget(async () => {
        const other = accountRecord(mailbox.user, { label: mailbox.account.label })
        const existing = await target.store()
        await existing.users.create(mailbox.user)
        await existing.accounts.create(other)
        await existing.close()
        const [out, into] = [await source.transfer('source'), await target.transfer('target')]
        const copying = copyStore({ from: out, to: into, intoExisting: true, progress: () => undefined })
        await assert.rejects(copying, { code: 'conflict', message: /^accounts cannot be copied into .* already$/ })
        assert.deepEqual((await into.export('accounts', null, 10)).records, [other])
        await out.close()
        await into.close()
      }))

    test('a source that changes meanwhile is found out by its counts', () =>
      withTarget(async () => {
        const [out, into] = [await source.transfer('source'), await target.transfer('target')]
        const growing: StoreTransfer = {
          ...out,
          count: async (collection) => (await out.count(collection)) + (collection === 'messages' ? 1 : 0),
        }
        const copying = copyStore({ from: growing, to: into, intoExisting: false, progress: () => undefined })
        await rejectsWith(copying, 'internal')
        await out.close()
        await into.close()
      }))
  })
}

copyTests('SQLite', sqlitePlace, 'SQLite', sqlitePlace)
copyTests('SQLite', sqlitePlace, 'MongoDB', mongoPlace)
copyTests('MongoDB', mongoPlace, 'SQLite', sqlitePlace)
copyTests('MongoDB', mongoPlace, 'MongoDB', mongoPlace)
