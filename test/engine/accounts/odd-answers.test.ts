/** Servers that leave things out of their answers, or get them wrong (imap-servers.md rows 5, 6, 8, 9, 11, 13, 14). */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { reportGone } from '../../../engine/accounts/departures.ts'
import { catchUp } from '../../../engine/accounts/sync.ts'
import { fullCapabilities, type Hooks } from '../../support/imap-server/index.ts'
import { fill, letter, openStage, type Stage, type Worker } from './stage.ts'

const noConditions = fullCapabilities.filter((name) => name !== 'CONDSTORE' && name !== 'ENABLE')
const text = (response: Buffer) => response.toString('latin1')

async function tellLater({ context }: Worker): Promise<void> {
  await reportGone({ ...context, deps: { ...context.deps, now: () => Date.now() + 10_000 } })
}

/** The periodic full comparison is due at once. */
const dueNow = { MAILROOM_FLAG_COMPARE: '0ms' }

async function started(stage: Stage): Promise<Worker> {
  const worker = await stage.work()
  await worker.readAll()
  return worker
}

suite('UIDNEXT', () => {
  const never: Hooks = {
    command: ({ text: sent }) => (/ \*(?: |$)/.test(sent) ? { tagged: 'BAD Invalid sequence set' } : undefined),
    send: (response) => (/UIDNEXT/.test(text(response)) ? response.toString().replace(/UIDNEXT \d+ ?/, '') : response),
  }
  for (const capabilities of [fullCapabilities, ['IMAP4rev1']]) {
    test(`never said, and "*" is refused (${capabilities.length} capabilities)`, async (t) => {
      const stage = await openStage(t, { capabilities, hooks: never })
      fill(stage.server, 'INBOX', 5)
      const worker = await started(stage)
      stage.server.append('ann', 'INBOX', letter('n1'))
      await worker.catchUp('INBOX')
      await started(stage)
      assert.deepEqual(await stage.story(), ['received n1 INBOX'])
      assert.equal((await stage.subjects('INBOX')).length, 6)
    })
  }

  test('runs backwards under the same UIDVALIDITY: the tail is looked through, nothing known is told again', async (t) => {
    const stage = await openStage(t)
    fill(stage.server, 'INBOX', 5)
    const worker = await started(stage)
    stage.server.append('ann', 'INBOX', letter('n1'))
    await worker.catchUp('INBOX')
    stage.server.folder('ann', 'INBOX').uidNext = 100
    stage.server.append('ann', 'INBOX', letter('n2'))
    await worker.catchUp('INBOX')
    const folder = stage.server.folder('ann', 'INBOX')
    folder.uidNext = 50
    stage.server.append('ann', 'INBOX', letter('n3'))
    folder.messages.sort((a, b) => a.uid - b.uid)
    await worker.catchUp('INBOX')
    await started(stage)
    assert.deepEqual(await stage.story(), ['received n1 INBOX', 'received n2 INBOX', 'received n3 INBOX'])
    assert.equal((await stage.subjects('INBOX')).length, 8)
  })
})

suite('omissions', () => {
  test('a FETCH that leaves out a UID: asked for again, told once', async (t) => {
    const stage = await openStage(t)
    fill(stage.server, 'INBOX', 3)
    const worker = await started(stage)
    let dropped = 0
    stage.server.hooks = {
      send(response) {
        if (dropped >= 2 || !/FETCH \(UID 5 FLAGS/.test(text(response))) return response
        dropped += 1
        return null
      },
    }
    for (const subject of ['n1', 'n2', 'n3']) stage.server.append('ann', 'INBOX', letter(subject))
    await worker.catchUp('INBOX')
    assert.equal(dropped, 2)
    assert.deepEqual((await stage.story()).sort(), ['received n1 INBOX', 'received n2 INBOX', 'received n3 INBOX'])
    await worker.catchUp('INBOX')
    assert.equal((await stage.told()).length, 3)
  })

  test('the last of the new ones is left out while another message goes: found nevertheless', async (t) => {
    const stage = await openStage(t)
    fill(stage.server, 'INBOX', 3)
    const worker = await started(stage)
    let dropped = 0
    stage.server.hooks = {
      send(response) {
        if (dropped >= 1 || !/FETCH \(UID 4 FLAGS/.test(text(response))) return response
        dropped += 1
        return null
      },
    }
    stage.server.append('ann', 'INBOX', letter('n1'))
    stage.server.expunge('ann', 'INBOX', 1)
    await worker.catchUp('INBOX')
    assert.equal(dropped, 1)
    assert.deepEqual(await stage.story(), ['received n1 INBOX'])
  })

  for (const [others, cached] of [[0], [2], [0, 'headers'], [2, 'headers']] as const)
    test(`mail gone when it is read is no mail, not asked for again (${others} others, ${cached ?? 'none'} cached)`, async (t) => {
      const stage = await openStage(t)
      fill(stage.server, 'INBOX', others)
      const worker = await started(stage)
      const uid = stage.server.append('ann', 'INBOX', letter('filtered'))
      let asked = 0
      stage.server.hooks = {
        ...(cached ? { cached } : {}),
        command({ text: line }) {
          if (/UID FETCH .*RFC822\.SIZE/.test(line) && asked++ === 0) stage.server.expunge('ann', 'INBOX', uid)
          return undefined
        },
      }
      await worker.catchUp('INBOX')
      assert.deepEqual(await stage.story(), [])
      const { cursor, messages } = await stage.folder('INBOX')
      assert.deepEqual([cursor?.uidNext, cursor?.exists, messages, cursor?.quarantined], [uid + 1, others, others, []])
      assert.equal(asked, 1)
      stage.server.append('ann', 'INBOX', letter('next'))
      await worker.catchUp('INBOX')
      assert.deepEqual(await stage.story(), ['received next INBOX'])
    })

  test('answers without FLAGS: they are asked for', async (t) => {
    const stage = await openStage(t)
    stage.server.hooks = {
      send: (response, call) =>
        call?.text.includes('INTERNALDATE') === true && /FETCH \(/.test(text(response))
          ? Buffer.from(text(response).replace(/FLAGS \([^)]*\) /, ''), 'latin1')
          : response,
    }
    stage.server.append('ann', 'INBOX', letter('old'), ['\\Seen', '\\Answered'])
    const worker = await started(stage)
    stage.server.append('ann', 'INBOX', letter('new'), ['\\Flagged'])
    await worker.catchUp('INBOX')
    await worker.catchUp('INBOX')
    assert.deepEqual((await stage.message('old')).placements[0]?.flags, ['\\Answered', '\\Seen'])
    assert.deepEqual((await stage.message('new')).placements[0]?.flags, ['\\Flagged'])
    assert.deepEqual(await stage.story(), ['received new INBOX'])
  })

  test('a SEARCH that leaves out half of the folder deletes nothing', async (t) => {
    const stage = await openStage(t)
    fill(stage.server, 'INBOX', 10)
    const worker = await started(stage)
    stage.server.hooks = {
      send: (response) => (/^\* SEARCH/.test(text(response)) ? Buffer.from('* SEARCH 6 7 8\r\n') : response),
    }
    stage.server.expunge('ann', 'INBOX', 2)
    await worker.catchUp('INBOX')
    await tellLater(worker)
    assert.deepEqual(await stage.story(), ['deleted m2 INBOX'])
    assert.equal((await stage.subjects('INBOX')).length, 9)
  })

  test('new mail that neither FETCH nor SEARCH shows at first', async (t) => {
    const stage = await openStage(t)
    fill(stage.server, 'INBOX', 2)
    const worker = await started(stage)
    stage.server.hooks = {
      send(response) {
        if (/FETCH \(UID 3 /.test(text(response))) return null
        return /^\* SEARCH/.test(text(response)) ? Buffer.from(text(response).replace(/ 3\b/, '')) : response
      },
    }
    stage.server.append('ann', 'INBOX', letter('n1'))
    await worker.catchUp('INBOX')
    assert.deepEqual(await stage.told(), [])
    stage.server.hooks = {}
    stage.server.append('ann', 'INBOX', letter('n2'))
    await worker.catchUp('INBOX')
    assert.deepEqual((await stage.story()).sort(), ['received n1 INBOX', 'received n2 INBOX'])
    await worker.catchUp('INBOX')
    assert.equal((await stage.folder('INBOX')).cursor?.exists, 4)
  })
})

suite('poison', () => {
  /** A FETCH that touches one of these UIDs is refused whole. */
  function poisoned(...uids: readonly number[]): Hooks {
    return {
      command({ name, text: line, folder }) {
        const set = /UID FETCH (\S+) \(UID FLAGS INTERNALDATE/.exec(line)?.[1]
        if (name !== 'UID FETCH' || set === undefined || folder === null) return undefined
        const inside = set.split(',').some((part) => {
          const [from = 0, to = from] = part.split(':').map((end) => (end === '*' ? folder.uidNext : Number(end)))
          return uids.some((uid) => uid >= from && uid <= to && folder.messages.some((one) => one.uid === uid))
        })
        return inside ? { tagged: 'NO System Error' } : undefined
      },
    }
  }

  test('in the history: all others are read; when it heals it is read and told to nobody', async (t) => {
    const stage = await openStage(t, { hooks: poisoned(7, 13), settings: dueNow })
    fill(stage.server, 'INBOX', 20)
    await started(stage)
    assert.equal((await stage.subjects('INBOX')).length, 18)
    assert.deepEqual(
      (await stage.folder('INBOX')).cursor?.quarantined.toSorted((a, b) => a - b),
      [7, 13],
    )
    stage.server.hooks = poisoned(13)
    await started(stage)
    assert.deepEqual((await stage.folder('INBOX')).cursor?.quarantined, [13])
    stage.server.hooks = {}
    await started(stage)
    assert.equal((await stage.subjects('INBOX')).length, 20)
    assert.deepEqual(await stage.told(), [])
  })

  test('in new mail: the others are told at once, it is told when it heals', async (t) => {
    const stage = await openStage(t, { settings: dueNow })
    fill(stage.server, 'INBOX', 2)
    const worker = await started(stage)
    stage.server.hooks = poisoned(4)
    for (const subject of ['n1', 'n2', 'n3']) stage.server.append('ann', 'INBOX', letter(subject))
    await worker.catchUp('INBOX')
    assert.deepEqual(await stage.story(), ['received n1 INBOX', 'received n3 INBOX'])
    stage.server.append('ann', 'INBOX', letter('n4'))
    await worker.catchUp('INBOX')
    stage.server.hooks = {}
    await worker.catchUp('INBOX')
    await worker.catchUp('INBOX')
    assert.deepEqual(await stage.story(), [
      'received n1 INBOX',
      'received n3 INBOX',
      'received n4 INBOX',
      'received n2 INBOX',
    ])
    assert.deepEqual((await stage.folder('INBOX')).cursor?.quarantined, [])
  })

  test('one that is deleted on the server is not asked for again', async (t) => {
    const stage = await openStage(t, { hooks: poisoned(2), settings: dueNow })
    fill(stage.server, 'INBOX', 3)
    const worker = await started(stage)
    stage.server.expunge('ann', 'INBOX', 2)
    await worker.catchUp('INBOX')
    assert.deepEqual((await stage.folder('INBOX')).cursor?.quarantined, [])
    await tellLater(worker)
    assert.deepEqual(await stage.told(), [])
  })
})

suite('BODYSTRUCTURE', () => {
  function nested(depth: number): string {
    const open = Array.from(
      { length: depth },
      (_, n) => `--b${n}\nContent-Type: multipart/mixed; boundary="b${n + 1}"\n\n`,
    )
    const head = ['From: a@b.example', 'To: ann@mail.example', 'Subject: deep', 'Message-ID: <deep@b.example>']
    const close = Array.from({ length: depth + 1 }, (_, n) => `--b${depth - n}--\n`).join('')
    const leaf = `--b${depth}\nContent-Type: text/plain\n\ndown here\n`
    return [...head, 'Content-Type: multipart/mixed; boundary="b0"', '', open.join('') + leaf + close].join('\n')
  }

  test('30 levels deep: the message is indexed, between two others', async (t) => {
    const stage = await openStage(t)
    const worker = await started(stage)
    stage.server.append('ann', 'INBOX', letter('n1'))
    stage.server.append('ann', 'INBOX', nested(30))
    stage.server.append('ann', 'INBOX', letter('n2'))
    await worker.catchUp('INBOX')
    assert.deepEqual(await stage.story(), ['received n1 INBOX', 'received deep INBOX', 'received n2 INBOX'])
  })

  test('unreadable: the parts are read from the message itself', async (t) => {
    const stage = await openStage(t)
    const worker = await started(stage)
    const two = [
      'From: a@b.example',
      'Subject: two parts',
      'Message-ID: <two@b.example>',
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary=xx',
      '',
      '--xx',
      'Content-Type: text/plain',
      '',
      'text',
      '--xx',
      'Content-Type: application/pdf; name="bill.pdf"',
      'Content-Disposition: attachment; filename="bill.pdf"',
      'Content-Transfer-Encoding: base64',
      '',
      'JVBERi0=',
      '--xx--',
      '',
    ].join('\n')
    for (const broken of ['BODYSTRUCTURE NIL', 'BODYSTRUCTURE ((("text" "plain"']) {
      stage.server.hooks = {
        send: (response) =>
          Buffer.from(text(response).replace(/BODYSTRUCTURE \(.*?\) (?=BODY\[HEADER)/s, `${broken} `), 'latin1'),
      }
      stage.server.append('ann', 'INBOX', two.replace('<two', `<two${broken.length}`))
      await worker.catchUp('INBOX')
    }
    assert.deepEqual(await stage.story(), ['received two parts INBOX', 'received two parts INBOX'])
    const rows = await stage.store.messages.older(stage.account.id, null, 10)
    for (const row of rows) {
      assert.deepEqual(
        row.attachments.map((one) => [one.fileName, one.section]),
        [['bill.pdf', '2']],
      )
      assert.deepEqual(
        row.bodies.map((one) => one.section),
        ['1'],
      )
    }
  })
})

suite('CONDSTORE', () => {
  test('HIGHESTMODSEQ 0 is "unknown": flags are compared, and by modseq once it is known', async (t) => {
    const stage = await openStage(t)
    stage.server.hooks = {
      send: (response) => Buffer.from(text(response).replace(/HIGHESTMODSEQ \d+/, 'HIGHESTMODSEQ 0'), 'latin1'),
    }
    fill(stage.server, 'INBOX', 3)
    const worker = await started(stage)
    assert.equal((await stage.folder('INBOX')).cursor?.highestModseq, '0')
    stage.server.setFlags('ann', 'INBOX', 1, ['\\Seen'])
    await worker.catchUp('INBOX')
    stage.server.hooks = {}
    stage.server.setFlags('ann', 'INBOX', 2, ['\\Seen'])
    await worker.catchUp('INBOX')
    assert.notEqual((await stage.folder('INBOX')).cursor?.highestModseq, '0')
    stage.server.setFlags('ann', 'INBOX', 3, ['\\Seen'])
    await worker.catchUp('INBOX')
    assert.deepEqual(await stage.story(), [
      'flags_changed m1 INBOX',
      'flags_changed m2 INBOX',
      'flags_changed m3 INBOX',
    ])
  })

  test('HIGHESTMODSEQ that starts anew from below: flags are compared, and changes after it are seen', async (t) => {
    const stage = await openStage(t)
    fill(stage.server, 'INBOX', 3)
    const folder = stage.server.folder('ann', 'INBOX')
    folder.highestModseq = 1000n
    const worker = await started(stage)
    stage.server.setFlags('ann', 'INBOX', 1, ['\\Seen'])
    await worker.catchUp('INBOX')
    folder.highestModseq = 1n
    for (const message of folder.messages) message.modseq = 1n
    stage.server.setFlags('ann', 'INBOX', 2, ['\\Seen'])
    await worker.catchUp('INBOX')
    stage.server.setFlags('ann', 'INBOX', 1, [])
    await worker.catchUp('INBOX')
    assert.deepEqual(await stage.story(), [
      'flags_changed m1 INBOX',
      'flags_changed m2 INBOX',
      'flags_changed m1 INBOX',
    ])
  })

  test('without it, old flags are compared in windows: the newest often, all now and then', async (t) => {
    const stage = await openStage(t, { capabilities: noConditions, settings: { MAILROOM_FLAG_COMPARE: '1h' } })
    fill(stage.server, 'INBOX', 700)
    const worker = await started(stage)
    stage.server.setFlags('ann', 'INBOX', 1, ['\\Seen'])
    stage.server.setFlags('ann', 'INBOX', 700, ['\\Seen'])
    await worker.catchUp('INBOX')
    assert.deepEqual(await stage.story(), ['flags_changed m700 INBOX'])
    const later = { ...worker.context.deps, now: () => Date.now() + 2 * 3_600_000 }
    let signs = 0
    worker.state.onProgress(() => (signs += 1))
    await catchUp({ ...worker.context, deps: later }, 'INBOX')
    assert.deepEqual(await stage.story(), ['flags_changed m700 INBOX', 'flags_changed m1 INBOX'])
    const plain = signs
    await catchUp({ ...worker.context, deps: { ...later, now: () => Date.now() + 4 * 3_600_000 } }, 'INBOX')
    assert(plain > 2 && signs >= plain + 3, 'a window in which nothing changed is a sign of life too')
    const compared = stage.server.log.filter(({ line }) => /UID FETCH \S+ \(UID FLAGS\)/.test(line))
    assert(compared.length >= 3)
  })

  test('MODSEQ is offered and refused (BAD): done without', async (t) => {
    const stage = await openStage(t, {
      hooks: {
        command: ({ text: line }) => (/MODSEQ|CHANGEDSINCE/.test(line) ? { tagged: 'BAD no such item' } : undefined),
      },
    })
    fill(stage.server, 'INBOX', 3)
    const worker = await started(stage)
    stage.server.append('ann', 'INBOX', letter('n1'))
    stage.server.setFlags('ann', 'INBOX', 2, ['\\Seen'])
    await worker.catchUp('INBOX')
    assert.deepEqual((await stage.story()).sort(), ['flags_changed m2 INBOX', 'received n1 INBOX'])
  })
})
