/** Lines of the log say for which call and which account they were written, also deep in the engine. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { concernsAccount, createLogger, workAs } from '../../engine/index.ts'
import { startReceiver, type CallbackReceiver } from '../support/callbacks.ts'
import { until } from '../support/until.ts'
import { startLiteRig, type LiteRig, type TestMailbox } from '../api/lite/rig.ts'

type Line = Readonly<Record<string, unknown>>
const lines: Line[] = []
const write = (text: string): void => void lines.push(JSON.parse(text) as Line)
const log = createLogger({ MAILROOM_LOG_LEVEL: 'debug' }, { write })
const idsOf = (msg: string): Line[] =>
  lines
    .filter((line) => line['msg'] === msg)
    .map(({ requestId, accountId, channelId }) => ({ requestId, accountId, channelId }))

suite('ids in the log', () => {
  test('are those of the work, over waits; what a line says itself goes before', async () => {
    await Promise.all([
      workAs({ kind: 'call', id: 'GET /x', requestId: 'r1' }, async () => {
        log.info('before')
        await sleep(2)
        concernsAccount('a1')
        await sleep(2)
        log.info('call')
      }),
      workAs({ kind: 'account', id: 'a2' }, async () => {
        await sleep(3)
        concernsAccount('not mine')
        log.info('account')
        log.info({ accountId: 'a3' }, 'other')
      }),
      workAs({ kind: 'webhook', id: 'w1', accountId: 'a4' }, async () => {
        await sleep(1)
        log.info('webhook')
      }),
    ])
    log.info('none')
    const none = { requestId: undefined, accountId: undefined, channelId: undefined }
    assert.deepEqual(idsOf('before'), [{ ...none, requestId: 'r1' }])
    assert.deepEqual(idsOf('call'), [{ ...none, requestId: 'r1', accountId: 'a1' }])
    assert.deepEqual(idsOf('account'), [{ ...none, accountId: 'a2' }])
    assert.deepEqual(idsOf('other'), [{ ...none, accountId: 'a3' }])
    assert.deepEqual(idsOf('webhook'), [{ ...none, channelId: 'w1', accountId: 'a4' }])
    assert.deepEqual(idsOf('none'), [none])
  })
})

suite('ids in the log of a whole engine', () => {
  let rig: LiteRig
  let receiver: CallbackReceiver
  let box: TestMailbox
  before(async () => {
    receiver = await startReceiver()
    rig = await startLiteRig({ log })
    box = await rig.mailbox('lola')
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })

  test('a call that fails at the mail server names itself and the account, in API and engine', async () => {
    await rig.imap.close()
    await until('noticed', () => rig.engine.accounts.view(box.accountId)?.state === 'waiting')
    const from = lines.length
    const answer = await rig.call('POST', `${box.path}/folders/New`)
    assert.equal(answer.status, 503, answer.text)
    const requestId = answer.headers['x-request-id']
    const own = lines.slice(from).filter((line) => line['requestId'] === requestId)
    assert(
      own.some((line) => line['route'] !== undefined && line['accountId'] === box.accountId),
      JSON.stringify(own),
    )
    const failed = lines.filter((line) => line['msg'] === 'account attempt failed')
    assert(failed.length > 0 && failed.every((line) => line['accountId'] === box.accountId))
  })

  test('what an account does after a call that woke it is its own work, and not the call’s', async () => {
    const from = lines.length
    const attempts = (): Line[] => lines.slice(from).filter((line) => line['msg'] === 'account attempt failed')
    workAs({ kind: 'call', id: 'POST /reconnect', requestId: 'woke it' }, () => rig.engine.accounts.wake(box.accountId))
    await until('another attempt', () => attempts().length > 0)
    for (const line of attempts()) assert.deepEqual([line['requestId'], line['accountId']], [undefined, box.accountId])
  })
})
