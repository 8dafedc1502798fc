import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGiveWay } from '../../engine/waits.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { createLoopGuard, type Held, takeHeld, watchLoop, workAs } from '../../engine/observe/loop.ts'
import { createMetrics } from '../../engine/observe/metrics.ts'
import { openDatabase } from '../../engine/store/sqlite/database.ts'
import { until } from '../support/until.ts'

/** Of the processor's time, however busy the machine is with other work. */
function spin(ms: number): void {
  const used = process.threadCpuUsage()
  const spent = (): number => {
    const { user, system } = process.threadCpuUsage(used)
    return (user + system) / 1000
  }
  while (spent() < ms);
}

suite('the event loop and who holds it', () => {
  let directory: string
  let end: () => Promise<void>
  const told: Held[] = []
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'mailroom-loop-'))
    end = watchLoop(directory, (held) => told.push(held))
  })
  after(async () => {
    await end()
    await rm(directory, { recursive: true })
  })
  const ofOwner = (id: string): Held[] => told.filter(({ owner }) => owner?.id === id)

  test('a turn of more than 100 ms is told with its owner, also after a wait and from a socket', async () => {
    const server = createServer((socket) => void socket.write('x')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const socket = workAs({ kind: 'account', id: 'by-socket' }, () => {
      const opened = connect(port, '127.0.0.1')
      opened.once('data', () => spin(150))
      return opened
    })
    const slow = workAs({ kind: 'webhook', id: 'by-timer' }, async () => {
      await sleep(5)
      await Promise.resolve()
      spin(150)
    })
    await slow
    await until('both are told', () => ofOwner('by-socket').length > 0 && ofOwner('by-timer').length > 0)
    for (const held of [...ofOwner('by-socket'), ...ofOwner('by-timer')]) assert(held.ms >= 120, String(held.ms))
    assert.equal(ofOwner('by-timer')[0]?.owner?.kind, 'webhook')
    socket.destroy()
    server.close()
  })

  test('of batches that share turns, the one that holds one is told, and of writes nobody', async () => {
    const batch = (id: string, ms: number) =>
      workAs({ kind: 'account', id }, async () => {
        const giveWay = createGiveWay()
        for (let n = 0; n < 6; n += 1) {
          await giveWay()
          spin(n === 5 ? ms : 12)
        }
      })
    await Promise.all([batch('first', 12), batch('holding', 150), batch('last', 12)])
    const path = join(directory, 'shared.db')
    const database = openDatabase(path, 'off', 100)
    const write = (id: string, ms: number) => workAs({ kind: 'account', id }, () => database.write(() => spin(ms)))
    await Promise.all([write('writes first', 1), write('writes long', 150)])
    database.close()
    await until('it is told', () => ofOwner('holding').length > 0 && told.some(({ owner }) => owner === null))
    for (const id of ['first', 'last', 'writes first']) assert.deepEqual(ofOwner(id), [], id)
  })

  test('many short turns are nobody\u2019s fault, nor is a wait', async () => {
    await workAs({ kind: 'account', id: 'polite' }, async () => {
      for (let n = 0; n < 20; n += 1) {
        spin(10)
        await sleep(1)
      }
      await sleep(300)
    })
    assert.deepEqual(ofOwner('polite'), [])
  })

  test('the note names the account while a turn goes on, and is gone after it', async () => {
    const [file, seen] = [join(directory, 'held'), join(directory, 'seen')]
    // This thread cannot look while it is held: another process does.
    const script = `const fs = require('node:fs')
      process.stdout.write('ready')
      setInterval(() => {
        let note = ''
        try { note = fs.readFileSync(${JSON.stringify(file)}) } catch {}
        if (note.length > 0) process.exit(fs.writeFileSync(${JSON.stringify(seen)}, note))
      }, 20)
      setTimeout(() => process.exit(1), 30_000)`
    const reader = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(reader, 'exit')
    await once(reader.stdout, 'data')
    const isRead = (): boolean => existsSync(seen) && readFileSync(seen).length > 0
    const giveUpAt = performance.now() + 20_000
    workAs({ kind: 'account', id: '0123456789abcdef01234567' }, () =>
      setTimeout(() => {
        while (!isRead() && performance.now() < giveUpAt) spin(10)
      }, 1),
    )
    await ended
    assert.equal(readFileSync(seen, 'utf8'), '0123456789abcdef01234567')
    await until('the note is gone', () => !existsSync(file))
  })

  test('a process that is killed meanwhile leaves it, and it is told until it is counted', async () => {
    const child = join(directory, 'child')
    const loop = new URL('../../engine/observe/loop.ts', import.meta.url).href
    const script = `import { mkdirSync } from 'node:fs'
      import { watchLoop, workAs } from ${JSON.stringify(loop)}
      mkdirSync(${JSON.stringify(child)})
      watchLoop(${JSON.stringify(child)}, () => undefined)
      workAs({ kind: 'account', id: 'abc' }, () => setTimeout(() => { for (;;); }, 1000))`
    const process_ = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' })
    try {
      await until('the note is there', () => readFileSync(join(child, 'held'), 'utf8') === 'abc')
    } finally {
      process_.kill('SIGKILL')
    }
    await once(process_, 'exit')
    await assert.rejects(takeHeld(child, () => Promise.reject(new Error('the store is away'))))
    const counted: string[] = []
    for (let n = 0; n < 2; n += 1) await takeHeld(child, (id) => Promise.resolve(void counted.push(id)))
    assert.deepEqual(counted, ['abc'])
  })

  test('no data directory, no note', async () => {
    await writeFile(join(directory, 'file'), '')
    const stop = watchLoop(join(directory, 'file', 'missing'), () => undefined)
    workAs({ kind: 'account', id: 'x' }, () => setTimeout(() => spin(600), 1))
    await sleep(1000)
    await stop()
  })
})

suite('an account that holds the loop again and again', () => {
  const held = (ms: number, id: string, kind: 'account' | 'webhook' = 'account'): Held => ({ owner: { kind, id }, ms })
  const rig = () => {
    const clock = { at: 0 }
    const aside: string[][] = []
    const accounts = { setAside: (...told: string[]) => void aside.push(told) }
    const deps = { log: silentLogger, metrics: createMetrics(), accounts, now: () => clock.at }
    return { clock, aside, guard: createLoopGuard(deps), metrics: deps.metrics }
  }

  test('5 s within ten minutes set it aside, and the count begins anew', () => {
    const { guard, aside } = rig()
    for (let n = 0; n < 4; n += 1) for (const id of ['a', 'b']) guard(held(1249, id))
    assert.deepEqual(aside, [])
    guard(held(2500, 'a'))
    guard(held(4999, 'a'))
    assert.deepEqual(aside, [['a', 'its mailbox kept the whole service waiting for 7.5 s within 10 minutes']])
  })

  test('what lies further back does not count, nor does a webhook', async () => {
    const { guard, aside, clock, metrics } = rig()
    guard(held(4000, 'a'))
    clock.at = 600_000
    guard(held(4000, 'a'))
    for (let n = 0; n < 3; n += 1) guard(held(4000, 'w', 'webhook'))
    guard({ owner: null, ms: 9000 })
    assert.deepEqual(aside, [])
    assert.match(await metrics.registry.metrics(), /mailroom_event_loop_held_seconds_sum\{kind="webhook"\} 12\n/)
  })
})
