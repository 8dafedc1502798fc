/**
 * Lists on real Dovecot. Filters are compared with a plain reading of the mail; pages with the whole; and while mail
 * arrives, what was there before is still listed once and only once.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import fc from 'fast-check'
import { mail } from '../../support/mail.ts'
import { needs } from '../../support/require.ts'
import { chosenStore } from '../../support/store-choice.ts'
import { startMessageRig, type Json, type Mailbox, type MessageRig } from './messages-rig.ts'

const people = ['ann@one.example', 'bob@two.example', 'carl@sub.one.example', 'dora@three.test'] as const
const words = ['Invoice', 'lunch', 'Straße', 'report'] as const
const day = 86_400

interface Sent {
  readonly from: string
  readonly to: string
  readonly cc: string
  readonly subject: string
  /** Seconds. */
  readonly date: number
}

/** Deterministic, with ties in the date. */
const sent: readonly Sent[] = Array.from({ length: 60 }, (_, index) => ({
  from: people[index % 4] ?? '',
  to: people[(index >> 2) % 4] ?? '',
  cc: people[(index >> 3) % 4] ?? '',
  subject: `${words[(index * 7) % 4] ?? ''} ${index}`,
  date: 1_700_000_000 + Math.floor(index / 3) * day,
}))

function raw({ from, to, cc, subject, date }: Sent, index: number): string {
  const encoded = `=?utf-8?B?${Buffer.from(subject).toString('base64')}?=`
  return mail({ from, to, subject: encoded, id: `list-${index}`, date: new Date(date * 1000), headers: [`Cc: ${cc}`] })
}

suite('lists on Dovecot', needs('dovecot'), () => {
  let rig: MessageRig
  let mailbox: Mailbox
  before(async () => {
    rig = await startMessageRig()
    mailbox = await rig.mailbox('lists', sent.map(raw))
  })
  after(() => rig.close())

  const base = (inFolder: boolean) => `${mailbox.path}/${inFolder ? 'folders/INBOX/' : ''}messages`
  const subjects = (list: readonly Json[]) => list.map((message) => String(message['subject']))
  const list = async (query: Readonly<Record<string, string | number>>, inFolder = false) => {
    const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))
    return rig.list(`${base(inFolder)}?${search.toString()}`)
  }

  const term = fc.constantFrom(
    ...people,
    'one.example',
    'example',
    'test',
    'sub.one.example',
    'nobody@nowhere.example',
    'ANN@One.Example',
  )
  const terms = fc.array(term, { minLength: 1, maxLength: 3 })
  const filters = fc.record(
    {
      from: terms,
      to: terms,
      cc: terms,
      email: terms,
      subject: fc.constantFrom('invoice', 'STRASSE', 'straße', 'e', '1', 'none of it'),
      date_after: fc.integer({ min: 0, max: 21 }).map((days) => 1_700_000_000 + days * day),
      date_before: fc.integer({ min: 0, max: 21 }).map((days) => 1_700_000_000 + days * day),
    },
    { requiredKeys: [] },
  )
  type Filters = typeof filters extends fc.Arbitrary<infer F> ? F : never

  const fits = (address: string, wanted: readonly string[]): boolean =>
    wanted.some((one) => {
      const low = one.toLowerCase()
      const domain = address.slice(address.indexOf('@') + 1)
      return low.includes('@') ? address === low : domain === low || domain.endsWith(`.${low}`)
    })
  const matches = (one: Sent, filter: Filters): boolean =>
    (filter.from === undefined || fits(one.from, filter.from)) &&
    (filter.to === undefined || fits(one.to, filter.to)) &&
    (filter.cc === undefined || fits(one.cc, filter.cc)) &&
    (filter.email === undefined || [one.from, one.to, one.cc].some((address) => fits(address, filter.email ?? []))) &&
    (filter.subject === undefined || one.subject.toLowerCase().includes(filter.subject.toLowerCase())) &&
    (filter.date_after === undefined || one.date >= filter.date_after) &&
    (filter.date_before === undefined || one.date <= filter.date_before)

  test('any filters together list what matches them all, newest first', async () => {
    await fc.assert(
      fc.asyncProperty(filters, fc.boolean(), async (filter, inFolder) => {
        // How far case folding goes is the store's affair: its own tests say.
        fc.pre(filter.subject !== 'STRASSE')
        const query = Object.fromEntries(
          Object.entries(filter).map(([name, value]) => [name, Array.isArray(value) ? value.join(',') : value]),
        )
        const found = await list({ ...query, limit: 100 }, inFolder)
        assert.deepEqual(
          subjects(found).sort(),
          sent
            .filter((one) => matches(one, filter))
            .map(({ subject }) => subject)
            .sort(),
        )
        const dates = found.map((message) => Number(message['sent_at']))
        assert.deepEqual(
          dates,
          dates.toSorted((a, b) => b - a),
        )
      }),
      { numRuns: 60 },
    )
  })

  test('pages of any size are the whole, in order and without repeats, both ways', async () => {
    const whole = subjects(await list({ limit: 100 }))
    assert.equal(whole.length, sent.length)
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 40 }),
        fc.constantFrom('asc', 'desc'),
        fc.boolean(),
        async (limit, order, inFolder) => {
          const pages: string[] = []
          for (let offset = 0; ; offset += limit) {
            const page = subjects(await list({ limit, offset, sort_order: order }, inFolder))
            pages.push(...page)
            if (page.length < limit) break
          }
          assert.deepEqual(order === 'desc' ? pages : pages.toReversed(), whole)
        },
      ),
      { numRuns: 15 },
    )
  })

  test('mail of one second keeps its order: every page size, both ways, gives the same sequence', async () => {
    const second = new Date(1_750_000_000_000)
    const ties = await rig.mailbox(
      'ties',
      Array.from({ length: 23 }, (_, index) =>
        mail({ to: 'ties@mail.example', subject: `tie ${index}`, date: second }),
      ),
    )
    const ids = async (query: string): Promise<unknown[]> =>
      (await rig.list(`${ties.path}/messages?${query}`)).map((message) => message['message_id'])
    const whole = await ids('limit=100')
    assert.equal(new Set(whole).size, 23)
    assert.deepEqual((await ids('limit=100&sort_order=asc')).toReversed(), whole)
    for (const limit of [1, 4, 7]) {
      const pages: unknown[] = []
      for (let offset = 0; offset < 23; offset += limit) pages.push(...(await ids(`limit=${limit}&offset=${offset}`)))
      assert.deepEqual(pages, whole)
    }
  })

  test('empty filters are none, and the order is taken in any case', async () => {
    const whole = subjects(await list({}))
    const names =
      'delimiter subject email to from cc bcc date_before date_after include_body sort_order limit offset body_type'
    const empty = Object.fromEntries(
      `${names} include_headers include_flags body_search_string`.split(' ').map((name) => [name, '']),
    )
    for (const inFolder of [false, true]) assert.deepEqual(subjects(await list(empty, inFolder)), whole)
    assert.deepEqual(subjects(await list({ folder: '', from: ',' })), whole)
    const oldest = subjects(await list({ sort_order: 'asc' }))
    assert.notDeepEqual(oldest, whole)
    assert.deepEqual(subjects(await list({ sort_order: 'Asc' })), oldest)
    assert.deepEqual(subjects(await list({ sort_order: 'DESC' })), whole)
  })

  test('the limit is 25 unless said, at most 100; times are inclusive', async () => {
    assert.equal((await rig.list(base(false))).length, 25)
    for (const wrong of [
      'limit=101',
      'limit=0',
      'limit=x',
      'offset=-1',
      'sort_order=up',
      'date_after=yesterday',
      'include_body=2',
      `email=${Array.from({ length: 101 }, (_, n) => `a${n}@x.example`).join()}`,
    ]) {
      const answer = await rig.call('GET', `${base(false)}?${wrong}`)
      assert.equal(answer.status, 400, wrong)
      assert.match(String(answer.json()['value']), new RegExp(`^${wrong.split('=')[0] ?? ''}: `))
    }
    assert.equal((await list({ date_after: 1_700_000_000, date_before: 1_700_000_000 })).length, 3)
  })

  test('an internationalised domain is found in either spelling, whichever the mail was sent with', async () => {
    const addresses = [
      'anna@bücher.example',
      'anna@xn--bcher-kva.example',
      'boris@mail.почта.рф',
      'boris@mail.xn--80a1acny.xn--p1ai',
    ]
    const foreign = await rig.mailbox(
      'foreign',
      addresses.map((from, index) =>
        mail({ from, to: 'ann@one.example', subject: `idn ${index}`, id: `idn-${index}` }),
      ),
    )
    const found = async (query: Readonly<Record<string, string>>): Promise<string[]> =>
      subjects(await rig.list(`${foreign.path}/messages?${new URLSearchParams(query).toString()}`)).sort()
    const [anna, boris] = [
      ['idn 0', 'idn 1'],
      ['idn 2', 'idn 3'],
    ]
    for (const from of ['bücher.example', 'xn--bcher-kva.example', 'BÜCHER.example', '@bu\u0308cher.example']) {
      assert.deepEqual(await found({ from }), anna, from)
    }
    for (const from of ['anna@bücher.example', 'Anna@XN--bcher-kva.example'])
      assert.deepEqual(await found({ from }), anna)
    for (const email of ['рф', '.xn--p1ai', 'почта.рф', 'xn--80a1acny.xn--p1ai', 'boris@mail.почта.рф']) {
      assert.deepEqual(await found({ email }), boris, email)
    }
    assert.deepEqual(await found({ from: 'xn--p1ai,bücher.example' }), [...anna, ...boris])
    assert.deepEqual(await found({ from: 'bücher.example', email: 'рф' }), [])
    assert.deepEqual(await found({ from: 'anna@почта.рф' }), [])
  })

  test('while mail arrives, pages from the oldest on hold each message once; a list is never a mixture', async () => {
    const busy = await rig.mailbox('busy', sent.slice(0, 30).map(raw))
    const imap = await rig.dovecot.connect(busy.email)
    const arrive = async (): Promise<void> => {
      for (let index = 0; index < 40; index++) {
        await imap.append('INBOX', [
          mail({ to: busy.email, subject: `new ${index}`, date: new Date(1_800_000_000_000 + index * 1000) }),
        ])
      }
    }
    let over = false
    const arriving = arrive().finally(() => (over = true))
    let rounds = 0
    do {
      rounds += 1
      const seen: string[] = []
      for (let offset = 0; ; offset += 7) {
        const page = subjects(await rig.list(`${busy.path}/messages?sort_order=asc&limit=7&offset=${offset}`))
        seen.push(...page)
        if (page.length < 7) break
      }
      assert.equal(new Set(seen).size, seen.length, 'no repeats')
      assert.deepEqual(
        seen.slice(0, 30).sort(),
        sent
          .slice(0, 30)
          .map(({ subject }) => subject)
          .sort(),
      )
    } while (!over)
    await arriving
    await imap.close()
    await busy.holds(70)
    assert(rounds > 0)
    assert.equal((await rig.list(`${busy.path}/messages?limit=100`)).length, 70)
  })

  test('a flag that somebody else sets is in the next list after the sync has seen it, and a prepared text is never older', async () => {
    const imap = await rig.dovecot.connect(mailbox.email)
    await imap.command('SELECT INBOX')
    const id = await mailbox.idOf(60)
    for (const flag of ['\\Flagged', '\\Answered', '\\Seen']) {
      await rig.list(`${base(true)}?include_flags=1`)
      await imap.command(`UID STORE 60 +FLAGS (${flag})`)
      for (;;) {
        const record = await rig.engine.store.messages.get(mailbox.accountId, id)
        const listed = (await rig.list(`${base(true)}?include_flags=1&limit=5`)).find(
          (message) => message['message_id'] === id,
        )
        const alone = await rig.ok(`${mailbox.path}/messages/${id}?include_flags=1`)
        const raws = [listed, alone].map((message) => (message?.['flags'] as Json)['raw'] as string[])
        if (record?.placements[0]?.flags.includes(flag) === true) {
          for (const raw of raws) assert(raw.includes(flag))
          break
        }
      }
    }
    await imap.close()
  })
})

// The test server of MongoDB takes two minutes for 10,000, and longer for a later page: how long is for the bench.
const isEmbedded = chosenStore().kind === 'sqlite'
const count = isEmbedded ? 10_000 : 2000

suite(`a folder of ${count} messages`, needs('dovecot'), () => {
  test('the last page is answered like the first, and all pages are the whole', async () => {
    const rig = await startMessageRig()
    try {
      const email = 'many@mail.example'
      const imap = await rig.dovecot.connect(email)
      for (let at = 0; at < count; at += 500) {
        await imap.append(
          'INBOX',
          Array.from({ length: 500 }, (_, index) =>
            mail({ to: email, subject: `m ${at + index}`, date: new Date(1_600_000_000_000 + (at + index) * 1000) }),
          ),
        )
      }
      await imap.close()
      const mailbox = await rig.mailbox('many', [])
      await mailbox.holds(count)
      const seen = new Set<string>()
      const times: number[] = []
      for (let offset = 0; offset < count; offset += 100) {
        const began = performance.now()
        const page = await rig.list(`${mailbox.path}/folders/INBOX/messages?limit=100&offset=${offset}`)
        times.push(performance.now() - began)
        assert.equal(page.length, 100)
        assert.equal(page[0]?.['subject'], `m ${count - 1 - offset}`)
        for (const message of page) seen.add(String(message['message_id']))
      }
      assert.equal(seen.size, count)
      assert.deepEqual(await rig.list(`${mailbox.path}/folders/INBOX/messages?limit=100&offset=${count}`), [])
      const median = (some: readonly number[]): number => some.toSorted((a, b) => a - b)[some.length >> 1] ?? 0
      assert(
        !isEmbedded || median(times.slice(-20)) < 5 * median(times.slice(0, 20)) + 10,
        `first ${median(times.slice(0, 20))} ms, last ${median(times.slice(-20))} ms`,
      )
    } finally {
      await rig.close()
    }
  })
})
