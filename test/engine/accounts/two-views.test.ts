/** A comparison over one connection, while another one has stored what this one was not shown. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { compareUids } from '../../../engine/accounts/compare.ts'
import { createFolderPoll } from '../../../engine/accounts/folders.ts'
import { catchUp, compareIfDue, readNew } from '../../../engine/accounts/sync.ts'
import type { Store } from '../../../engine/store/port.ts'
import { openTest } from '../../support/imap-server/session.ts'
import { fill, letter, openStage } from './stage.ts'

/** INBOX holds m1 and m2; `link` has it open over a connection of its own. */
async function twoConnections(t: TestContext) {
  let ahead = 0
  /** Once, when the index is next asked which UIDs it knows. */
  let meanwhile: (() => Promise<unknown>) | null = null
  const wrap = (store: Store): Store => ({
    ...store,
    messages: {
      ...store.messages,
      async knownUids(...args) {
        const work = meanwhile
        meanwhile = null
        await work?.()
        return store.messages.knownUids(...args)
      },
    },
  })
  const stage = await openStage(t, { now: () => Date.now() + ahead, wrap })
  fill(stage.server, 'INBOX', 2)
  const { server } = stage
  const worker = await stage.work()
  await worker.readAll()
  const { id: folderId } = await stage.folder('INBOX')
  const watching = { ...worker.context, folderId }
  const link = { ...watching, session: await openTest(t, server) }
  await link.session.select('INBOX')
  const arrive = async (read: () => Promise<unknown>): Promise<void> => {
    server.append('ann', 'INBOX', letter(`m${server.folder('ann', 'INBOX').uidNext}`))
    await worker.session.select('INBOX', { refresh: true })
    await read()
  }
  return {
    ...{ stage, worker, watching, link, arrive },
    meanwhile: (work: () => Promise<unknown>) => void (meanwhile = work),
    /** m1 goes, and the link finds it out while m3 comes; m4 when it compares again. The watching one reads them. */
    async compareMeanwhile(...reads: (() => Promise<unknown>)[]): Promise<void> {
      server.expunge('ann', 'INBOX', 1)
      const linkId = server.connections.at(-1)?.id
      const count = reads.length
      server.hooks = {
        async send(response, call) {
          const isAll = call?.connection === linkId && call?.text.endsWith(':*')
          const read = isAll && response.toString().startsWith('* SEARCH') ? reads.shift() : undefined
          if (read !== undefined) await arrive(read)
          return response
        },
      }
      await catchUp(link, 'INBOX')
      assert.deepEqual(await stage.subjects('INBOX'), ['m2', 'm3', 'm4'].slice(0, 1 + count))
    },
    later: (ms: number) => void (ahead += ms),
    async isCounted(most: number, exists = most): Promise<void> {
      const { counts, cursor } = await stage.folder('INBOX')
      assert.deepEqual([counts, cursor?.exists], [{ messages: most, unseen: most }, exists])
    },
  }
}

suite('a comparison over a connection', () => {
  test('that has not heard of what another one has stored counts that too', async (t) => {
    const { worker, link, arrive, isCounted } = await twoConnections(t)
    await arrive(() => worker.catchUp('INBOX'))
    await compareIfDue(link, null)
    await isCounted(3)
  })

  test('leaves the counts that another one has stored meanwhile', async (t) => {
    const { worker, compareMeanwhile, isCounted } = await twoConnections(t)
    await compareMeanwhile(() => worker.catchUp('INBOX'))
    await isCounted(2)
  })

  test('is made once more where the other one has only read what is new', async (t) => {
    const { watching, compareMeanwhile, isCounted } = await twoConnections(t)
    await compareMeanwhile(() => readNew(watching))
    await isCounted(2)
  })

  test('is made once more with the count of then', async (t) => {
    const { watching, link, arrive, meanwhile, isCounted } = await twoConnections(t)
    meanwhile(() => arrive(() => readNew(watching)))
    await compareUids(link, 2)
    await isCounted(3)
  })

  test('of a folder that it has under another UIDVALIDITY takes nothing out', async (t) => {
    const { stage, worker, link, arrive } = await twoConnections(t)
    stage.server.renumber('ann', 'INBOX')
    await worker.readAll()
    await arrive(() => worker.catchUp('INBOX'))
    const linkId = stage.server.connections.at(-1)?.id
    // Its view has none of the new UIDs.
    stage.server.hooks = {
      send(response, call) {
        if (call?.connection !== linkId) return response
        if (response.includes(' FETCH (')) return null
        return response.toString().startsWith('* SEARCH') ? Buffer.from('* SEARCH\r\n') : response
      },
    }
    await compareUids(link, 2)
    assert.deepEqual(await stage.subjects('INBOX'), ['m1', 'm2', 'm3'])
  })

  test('hides nothing from the next look where the other one has read again meanwhile', async (t) => {
    const { worker, watching, compareMeanwhile, later, isCounted } = await twoConnections(t)
    const read = () => readNew(watching)
    await compareMeanwhile(read, read)
    await isCounted(3, 4)
    later(1000)
    assert.deepEqual(await createFolderPoll(worker.context).poll(), ['INBOX'])
    await worker.catchUp('INBOX')
    await isCounted(3)
  })
})
