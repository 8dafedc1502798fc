/**
 * What a hostile mail server sends costs the connection at most: the process lives, others are answered, memory stays
 * small.
 */
import assert from 'node:assert/strict'
import { after, afterEach, before, suite, test } from 'node:test'
import { startLiteRig, type Json } from '../api/lite/rig.ts'
import { openStage, type Stage } from '../e2e/stage.ts'
import { createImapServer, fullCapabilities, type Hooks, type ImapServer } from '../support/imap-server/index.ts'
import { holdOf } from '../support/loop-held.ts'
import { mail } from '../support/mail.ts'
import { until } from '../support/until.ts'
import { createUser, listed, userBody } from '../support/users.ts'
import { assertShort, beside, type Waits } from './bystanders.ts'

const ann = 'ann@mail.example'
/** To the first login. */
const manyLiterals: Hooks = {
  command: ({ name }) =>
    name === 'AUTHENTICATE' ? { lines: [Buffer.from(`* SEARCH${' {0}\r\n'.repeat(50_000)}`)] } : undefined,
}
/** So much more may be resident after an attack: what was sent is many times that. */
const growthKib = 160 * 1024

suite('answers of a hostile mail server', () => {
  let stage: Stage
  let server: ImapServer
  before(async () => {
    stage = await openStage({ env: { MAILROOM_FOLDER_POLL: '1s', MAILROOM_FOLDER_LIST: '1s' } })
  })
  after(() => stage.remove())
  afterEach(async () => {
    for (const { id } of await stage.service.list('/lite/users'))
      await stage.service.ok('DELETE', `/lite/users/${String(id)}`)
    await server.close()
  })

  /** A user whose mailbox the hooks play; `attack` is watched. */
  async function account(hooks: Hooks = {}, capabilities = fullCapabilities): Promise<string> {
    server = await createImapServer({ users: { [ann]: {} }, hooks, capabilities })
    server.append(ann, 'INBOX', mail({ to: ann, subject: 'first' }))
    return createUser(stage.service, { ...server, password: 'secret' }, ann)
  }

  async function statusMessage(id: string): Promise<string> {
    const [source] = await stage.service.list(`/lite/users/${id}/email_accounts`)
    return JSON.stringify(source?.['status_message'] ?? '')
  }

  async function folders(id: string): Promise<string[]> {
    const all = await stage.service.list(`/lite/users/${id}/email_accounts/0/folders`)
    return all.map(({ name }) => String(name))
  }

  async function says(id: string, wanted: RegExp): Promise<void> {
    const there = async (): Promise<boolean> => wanted.test(await statusMessage(id))
    await until(`status_message ${wanted.source}`, there, {
      withinMs: 15_000,
      explain: () => stage.service.log().slice(-3000),
    })
  }

  /** The processor time that the attack cost, and that others did not wait; nothing of it stays in memory. */
  async function bearable(attack: () => Promise<unknown>, mostMs: number): Promise<Waits> {
    const rss = stage.service.rssKib()
    const waits = await beside(stage.service, attack, 50)
    const grown = stage.service.rssKib() - rss
    assert(waits.health < 1000, `/healthz waited ${waits.health} ms`)
    assert(waits.processor < mostMs, `${waits.processor} ms of processor time`)
    assert(grown < growthKib, `${grown} KiB more are resident`)
    return waits
  }

  test('one line of 16 MB: the connection ends, the limit is told, at every start anew', async () => {
    const line = Buffer.from(`* SEARCH${' 1'.repeat(8_000_000)}`)
    let id = ''
    await bearable(async () => {
      id = await account({
        command: ({ name }) => (name === 'UID SEARCH' ? { lines: [line], proceed: true } : undefined),
      })
      await says(id, /Line length \d+ exceeds maximum allowed size of 1048576 bytes/)
    }, 4000)
    await stage.service.stop()
    await stage.service.start()
    const asked = server.log.length
    await until('another try', () => server.log.slice(asked).some(({ line: said }) => said.includes('UID SEARCH')))
    await says(id, /Line length \d+ exceeds maximum allowed size of 1048576 bytes/)
  })

  test('before any login, one SEARCH of 50,000 literals: it costs next to nothing, and the limit is told', async () => {
    server = await createImapServer({ users: { [ann]: {} }, hooks: manyLiterals })
    const waits = await bearable(async () => {
      const body = userBody({ ...server, password: 'secret' }, ann)
      const answer = await stage.service.ok('POST', '/lite/users', body)
      assert.match(JSON.stringify(answer), /SEARCH response of more than 5000 literals/)
    }, 1000)
    assertShort(waits, 10)
  })

  test('200,000 literals in one response, and a structure of 4 MB: the message is read without them', async () => {
    const literals = ' {1}\r\nx'.repeat(200_000)
    const structure = '("text" "plain" NIL NIL NIL "7bit" 5 1)'.repeat(100_000)
    const id = await account()
    await listed(stage.service, id, 'first')
    let asked = 0
    const command: Hooks['command'] = ({ name, text, folder }) => {
      if (name !== 'UID FETCH' || !text.includes('BODYSTRUCTURE')) return undefined
      asked += 1
      const { uid } = folder?.messages.at(-1) ?? { uid: 1 }
      const line = asked % 2 === 0 ? `X (${literals})` : `BODYSTRUCTURE (${structure} "mixed")`
      return { lines: [`* ${folder?.messages.length} FETCH (UID ${uid} ${line})`], tagged: 'OK done' }
    }
    await bearable(async () => {
      server.hooks = { command }
      for (const subject of ['second', 'third']) {
        server.append(ann, 'INBOX', mail({ to: ann, subject }))
        await listed(stage.service, id, subject)
      }
    }, 4000)
    assert(asked >= 2)
  })

  test('1,000 times VANISHED 1:100000', async () => {
    const id = await account()
    await listed(stage.service, id, 'first')
    await bearable(async () => {
      const lines = Array.from({ length: 1000 }, () => '* VANISHED 1:100000')
      for (const [names, subject] of [
        [['NOOP', 'STATUS', 'LIST'], 'second'],
        [['IDLE'], 'third'],
      ] as const) {
        let told = 0
        server.hooks = {
          command({ name }) {
            if (!names.some((one) => one === name)) return undefined
            told += 1
            return { lines, proceed: true }
          },
        }
        server.append(ann, 'INBOX', mail({ to: ann, subject }))
        await listed(stage.service, id, subject)
        await until(`VANISHED in ${names.join()}`, () => told > 0)
      }
      server.hooks = {}
    }, 4000)
  })

  for (const [name, line, mostMs] of [
    ['FETCH FLAGS', '* 1 FETCH (UID 1 FLAGS (\\Seen a b c d e f g h))', 2000],
    ['EXISTS', '* 1 EXISTS', 1500],
  ] as const) {
    test(`60,000 times ${name} in IDLE`, async () => {
      const id = await account()
      await listed(stage.service, id, 'first')
      const flood = Buffer.from(Array.from({ length: 30_000 }, () => `${line}\r\n${line}`).join('\r\n'))
      let floods = 0
      await bearable(async () => {
        const command: Hooks['command'] = (call) => {
          if (call.name !== 'IDLE' || call.folder?.name !== 'INBOX' || floods > 0) return undefined
          floods += 1
          return { lines: [flood], proceed: true }
        }
        server.hooks = { command }
        server.append(ann, 'INBOX', mail({ to: ann, subject: 'second' }))
        await listed(stage.service, id, 'second')
        await until('the flood', () => floods > 0)
        server.append(ann, 'INBOX', mail({ to: ann, subject: 'third' }))
        await listed(stage.service, id, 'third')
      }, mostMs)
    })
  }

  test('a folder name of 100 MB: the folder is left out', async () => {
    const id = await account()
    await listed(stage.service, id, 'first')
    const name = Buffer.concat([Buffer.from('* LIST () "/" {104857600}\r\n'), Buffer.alloc(104_857_600, 'a')])
    await bearable(async () => {
      let lists = 0
      server.hooks = {
        command({ name: word }) {
          if (word !== 'LIST') return undefined
          lists += 1
          return { lines: [name, '* LIST () "/" "new"'], proceed: true }
        },
      }
      await until('a list', () => lists > 0)
      const there = async (): Promise<boolean> => (await folders(id)).includes('new')
      await until('the other folders', there, { withinMs: 15_000 })
      assert((await folders(id)).every((folder) => folder.length < 100))
    }, 4000)
  })

  /** In buffers of 1,000 lines. */
  const numbered = (count: number, line: (n: number) => string): Buffer[] =>
    Array.from({ length: count / 1000 }, (_, thousand) =>
      Buffer.from(Array.from({ length: 1000 }, (_line, n) => line(1000 * thousand + n + 1)).join('\r\n')),
    )

  for (const [name, flags] of [
    ['one flag of 60 KB', `{60003}\r\n${'a'.repeat(60_000)}€`],
    ['4,000 flags', Array.from({ length: 4000 }, (_, n) => `keyword${n.toString(36)}`).join(' ')],
  ] as const) {
    test(`6,000 messages with ${name}, changed at once: they are compared by windows`, async () => {
      const id = await account()
      await listed(stage.service, id, 'first')
      const lines = numbered(6000, (n) => `* ${n} FETCH (UID ${n} MODSEQ (${n + 1000}) FLAGS (${flags}))`)
      let floods = 0
      let windows = 0
      const command: Hooks['command'] = ({ name: word, text }) => {
        if (word === 'UID FETCH' && / \(UID FLAGS MODSEQ\)$/.test(text)) windows += 1
        if (word !== 'UID FETCH' || !text.includes('CHANGEDSINCE') || floods > 0) return undefined
        floods += 1
        return { lines, proceed: true }
      }
      await bearable(async () => {
        server.hooks = { command }
        server.dropConnections()
        server.append(ann, 'INBOX', mail({ to: ann, subject: 'second' }))
        server.setFlags(ann, 'INBOX', 1, ['\\Flagged'])
        await listed(stage.service, id, 'second')
        await until('the flood, and windows', () => floods > 0 && windows > 0, { withinMs: 30_000 })
      }, 9000)
    })
  }

  test('7,000 folders with an attribute of 60 KB each: the limit is told', async () => {
    const id = await account()
    await listed(stage.service, id, 'first')
    const lines = numbered(7000, (n) => `* LIST ({60003}\r\n${'a'.repeat(60_000)}€) "/" "f${n}"`)
    await bearable(async () => {
      server.hooks = { command: ({ name }) => (name === 'LIST' ? { lines, proceed: true } : undefined) }
      server.dropConnections()
      await says(id, /more than 33554432 bytes of responses to one command/)
    }, 4000)
  })

  test('30 mails whose header fields are 16,000 characters of unclosed comments, and of parameters', async () => {
    const id = await account()
    await listed(stage.service, id, 'first')
    const fields = [
      `Content-Type: ${'('.repeat(16_000)}`,
      `Content-Disposition: attachment${'; filename*0*'.repeat(1200)}`,
      ...['From', 'To', 'Cc', 'References', 'In-Reply-To'].map((name) => `${name}: ${'(<"'.repeat(5000)}`),
      `Content-Type: multipart/mixed; boundary="${'\\"('.repeat(4000)}`,
    ]
    await bearable(async () => {
      for (let n = 1; n <= 30; n += 1) {
        const field = fields[n % fields.length] as string
        server.append(ann, 'INBOX', [`Subject: deep ${n}`, field, '', 'x'].join('\r\n'))
      }
      for (const n of [1, 30]) await listed(stage.service, id, `deep ${n}`)
    }, 4000)
    assert.equal(
      (await stage.service.list(`/lite/users/${id}/email_accounts/0/folders/INBOX/messages?limit=50`)).length,
      31,
    )
  })

  test('a list without end: no more than 10,000 folders, and the setting is named', async () => {
    const id = await account()
    await listed(stage.service, id, 'first')
    const folders = Array.from({ length: 50_000 }, (_, n) => `* LIST (\\HasNoChildren) "/" "folder ${n}"`)
    const endless = Buffer.from(folders.join('\r\n'))
    const command: Hooks['command'] = ({ name }) =>
      name === 'LIST' ? { lines: [endless, endless], proceed: true } : undefined
    await bearable(async () => {
      server.hooks = { command }
      await says(id, /the mailbox has more than 10000 folders \(MAILROOM_FOLDERS_MAX\)/)
    }, 6000)
    const answer = await stage.service.ok('POST', '/lite/users', userBody({ ...server, password: 'secret' }, ann))
    assert.equal(answer['success'], false)
    assert.match(JSON.stringify(answer), /more than 10000 folders/)
  })

  test('9,500 folders, and names of 4,500 characters: those are left out, the others are listed', async () => {
    const told = Array.from({ length: 9500 }, (_, n) => `* LIST (\\Noselect) "/" "folder ${n}"`)
    const lines = [Buffer.from([...told, `* LIST (\\Noselect) "/" "long ${'x'.repeat(4500)}"`].join('\r\n'))]
    let lists = 0
    await bearable(async () => {
      const id = await account({
        command({ name }) {
          if (name !== 'LIST') return undefined
          lists += 1
          return { lines, proceed: true }
        },
      })
      await listed(stage.service, id, 'first')
      await until('three lists', () => lists >= 4, { withinMs: 15_000 })
      const names = await folders(id)
      assert.equal(names.filter((name) => name.startsWith('folder ')).length, 9500)
      assert(!names.some((name) => name.startsWith('long ')))
    }, 8000)
  })

  test('a server that sends all of a message of 100 MB for each piece: the piece is kept, the rest passes by', async () => {
    const id = await account()
    await listed(stage.service, id, 'first')
    const [message] = await stage.service.list(`/lite/users/${id}/email_accounts/0/folders/INBOX/messages`)
    const raw = Buffer.alloc(100 * 1_048_576, 'abcdefghijklmnopqrstuvwxyz0123456789')
    raw.write('Subject: first\r\n\r\n')
    const answer = Buffer.concat([Buffer.from(`* 1 FETCH (UID 1 BODY[] {${raw.length}}\r\n`), raw, Buffer.from(')')])
    const part = 2 * 1_048_576
    await bearable(async () => {
      server.hooks = {
        command({ name, text }) {
          if (name !== 'UID FETCH' || !text.includes('BODY.PEEK[]')) return undefined
          const from = Number(/<(\d+)\./.exec(text)?.[1])
          if (from < part) return { lines: [answer], tagged: 'OK done' }
          return { lines: [`* 1 FETCH (UID 1 BODY[]<${from}> "")`], tagged: 'OK done' }
        },
      }
      const path = `/lite/users/${id}/email_accounts/0/folders/INBOX/messages/${String(message?.['message_id'])}/raw`
      const read = await stage.service.file(path)
      assert(read.equals(raw.subarray(0, part)))
    }, 8000)
  })
})

suite('before any login', () => {
  test('one SEARCH of 50,000 literals holds the loop for 50 ms at most', async (t) => {
    const rig = await startLiteRig({ checkAnswers: false })
    t.after(() => rig.close())
    rig.imap.hooks = manyLiterals
    const body = userBody({ ...rig.imap, password: 'secret' }, ann)
    const attempt = (): Promise<Json> => rig.ok('POST', '/lite/users', body)
    // The first attempt of a process compiles.
    await attempt()
    const { value, ms } = await holdOf(attempt)
    assert(ms <= 50, `held for ${Math.round(ms)} ms`)
    assert.match(JSON.stringify(value), /SEARCH response of more than 5000 literals/)
  })
})
