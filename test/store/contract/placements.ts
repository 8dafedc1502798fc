/** What becomes of a message: flags, disappearance, return, moves. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AddedMessage, FlagUpdate, SyncBatch } from '../../../engine/store/port.ts'
import type { Placement } from '../../../engine/store/records.ts'
import { createMailbox, type Mailbox, type Subject } from './mailbox.ts'
import { epochStart } from './records.ts'

async function oneMessage(mailbox: Mailbox, path = 'INBOX', uid = 5) {
  const added = mailbox.added(path, uid, { sentAt: epochStart }, { flags: ['\\Seen'], modseq: '10' })
  await mailbox.apply(path, { added: [added] })
  return added
}

export function flagsContract({ store }: Subject): void {
  describe('flags', () => {
    test('of the server are stored, and seen among the known UIDs', async () => {
      const mailbox = await createMailbox(store)
      const added = await oneMessage(mailbox)
      const flags = ['\\Flagged', '\\Seen']
      const update: FlagUpdate = { messageId: added.id, uid: 5, flags, modseq: '11', rev: 1 }
      await mailbox.apply('INBOX', { flagUpdates: [update] })
      const placement = { ...added.placement, flags, modseq: '11', rev: 1 }
      assert.deepEqual((await mailbox.message(added.id)).placements, [placement])
      const known = await store.messages.knownUids(added.placement.folderId, '1', 5, 5)
      assert.deepEqual(known, [{ uid: 5, messageId: added.id, flags, modseq: '11', rev: 1 }])
    })

    test('a repeat of an older word does not undo a newer one; the same word again changes nothing', async () => {
      const mailbox = await createMailbox(store)
      const added = await oneMessage(mailbox)
      const older = { messageId: added.id, uid: 5, flags: ['\\Flagged'], modseq: '11', rev: 1 }
      const newer = { ...older, flags: ['\\Seen'], rev: 2 }
      for (const update of [older, newer, newer, older]) await mailbox.apply('INBOX', { flagUpdates: [update] })
      const placement = { ...added.placement, flags: ['\\Seen'], modseq: '11', rev: 2 }
      assert.deepEqual((await mailbox.message(added.id)).placements, [placement])
    })

    test('of an unknown place or message change nothing', async () => {
      const mailbox = await createMailbox(store)
      const added = await oneMessage(mailbox)
      const update = { messageId: added.id, uid: 5, flags: [], modseq: '11', rev: 1 }
      const unknown = [
        { ...update, uid: 6 },
        { ...update, messageId: '0'.repeat(24) },
      ]
      await mailbox.apply('INBOX', { flagUpdates: unknown })
      await mailbox.apply('Archive', { flagUpdates: [update] })
      assert.deepEqual((await mailbox.message(added.id)).placements, [added.placement])
    })
  })
}

export function goneContract({ store, clock }: Subject): void {
  describe('disappearance', () => {
    test('leaves a tombstone, held until it is told', async () => {
      const mailbox = await createMailbox(store)
      const added = await oneMessage(mailbox)
      const { folderId } = added.placement
      await mailbox.apply('INBOX', { vanished: [5, 6], vanishedAt: epochStart + 10 })
      const tombstone = await mailbox.message(added.id)
      assert.deepEqual(tombstone.placements, [])
      const gone = { folderId, path: 'INBOX', uidValidity: '1', uid: 5, at: epochStart + 10 }
      assert.deepEqual(tombstone.gone, [gone])
      assert.deepEqual(await store.messages.list(mailbox.account.id, {}, { limit: 9, offset: 0 }), [])
      assert.equal(await store.messages.count(mailbox.account.id), 0)
      assert.deepEqual(await store.messages.knownUids(folderId, '1', 0, 99), [])
      assert.deepEqual(await store.messages.find(mailbox.account.id, added.facts.emailMessageId ?? ''), tombstone)
      assert.deepEqual(await store.messages.gone(mailbox.account.id, epochStart + 10, 9), [])
      assert.deepEqual(await store.messages.gone(mailbox.account.id, epochStart + 11, 9), [tombstone])

      const event = mailbox.event(added, 'deleted')
      const reported = [{ messageId: added.id, folderId, uidValidity: '1', uid: 5 }]
      await mailbox.apply('INBOX', { reported, ...event })
      assert.deepEqual((await mailbox.message(added.id)).gone, [])
      assert.deepEqual(await store.messages.gone(mailbox.account.id, epochStart + 99, 9), [])
      const before = await store.outbox.list({ accountId: mailbox.account.id }, { limit: 9, offset: 0 })
      await mailbox.apply('INBOX', { reported, ...event })
      assert.deepEqual(await store.outbox.list({ accountId: mailbox.account.id }, { limit: 9, offset: 0 }), before)
    })

    test('keeps which use of its UID it was, as the known UIDs do', async () => {
      const mailbox = await createMailbox(store)
      const first = await oneMessage(mailbox)
      const { folderId } = first.placement
      await mailbox.apply('INBOX', { vanished: [5], vanishedAt: epochStart })
      const again = mailbox.added('INBOX', 5, {}, { generation: 77 })
      await mailbox.apply('INBOX', { added: [again] })
      assert.deepEqual((await mailbox.message(again.id)).placements, [again.placement])
      const known = { uid: 5, messageId: again.id, flags: [], modseq: '0', rev: 0, generation: 77 }
      assert.deepEqual(await store.messages.knownUids(folderId, '1', 5, 5), [known])
      const update = { messageId: again.id, uid: 5, flags: ['\\Seen'], modseq: '9', rev: 1 }
      await mailbox.apply('INBOX', { flagUpdates: [update] })
      assert.equal((await store.messages.knownUids(folderId, '1', 5, 5))[0]?.generation, 77)
      await mailbox.apply('INBOX', { vanished: [5], vanishedAt: epochStart + 1 })
      const gone = { folderId, path: 'INBOX', uidValidity: '1', uid: 5, at: epochStart + 1, generation: 77 }
      assert.deepEqual((await mailbox.message(again.id)).gone, [gone])
      assert.equal((await mailbox.message(first.id)).gone[0]?.generation, undefined)
    })

    test('of a draft is known as such', async () => {
      const mailbox = await createMailbox(store)
      const draft = mailbox.added('INBOX', 5, {}, { flags: ['\\Draft'] })
      await mailbox.apply('INBOX', { added: [draft] })
      await mailbox.apply('INBOX', { vanished: [5], vanishedAt: epochStart })
      const { folderId } = draft.placement
      const gone = { folderId, path: 'INBOX', uidValidity: '1', uid: 5, draft: true, at: epochStart }
      assert.deepEqual((await mailbox.message(draft.id)).gone, [gone])
    })

    test('is listed oldest first, up to the limit', async () => {
      const mailbox = await createMailbox(store)
      const added = [1, 2, 3].map((uid) => mailbox.added('INBOX', uid))
      await mailbox.apply('INBOX', { added })
      for (const [uid, at] of [
        [2, 20],
        [1, 30],
        [3, 10],
      ] as const) {
        await mailbox.apply('INBOX', { vanished: [uid], vanishedAt: epochStart + at })
      }
      const gone = await store.messages.gone(mailbox.account.id, epochStart + 100, 9)
      assert.deepEqual(
        gone.map((one) => one.gone[0]?.uid),
        [3, 2, 1],
      )
      assert.equal((await store.messages.gone(mailbox.account.id, epochStart + 25, 9)).length, 2)
      assert.equal((await store.messages.gone(mailbox.account.id, epochStart + 100, 1)).length, 1)
    })

    test('one of two places leaves the message alive', async () => {
      const mailbox = await createMailbox(store)
      const added = await oneMessage(mailbox)
      const copy = { ...added, placement: { ...added.placement, ...mailbox.added('Archive', 9).placement } }
      await mailbox.apply('Archive', { added: [copy] })
      await mailbox.apply('INBOX', { vanished: [5], vanishedAt: epochStart })
      const message = await mailbox.message(added.id)
      assert.deepEqual(
        message.placements.map((there) => there.path),
        ['Archive'],
      )
      const inbox = added.placement.folderId
      assert.equal(await store.messages.count(mailbox.account.id, { folderId: inbox }), 0)
      assert.equal(await store.messages.count(mailbox.account.id, { folderId: copy.placement.folderId }), 1)
      assert.equal((await store.messages.gone(mailbox.account.id, epochStart + 1, 9)).length, 1)
    })

    test('a return gives the tombstone life again, with its first facts', async () => {
      const mailbox = await createMailbox(store)
      const added = await oneMessage(mailbox)
      const before = await mailbox.message(added.id)
      await mailbox.apply('INBOX', { vanished: [5], vanishedAt: epochStart })
      clock.now += 50
      const back = {
        ...added,
        facts: { ...added.facts, subject: 'read differently' },
        firstChangeId: 'f'.repeat(32),
        placement: { ...mailbox.added('Archive', 8).placement },
      }
      await mailbox.apply('Archive', { added: [back] })
      const after = await mailbox.message(added.id)
      assert.deepEqual({ ...after, placements: [], gone: [] }, { ...before, placements: [], gone: [] })
      assert.deepEqual(after.placements, [back.placement])
      assert.equal(after.gone.length, 1, 'leaving INBOX is still to be told')
      const query = { from: ['sender@example.com'], folderId: back.placement.folderId }
      assert.deepEqual(await store.messages.list(mailbox.account.id, query, { limit: 9, offset: 0 }), [after])
    })

    test('a return to the very same place was no disappearance', async () => {
      const mailbox = await createMailbox(store)
      const added = await oneMessage(mailbox)
      await mailbox.apply('INBOX', { vanished: [5], vanishedAt: epochStart })
      await mailbox.apply('INBOX', { added: [added] })
      const { placements, gone } = await mailbox.message(added.id)
      assert.deepEqual([placements, gone], [[added.placement], []])
    })
  })
}

export function forgetContract({ store, clock }: Subject): void {
  describe('a new UIDVALIDITY', () => {
    test('takes the old places away in bounded steps, without telling', async () => {
      const mailbox = await createMailbox(store)
      const old = [1, 2, 3, 4, 5].map((uid) => mailbox.added('INBOX', uid))
      await mailbox.apply('INBOX', { added: old })
      const fresh = mailbox.added('INBOX', 1, {}, { uidValidity: '2' })
      await mailbox.apply('INBOX', { added: [fresh] })
      const elsewhere = await oneMessage(mailbox, 'Archive', 3)
      const { id } = await mailbox.folder('INBOX')
      const forget = () => store.sync.forgetPlacements(mailbox.account.id, 1, id, '2', 2)
      clock.now += 7
      assert.deepEqual([await forget(), await forget(), await forget(), await forget()], [3, 1, 0, 0])
      assert.deepEqual(await store.messages.knownUids(id, '1', 0, 99), [])
      assert.equal((await store.messages.knownUids(id, '2', 0, 99)).length, 1)
      assert.equal(await store.messages.count(mailbox.account.id), 2)
      assert.equal((await mailbox.message(elsewhere.id)).placements.length, 1)
      const gone = await store.messages.gone(mailbox.account.id, clock.now + 1, 99)
      assert.deepEqual(gone.map((one) => one.id).sort(), old.map((one) => one.id).sort())
      assert.equal(await store.changes.lastSeq(mailbox.account.id), 0)
    })
  })
}

export function movesContract({ store }: Subject): void {
  /** What a move of our own writes: the new place with its event, then the old one, gone and told in one step. */
  async function move(mailbox: Mailbox, added: AddedMessage, to: Placement): Promise<void> {
    const arrived = { ...added, placement: to, firstChangeId: null }
    await mailbox.apply('Archive', { added: [arrived], ...mailbox.event(arrived, 'folder_added') })
    await mailbox.apply('INBOX', left(added, mailbox))
  }
  function left(added: AddedMessage, mailbox: Mailbox): Partial<SyncBatch> {
    const { folderId, uidValidity, uid } = added.placement
    const reported = [{ messageId: added.id, folderId, uidValidity, uid }]
    return { vanished: [uid], reported, ...mailbox.event(added, 'folder_removed') }
  }

  describe('a move that is known as one', () => {
    test('is told at once, and once', async () => {
      const mailbox = await createMailbox(store)
      const added = await oneMessage(mailbox)
      const from = added.placement
      const to = mailbox.added('Archive', 7).placement
      for (let n = 0; n < 2; n += 1) {
        await move(mailbox, added, to)
        const { placements, gone } = await mailbox.message(added.id)
        assert.deepEqual([placements, gone], [[to], []])
        assert.deepEqual(await store.messages.knownUids(from.folderId, '1', 0, 99), [])
        assert.equal((await store.messages.knownUids(to.folderId, '1', 7, 7))[0]?.messageId, added.id)
        assert.equal(await store.messages.count(mailbox.account.id, { folderId: to.folderId }), 1)
        assert.equal(await store.messages.count(mailbox.account.id, { folderId: from.folderId }), 0)
        const log = await store.changes.since(mailbox.account.id, 0, 9)
        assert.deepEqual(
          log.map(({ kind, path }) => `${kind} ${path}`),
          ['folder_added Archive', 'folder_removed INBOX'],
        )
      }
    })

    test('a disappearance that the sync saw first is told by it, too', async () => {
      const mailbox = await createMailbox(store)
      const added = await oneMessage(mailbox)
      await mailbox.apply('INBOX', { vanished: [5], vanishedAt: epochStart })
      await mailbox.apply('INBOX', left(added, mailbox))
      assert.deepEqual(await store.messages.gone(mailbox.account.id, epochStart + 1, 9), [])
      assert.equal(await store.changes.lastSeq(mailbox.account.id), 1)
    })

    test('a place that is found again stays as it is', async () => {
      const mailbox = await createMailbox(store)
      const added = await oneMessage(mailbox)
      const to = mailbox.added('Archive', 7).placement
      await move(mailbox, added, to)
      const found = { ...added, placement: { ...to, flags: ['\\Draft'] } }
      await mailbox.apply('Archive', { added: [found] })
      assert.deepEqual((await mailbox.message(added.id)).placements, [to])
    })
  })
}
