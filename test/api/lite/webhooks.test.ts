/** Webhooks over the API, at both levels: every field, edits, samples, secrets and explain. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { headerSignatureFits, startReceiver, subjectOf, type CallbackReceiver } from '../../support/callbacks.ts'
import { until } from '../../support/until.ts'
import { everyFilter, startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

const url = 'http://127.0.0.1:9/hook'

const everything = {
  callback_url: url,
  failure_notif_url: 'http://127.0.0.1:9/failed',
  retry_schedule: '90s, 300,1.5h',
  ...everyFilter,
}
const flags = { include_body: 1, receive_all_changes: '1', receive_drafts: true, receive_historical: 0 }

suite('webhooks over the API', () => {
  let rig: LiteRig
  let receiver: CallbackReceiver
  let box: TestMailbox
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_WEBHOOK_SCHEDULE: '20ms,20ms,20ms,1h' } })
    receiver = await startReceiver()
    box = await rig.mailbox('walt')
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })

  const levels: readonly { readonly name: string; readonly base: () => string; readonly own: () => Json }[] = [
    { name: 'user level', base: () => `/lite/users/${box.userId}/webhooks`, own: () => ({}) },
    { name: 'application level', base: () => '/lite/webhooks', own: () => ({ developerId: 'x', version: 'lite' }) },
  ]

  for (const { name, base, own } of levels) {
    suite(name, () => {
      const make = async (body: Json): Promise<string> => {
        const made = await rig.ok('POST', base(), body)
        assert.equal(made['success'], true)
        assert.equal(made['resource_url'], `${rig.url}${base()}/${String(made['webhook_id'])}`)
        return String(made['webhook_id'])
      }
      const get = async (id: string): Promise<Json> => {
        const view = await rig.ok('GET', `${base()}/${id}`)
        return 'developerId' in view ? { ...view, developerId: 'x' } : view
      }
      const bare = (id: string): Json => ({
        webhook_id: id,
        callback_url: url,
        active: true,
        failure: false,
        include_body: false,
        include_header: false,
        receive_all_changes: false,
        receive_drafts: false,
        receive_historical: false,
        resource_url: `${rig.url}${base()}/${id}`,
        ...own(),
      })

      test('with a callback_url alone has no filter and is active', async () => {
        const id = await make({ callback_url: url })
        assert.deepEqual(await get(id), bare(id))
        await rig.ok('DELETE', `${base()}/${id}`)
      })

      test('keeps every parameter, shows it, and lists it', async () => {
        const id = await make({ ...everything, ...flags, include_header: 'raw', active: 0 })
        const wanted = {
          ...bare(id),
          ...everything,
          active: false,
          include_body: true,
          include_header: true,
          header_format: 'raw',
          receive_all_changes: true,
          receive_drafts: true,
        }
        assert.deepEqual(await get(id), wanted)
        const listed = (await rig.list(base())).find((one) => one['webhook_id'] === id)
        assert.deepEqual({ ...listed, ...own() }, wanted)
        await rig.ok('DELETE', `${base()}/${id}`)
      })

      test('an edit changes what it names, an empty text removes, and active is 1 unless it is named', async () => {
        const id = await make({ ...everything, active: 0 })
        const edited = await rig.ok('POST', `${base()}/${id}`, {
          filter_subject: 'other',
          filter_cc: '',
          failure_notif_url: '',
          retry_schedule: '',
          body_type: '',
          include_header: 1,
        })
        assert.deepEqual(edited, { success: true, resource_url: `${rig.url}${base()}/${id}` })
        const removed = ['filter_cc', 'failure_notif_url', 'retry_schedule', 'body_type']
        const rest = Object.fromEntries(Object.entries(everything).filter(([key]) => !removed.includes(key)))
        const header = { include_header: true, header_format: 'parsed' }
        assert.deepEqual(await get(id), { ...bare(id), ...rest, filter_subject: 'other', ...header })
        await rig.ok('POST', `${base()}/${id}`, { active: 0, include_header: 0, retry_schedule: '1s,7d' })
        const paused = await get(id)
        assert.deepEqual(
          [paused['active'], paused['include_header'], paused['header_format'], paused['retry_schedule']],
          [false, false, undefined, '1s,7d'],
        )
        const bad = await rig.call('POST', `${base()}/${id}`, { retry_schedule: '1s,often' })
        assert.equal(bad.status, 400)
        assert.match(String(bad.json['value']), /^retry_schedule: .*"often"/)
        assert.deepEqual(await get(id), paused)
        await rig.ok('DELETE', `${base()}/${id}`)
      })

      test('is gone after DELETE, and is not found at another level or user', async () => {
        const id = await make({ callback_url: url })
        const other = await rig.ok('POST', '/lite/users', {})
        const elsewhere = [`/lite/users/${String(other['id'])}/webhooks`, ...levels.map((level) => level.base())]
        for (const place of elsewhere.filter((path) => path !== base())) {
          assert.equal((await rig.call('GET', `${place}/${id}`)).status, 404, place)
          assert.equal((await rig.call('DELETE', `${place}/${id}`)).status, 404, place)
        }
        assert.deepEqual(await rig.ok('DELETE', `${base()}/${id}`), { success: true })
        assert.equal((await rig.call('GET', `${base()}/${id}`)).status, 404)
        assert.equal((await rig.call('POST', `${base()}/${id}`, {})).status, 404)
      })

      for (const [parameter, value, where] of [
        ['callback_url', undefined, /required/],
        ['callback_url', 'ftp://x.example', /http/],
        ['callback_url', 'http://user:pw@127.0.0.1/', /user name or password/],
        ['failure_notif_url', 'nothing', /http/],
        ['filter_from', '/(/', /position/],
        ['filter_subject', '/[/', /position/],
        ['filter_to', 'a, /x/, [z', /position/],
        ['filter_subject', '   ', /empty pattern/],
        ['filter_cc', ' ', /empty item/],
        ['filter_subject', '/abc', /without closing \//],
        ['filter_thread', '<>', /names no thread/],
        ['body_type', 'image/png', /text\/plain/],
        ['include_header', 'all', /raw/],
        ['retry_schedule', '5s,,1m', /expected a duration such as/],
        ['retry_schedule', '999ms', /from 1s to 7d, got "999ms"/],
        ['retry_schedule', '5s,8d', /from 1s to 7d, got "8d"/],
        ['retry_schedule', Array(21).fill('1s').join(), /at most 20 waits, got 21/],
        ['include_body', '2', /1 or 0/],
        ['active', 'yes', /1 or 0/],
      ] as const) {
        test(`${parameter}=${String(value)} is 400, says where, and makes nothing`, async () => {
          const count = (await rig.list(base())).length
          const answer = await rig.call('POST', base(), { callback_url: url, [parameter]: value })
          assert.equal(answer.status, 400, answer.text)
          assert.match(String(answer.json['value']), new RegExp(`^${parameter}: `))
          assert.match(String(answer.json['value']), where)
          assert.equal((await rig.list(base())).length, count)
        })
      }
    })
  }

  const hook = async (path: string, extra: Json = {}, base = `/lite/users/${box.userId}/webhooks`): Promise<string> => {
    const made = await rig.ok('POST', base, { callback_url: receiver.url + path, ...extra })
    return `${base}/${String(made['webhook_id'])}`
  }
  const idOf = (path: string): string => path.split('/').at(-1) ?? ''
  const at = (path: string) => receiver.all.filter((callback) => callback.path === path)

  test('an application-level webhook covers users that are there already, at once', async () => {
    const path = await hook('/app', {}, '/lite/webhooks')
    await box.deliver({ subject: 'app level' })
    const callback = await until('the callback', () => at('/app')[0])
    assert.deepEqual([subjectOf(callback), callback.body['user_id']], ['app level', box.userId])
    await rig.ok('DELETE', path)
  })

  test('a sample is sent at once, whatever the filters, and its outcome is the answer', async () => {
    const path = await hook('/sample', { filter_subject: 'never' })
    const good = await rig.ok('POST', `${path}/test`)
    assert.deepEqual(
      [good['kind'], good['state'], (good['attempts'] as Json[])[0]?.['status_code']],
      ['test', 'delivered', 200],
    )
    assert.equal(at('/sample').length, 1)
    receiver.behave(() => 500)
    const bad = await rig.ok('POST', `${path}/test`)
    assert.deepEqual([bad['state'], (bad['attempts'] as Json[])[0]?.['status_code']], ['failed', 500])
    receiver.behave(() => 200)
    assert.deepEqual(
      (await rig.list(`${path}/deliveries?kind=test`)).map(({ state }) => state),
      ['failed', 'delivered'],
    )
    assert.equal((await rig.ok('GET', path))['failure'], false)
    await rig.ok('DELETE', path)
  })

  test('the secret signs; a new one signs along with the old', async () => {
    const path = await hook('/secret')
    const before = String((await rig.ok('GET', `${path}/secret`))['secret'])
    const now = String((await rig.ok('POST', `${path}/secret`))['secret'])
    assert.match(before, /^whsec_/)
    assert.notEqual(now, before)
    assert.equal((await rig.ok('GET', `${path}/secret`))['secret'], now)
    await rig.ok('POST', `${path}/test`)
    const [callback] = at('/secret')
    assert(callback !== undefined)
    for (const secret of [before, now]) assert(headerSignatureFits(callback, secret))
    await rig.ok('DELETE', path)
  })

  suite('explain', () => {
    const explain = (message: string, path: string, folder = ''): Promise<Json> =>
      rig.ok('GET', `${box.path}${folder}/messages/${encodeURIComponent(message)}/explain?webhook_id=${idOf(path)}`)

    test('a message that was sent: when seen, every filter, every attempt', async () => {
      const path = await hook('/told', { filter_subject: 'explain' })
      const id = await box.deliver({ subject: 'explain me', id: 'explain-me' })
      await until('delivered', async () => (await rig.list(`${path}/deliveries?state=delivered`)).length === 1)
      const told = await explain(id, path)
      assert.deepEqual([told['message_id'], told['webhook_id'], told['matched']], [id, idOf(path), true])
      const [event] = told['events'] as Json[]
      assert.deepEqual([event?.['kind'], event?.['first'], event?.['folder']], ['received', true, 'INBOX'])
      assert.deepEqual(told['deliveries'], await rig.list(`${path}/deliveries`))
      assert((told['filters'] as Json[]).every(({ matched }) => matched))
      assert.deepEqual(await explain('<explain-me@sender.example>', path), told)
      assert.deepEqual(await explain(id, path, '/folders/inbox'), told)
      await rig.ok('DELETE', path)
    })

    test('a message that was not: which filter said no, also when it was edited since; and that the webhook slept', async () => {
      const path = await hook('/untold', { filter_from: 'nobody@*' })
      const id = await box.deliver({ subject: 'not told' })
      const told = await explain(id, path)
      assert.deepEqual([told['matched'], told['deliveries']], [false, []])
      const no = (told['filters'] as Json[]).filter(({ matched }) => matched === false)
      assert.deepEqual(
        no.map(({ filter }) => filter),
        ['filter_from'],
      )
      assert.match(String(no[0]?.['why']), /ada@sender\.example/)
      await rig.ok('POST', path, { active: 0, filter_from: '' })
      const refusals = async (message: string) =>
        ((await explain(message, path))['filters'] as Json[]).flatMap(({ filter, matched, why }) =>
          matched === false ? [[filter, why]] : [],
        )
      const [edited, ...others] = await refusals(id)
      assert.deepEqual([edited?.[0], others], ['edited', []])
      assert.match(String(edited?.[1]), /edited at .* after the event/)
      const missed = await box.deliver({ subject: 'asleep' })
      const [asleep, ...more] = await refusals(missed)
      assert.deepEqual([asleep?.[0], more], ['active', []])
      assert.match(String(asleep?.[1]), /^the webhook was paused at /)
      await rig.ok('DELETE', path)
    })

    test('a message that has left every folder is still accounted for', async () => {
      const path = await hook('/left', { filter_subject: 'short stay' })
      const raw = 'From: a@b.example\nSubject: short stay\nMessage-ID: <short@b.example>\n\nx'
      const uid = rig.imap.append(box.email, 'INBOX', raw)
      const id = await box.indexed('short stay')
      await until('delivered', async () => (await rig.list(`${path}/deliveries?state=delivered`)).length === 1)
      rig.imap.expunge(box.email, 'INBOX', uid)
      await until('gone', async () => (await rig.call('GET', `${box.path}/messages/${id}`)).status === 404)
      const told = await explain(id, path)
      assert.deepEqual([told['matched'], (told['deliveries'] as Json[]).length], [true, 1])
      await rig.ok('DELETE', path)
    })

    test('names webhooks of the user and of the application, and nobody else’s', async () => {
      const id = await box.deliver({ subject: 'whose' })
      const app = await hook('/x', {}, '/lite/webhooks')
      const told = await explain(id, app)
      assert.deepEqual([told['matched'], told['deliveries']], [false, []])
      const [made] = (told['filters'] as Json[]).filter(({ filter }) => filter === 'created')
      assert.match(String(made?.['why']), /^the webhook was made at .* after the event/)
      await rig.ok('DELETE', app)
      const other = String((await rig.ok('POST', '/lite/users', {}))['id'])
      const strange = await hook('/x', {}, `/lite/users/${other}/webhooks`)
      const base = `${box.path}/messages/${id}/explain`
      assert.equal((await rig.call('GET', `${base}?webhook_id=${idOf(strange)}`)).status, 404)
      assert.equal((await rig.call('GET', base)).status, 400)
      const own = await hook('/x')
      const wrongFolder = `${box.path}/folders/Sent/messages/${id}/explain?webhook_id=${idOf(own)}`
      assert.equal((await rig.call('GET', wrongFolder)).status, 404)
      const noMessage = `${box.path}/messages/nothing/explain?webhook_id=${idOf(own)}`
      assert.equal((await rig.call('GET', noMessage)).status, 404)
      await rig.ok('DELETE', own)
    })
  })
})

test('links in callbacks begin with MAILROOM_PUBLIC_URL, without a slash twice', async (t) => {
  const rig = await startLiteRig({ env: { MAILROOM_PUBLIC_URL: 'https://mail.example/base/' } })
  t.after(() => rig.close())
  const receiver = await startReceiver()
  t.after(() => receiver.close())
  const made = await rig.ok('POST', '/lite/webhooks', { callback_url: `${receiver.url}/links` })
  await rig.ok('POST', `/lite/webhooks/${String(made['webhook_id'])}/test`)
  const links = JSON.stringify(receiver.all[0]?.body).match(/https:\/\/mail\.example[^"]*/g) ?? []
  assert(links.length > 0)
  for (const link of links) assert.match(link, /^https:\/\/mail\.example\/base\/lite\//)
})
