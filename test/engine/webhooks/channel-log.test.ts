/** What the log says of a callback that was not tried. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../../engine/config.ts'
import { AppError } from '../../../engine/errors.ts'
import { Channel } from '../../../engine/webhooks/channel.ts'
import { silentLogger } from '../../../engine/observe/log.ts'
import { laneRow } from './lane-row.ts'

test('a callback that the end of the service cuts off is no error in the log', async () => {
  const told: string[] = []
  const codes = ['shutting_down', 'store_unavailable'] as const
  const log = {
    ...silentLogger,
    debug: () => void told.push('debug'),
    error: () => void told.push('error'),
  }
  for (const code of codes) {
    const channel = new Channel('c', {
      store: { outbox: { pending: () => Promise.resolve([]) } },
      attempts: { handle: () => Promise.reject(new AppError(code, 'no')) },
      log,
      now: () => 1000,
      random: () => 0.5,
      config: readConfig({}),
      notify: () => undefined,
    })
    channel.sendNow(laneRow('a', 0))
    await channel.settled()
  }
  assert.deepEqual(told, ['debug', 'error'])
})
