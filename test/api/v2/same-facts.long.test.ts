/**
 * The corpus of hard mail on real Dovecot, through both APIs: message by message the same facts, in the shape of each,
 * and the same messages for the same filters.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import fc from 'fast-check'
import { corpus } from '../../support/corpus/index.ts'
import { needs } from '../../support/require.ts'
import { startMessageRig, type Json, type Mailbox, type MessageRig } from '../lite/messages-rig.ts'

/** A message of 2.0 in the words of lite; what only one of them has is left out of both. */
function asLite(message: Json): Json {
  const { date, date_received, date_indexed, files, body, addresses, flags, resource_url, ...same } = message
  assert(Number(date_indexed) > 1_700_000_000 && typeof resource_url === 'string')
  return {
    ...same,
    sent_at: date,
    received_at: date_received,
    addresses,
    bodies: body,
    attachments: (files as Json[]).map((file) => {
      const { file_id, file_name_structure, main_file_name, resource_url: url, ...facts } = file
      assert.equal(file_id, `${String(message['message_id'])}-${String(facts['attachment_id'])}`)
      assert(String(url).endsWith(`/files/${file_id}`))
      assert.equal((file_name_structure as string[][]).map(([text]) => text).join(''), facts['file_name'])
      assert.equal(typeof main_file_name, 'string')
      return facts
    }),
    flags: flagsOf(flags as Json, 'seen'),
  }
}

function flagsOf(flags: Json, read: 'seen' | 'read'): Json {
  const { answered, flagged, draft } = flags
  return { read: flags[read], answered, flagged, draft }
}

function ofLite(message: Json): Json {
  const { resource_url, addresses, flags, ...same } = message
  assert.equal(typeof resource_url, 'string')
  return { ...same, addresses: firstSender(addresses), flags: flagsOf(flags as Json, 'read') }
}

/** In 2.0 a message has one sender. */
function firstSender(addresses: unknown): unknown {
  if (Array.isArray(addresses)) return addresses
  const { from, ...others } = addresses as { readonly from?: readonly Json[] }
  return from === undefined ? others : { ...others, from: from[0] }
}

suite('the corpus through both APIs', needs('dovecot'), () => {
  let rig: MessageRig
  let box: Mailbox
  let account = ''
  const raws = corpus.filter(({ appendable }) => appendable).map(({ raw }) => raw)

  before(async () => {
    rig = await startMessageRig()
    box = await rig.mailbox('both', raws)
    account = `/2.0/accounts/${box.userId}`
    await rig.ok(`${account}/sources/0`, 'POST', { sync_all_folders: 1, raw_file_list: 1 })
  })
  after(() => rig.close())

  const everything = async (list: string): Promise<Json[]> => {
    const all: Json[] = []
    for (let offset = 0; ; offset += 50) {
      const page = await rig.list(`${list}&sort_order=asc&limit=50&offset=${offset}`)
      all.push(...page)
      if (page.length < 50) return all
    }
  }

  test('every message has the same facts, bodies, headers and flags', async () => {
    const wanted = 'messages?include_body=1&include_headers=1&include_flags=1'
    const lite = (await everything(`${box.path}/${wanted}`)).map(ofLite)
    const v2 = (await everything(`${account}/${wanted}`)).map(asLite)
    assert.equal(lite.length, raws.length)
    for (const [index, message] of lite.entries()) assert.deepEqual(v2[index], message, String(message['subject']))
  })

  test('and the same parts, one by one', async () => {
    for (const { message_id: id } of await everything(`${box.path}/messages?`)) {
      const [one, two] = [`${box.path}/messages/${String(id)}`, `${account}/message/${String(id)}`]
      assert.deepEqual(await rig.list(`${two}/body`), (await rig.ok(`${one}/body`))['bodies'])
      assert.deepEqual(await rig.ok(`${two}/headers`), (await rig.ok(`${one}/headers`))['headers'])
      const raw = (await rig.ok(`${one}/headers?raw=1`))['headers']
      assert.equal((await rig.call('GET', `${two}/headers?raw=1`)).bytes.toString('utf8'), raw)
      const [source, whole] = [await rig.call('GET', `${two}/source`), await rig.call('GET', `${one}/raw`)]
      assert(source.bytes.equals(whole.bytes))
      for (const file of await rig.list(`${two}/files`)) {
        const content = await rig.call('GET', `${account}/files/${String(file['file_id'])}/content`)
        const same = await rig.call('GET', `${one}/attachments/${String(file['attachment_id'])}`)
        assert.equal(content.status, 200)
        assert(content.bytes.equals(same.bytes))
        assert.deepEqual(content.headers['content-disposition'], same.headers['content-disposition'])
      }
    }
  })

  test('the same filters give the same messages in the same order', async () => {
    const all = await everything(`${box.path}/messages?`)
    const people = all.flatMap(({ addresses }) =>
      Object.values(addresses as Record<string, Json[]>).flatMap((list) => list.map(({ email }) => String(email))),
    )
    const words = all.flatMap(({ subject }) => String(subject).split(' ')).filter((word) => /^\p{L}{3,}$/u.test(word))
    const times = all.map(({ sent_at }) => Number(sent_at)).filter((time) => time > 0)
    const address = fc.constantFrom(...people.filter((email) => /^[\w.]+@[\w.]+$/.test(email)), 'org', 'example.com')
    const values = {
      subject: fc.constantFrom(...words),
      email: address,
      from: address,
      to: fc.array(address, { minLength: 1, maxLength: 3 }).map((list) => list.join(',')),
      cc: address,
      date_after: fc.constantFrom(...times).map(String),
      date_before: fc.constantFrom(...times).map(String),
      folder: fc.constantFrom('INBOX', 'inbox'),
    }
    const named = fc.subarray(Object.keys(values) as (keyof typeof values)[], { maxLength: 2 })
    const page = fc.record({
      sort_order: fc.constantFrom('asc', 'desc'),
      limit: fc.integer({ min: 1, max: 100 }),
      offset: fc.integer({ min: 0, max: 9 }),
    })
    const queries = fc.tuple(named, fc.record(values), page).map(([names, all, paged]) => {
      return Object.entries({ ...Object.fromEntries(names.map((name) => [name, all[name]])), ...paged })
    })
    const idsOf = async (path: string, query: readonly (readonly [string, string | number])[]): Promise<unknown[]> => {
      const asked = new URLSearchParams(query.map(([name, value]) => [name, String(value)]))
      return (await rig.list(`${path}?${asked.toString()}`)).map((one) => one['message_id'])
    }
    let matched = 0
    await fc.assert(
      fc.asyncProperty(queries, async (query) => {
        const lite = await idsOf(`${box.path}/messages`, query)
        matched += lite.length
        assert.deepEqual(await idsOf(`${account}/messages`, query), lite)
      }),
      { numRuns: 100 },
    )
    assert(matched > 100, `few matched: ${matched}`)
  })
})
