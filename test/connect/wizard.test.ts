/** The connect wizard without a browser: what each step answers, at all three levels, and what is left behind. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { MongoClient } from 'mongodb'
import { withToken } from '../../api/connect/visit.ts'
import { type Config, createLogger } from '../../engine/index.ts'
import { startLiteRig, type Json, type LiteRig, type TestMailbox } from '../api/lite/rig.ts'
import { until } from '../support/until.ts'
import { type Desk, deskOf } from './desk.ts'
import { createVisitor, onwardOf, type Visitor } from './visitor.ts'

const logged: string[] = []
const log = createLogger({ MAILROOM_LOG_LEVEL: 'trace' }, { write: (text: string) => void logged.push(text) })

/** Files of the embedded store as they lie there, or every document of the database. */
async function everythingStored({ MONGODB_URI: uri, MAILROOM_DATA_DIR: directory }: Config): Promise<string> {
  if (uri === null) {
    const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.includes('sqlite'),
    )
    return names.map((name) => readFileSync(join(directory, name), 'latin1')).join('')
  }
  const client = new MongoClient(uri)
  try {
    const collections = await client.db().collections()
    return JSON.stringify(await Promise.all(collections.map((collection) => collection.find().toArray())))
  } finally {
    await client.close()
  }
}

suite('the connect wizard', () => {
  let rig: LiteRig
  let desk: Desk
  before(async () => {
    rig = await startLiteRig({ log, env: { MAILROOM_RATE_CONNECT_PER_MINUTE: '0' } })
    desk = deskOf(rig)
  })
  after(() => rig.close())

  /** A token with this address, its login page open, and the mailbox on the mail server. */
  async function opened(email: string, extra: Json = {}): Promise<{ of: string; visitor: Visitor }> {
    rig.imap.addUser(email, { password: 'secret' })
    const of = await desk.token({ email, ...extra })
    return { of, visitor: await desk.enter(of) }
  }

  test('from the address to the callback_url, and the token is used', async () => {
    rig.imap.addUser('ada@mail.example', { password: 'secret' })
    const of = await desk.token({ first_name: 'Ada' })
    const visitor = createVisitor(rig.url)
    const start = await visitor.open(desk.at(of))
    assert.equal(start.status, 200)
    assert.match(start.text, /app\.example\.com asks for access/)
    const sent = await visitor.send(desk.at(of, 'address'), { email: 'ada@mail.example' })
    assert.deepEqual([sent.status, sent.location], [303, desk.at(of, 'login')])
    const form = await visitor.open(desk.at(of, 'login'))
    assert.match(form.text, /value="imap\.mail\.example"/)
    const began = await visitor.send(desk.at(of, 'login'), desk.login('ada@mail.example'))
    assert.deepEqual([began.status, began.location], [303, desk.at(of, 'connecting')])
    const done = await visitor.open(desk.at(of, 'connecting'))
    assert.equal(done.status, 200)
    assert.equal(onwardOf(done), `https://app.example.com/done?x=1&y=%20&service_token=${of}#part`)
    const used = await desk.view(of)
    assert.equal(used['expires'], false)
    assert(Math.abs(Number(used['used']) - Date.now() / 1000) < 60)
    assert.equal((used['user'] as Json)['first_name'], 'Ada')
    assert.equal(used['email_account_id'], 'ada::imap')
    assert.equal(used['serverLabel'], 'ada::imap')
    assert.equal(used['email'], 'ada@mail.example')
    const again = await visitor.open(desk.at(of))
    assert.equal(again.status, 200)
    assert.equal(onwardOf(again), null, 'the back button is not sent forward again')
    assert.match(again.text, /service_token=/)
  })

  test('a wrong password is told in words, the right one then works; settings stay, the password does not', async () => {
    const { of, visitor } = await opened('bea@mail.example')
    const wrong = await desk.connect(visitor, of, desk.login('bea@mail.example', 'wrong-horse-battery'))
    assert.match(wrong.text, /did not accept this user name and password/)
    assert.match(wrong.text, /role="alert"/)
    assert.match(wrong.text, new RegExp(`name="port"[^>]*value="${rig.imap.port}"`))
    assert.doesNotMatch(wrong.text, /wrong-horse-battery/)
    assert.equal((await desk.view(of))['used'], 0)
    assert.equal((await rig.list('/lite/users?email=bea@mail.example')).length, 0)
    const right = await desk.connect(visitor, of, desk.login('bea@mail.example'))
    assert.match(right.text, /Your mailbox is connected/)
    assert.equal((await rig.list('/lite/users?email=bea@mail.example')).length, 1)
  })

  test('what went wrong is there in the other language too, and gone with the next form', async () => {
    const email = 'olga@mail.example'
    const { of, visitor } = await opened(email)
    const login = desk.at(of, 'login')
    assert.match((await desk.connect(visitor, of, desk.login(email, 'no'))).text, /did not accept/)
    assert.match((await visitor.open(`${login}?lang=de`)).text, /role="alert"[^]*nicht angenommen/)
    await visitor.send(login, { password: '' })
    assert.doesNotMatch((await visitor.open(login)).text, /role="alert"/)
  })

  test('nothing that was typed is in the log or in the store before it works', async () => {
    const { of, visitor } = await opened('cleo@mail.example')
    const typed = { ...desk.login('typed-user-name', 'typed-pass-word'), server: rig.imap.host }
    await desk.connect(visitor, of, typed)
    const stored = await everythingStored(rig.engine.config)
    assert(stored.includes(of), 'the store was looked at')
    for (const words of ['typed-pass-word', 'typed-user-name']) {
      assert(!logged.join('').includes(words), `${words} is in the log`)
      assert(!stored.includes(words), `${words} is in the store`)
    }
  })

  test('a token of a user adds an email account, with the callback and the options of the token', async () => {
    const user = String((await rig.ok('POST', '/lite/users', { email: 'dora@mail.example' }))['id'])
    rig.imap.addUser('dora@mail.example', { password: 'secret' })
    const status_callback_url = 'http://127.0.0.1:9/status'
    const of = await desk.token({ email: 'dora@mail.example', status_callback_url }, `/lite/users/${user}`)
    const stored = await rig.engine.store.tokens.find(of)
    assert(stored)
    await rig.engine.store.tokens.remove(stored.developerId, of)
    const options = {
      syncFlags: true,
      syncAllFolders: true,
      expungeOnDeletedFlag: true,
      rawFileList: true,
      callbackUrl: null,
    }
    await rig.engine.store.tokens.create({ ...stored, version: '2.0', options })
    const done = await desk.connect(await desk.enter(of), of, desk.login('dora@mail.example'))
    assert.match(done.text, /Your mailbox is connected/)
    const [account] = await rig.engine.store.accounts.listByUser(user)
    assert.equal(account?.email, 'dora@mail.example')
    assert.equal(account.statusCallbackUrl, status_callback_url)
    assert.deepEqual(account.options, options)
    const used = await rig.engine.store.tokens.find(of)
    assert.deepEqual([used?.userId, used?.accountId], [user, account.id])
  })

  test('a token of an email account gives it a new password, and wakes it when it is DISABLED', async () => {
    const box: TestMailbox = await rig.mailbox('eve')
    rig.imap.setPassword(box.email, 'another')
    rig.imap.dropConnections(box.email)
    for (let n = 0; n < 3; n += 1) await rig.call('POST', box.path, { force_status_check: 1 })
    await until('DISABLED', async () => (await rig.ok('GET', box.path))['status'] === 'DISABLED')
    const of = await desk.token({}, box.path)
    const visitor = createVisitor(rig.url)
    const form = await visitor.open(desk.at(of))
    assert.match(form.text, /eve@<wbr \/>mail\.example/)
    assert.doesNotMatch(form.text, /name="(?:server|username|email)"/)
    const done = await desk.connect(visitor, of, {
      ...desk.login('another-user', 'another'),
      server: 'elsewhere.example',
    })
    assert.match(done.text, /Your mailbox is connected/)
    await until('OK', async () => (await rig.ok('GET', box.path))['status'] === 'OK')
    const used = await desk.view(of)
    assert.equal(used['email_account_id'], box.label)
    assert.equal((await rig.engine.store.accounts.get(box.accountId))?.username, box.email)
  })

  for (const [name, words, values] of [
    ['a host that does not exist', /no server of this name/, { server: 'nowhere.invalid' }],
    ['a port that is closed', /takes no connection on this port/, { port: '1' }],
    ['TLS where there is none', /no safe connection|no IMAP server/, { security: 'tls' }],
  ] as const) {
    test(`${name}: the settings are shown, with words about it`, async () => {
      const email = `f${words.source.length}@mail.example`
      const { of, visitor } = await opened(email)
      const shown = await desk.connect(visitor, of, { ...desk.login(email), ...values })
      assert.match(shown.text, words)
      assert.match(shown.text, /<details open/)
      assert.match(shown.text, /Details/)
    })
  }

  for (const [field, values] of [
    ['password', { password: '' }],
    ['password', { password: 'line\nbreak' }],
    ['server', { server: ' ' }],
    ['port', { port: '70000' }],
    ['port', { port: '' }],
    ['username', { username: '' }],
    ['username', { username: 'x'.repeat(321) }],
  ] as const) {
    test(`a wrong ${field} is marked at its field, and no try: ${JSON.stringify(values).slice(0, 40)}`, async () => {
      const email = 'gus@mail.example'
      const { of, visitor } = await opened(email)
      const shown = await desk.connect(visitor, of, { ...desk.login(email), ...values })
      assert.equal(shown.status, 400)
      assert.match(shown.text, new RegExp(`<input[^>]*name="${field}"[^>]*aria-invalid="true"`))
      assert.match(shown.text, new RegExp(`<a href="#${field}">`))
      assert.match(shown.text, new RegExp(`<input[^>]*name="${field}"[^>]*aria-describedby="problem`))
      assert.match(shown.text, /<p id="problem">/)
      assert.equal((await rig.engine.store.tokens.find(of))?.tries, undefined)
    })
  }

  test('a wrong address is marked; GET of the form’s address leads to the first page', async () => {
    const of = await desk.token()
    const visitor = await desk.enter(of)
    const shown = await visitor.send(desk.at(of, 'address'), { email: 'nobody' })
    assert.equal(shown.status, 400)
    assert.match(shown.text, /value="nobody"[^>]*aria-invalid="true"/)
    assert.equal((await visitor.open(desk.at(of, 'address'))).status, 200)
  })

  test('a form sent twice is one try; another browser is told to wait; a page without a try leads back', async () => {
    const { of, visitor } = await opened('hal@mail.example')
    const other = await desk.enter(of)
    const held = Promise.withResolvers<undefined>()
    rig.imap.hooks = {
      send: async (response, call) => (call?.name === 'LIST' ? (await held.promise, response) : response),
    }
    const first = await visitor.send(desk.at(of, 'login'), desk.login('hal@mail.example'))
    const second = await visitor.send(desk.at(of, 'login'), desk.login('hal@mail.example'))
    assert.deepEqual([first.location, second.location], [desk.at(of, 'connecting'), desk.at(of, 'connecting')])
    const page = await visitor.ask(desk.at(of, 'connecting'))
    assert.match(page.text, /http-equiv="refresh" content="2/)
    const refused = await other.send(desk.at(of, 'login'), desk.login('hal@mail.example'))
    assert.equal(refused.status, 409)
    assert.match(refused.text, /being used in another window/)
    assert.equal((await other.ask(desk.at(of, 'connecting'))).location, desk.at(of, 'login'))
    rig.imap.hooks = {}
    held.resolve(undefined)
    assert.match((await visitor.open(desk.at(of, 'connecting'))).text, /Your mailbox is connected/)
    const late = await other.open(desk.at(of, 'login'))
    assert.equal(late.status, 410)
    assert.match(
      late.text,
      new RegExp(`<a [^>]*href="[^"]*service_token=${of}#part"`),
      'the way back, for who was stopped',
    )
    assert.match(late.text, /has been used/)
    assert.equal((await other.send(desk.at(of, 'login'), desk.login('hal@mail.example'))).status, 410)
    assert.equal((await rig.list('/lite/users?email=hal@mail.example')).length, 1)
    assert.equal((await rig.engine.store.tokens.find(of))?.tries, 1)
  })

  test('two tabs: a form connects the address that it was made for', async () => {
    rig.imap.addUser('jan@mail.example', { password: 'secret' })
    const of = await desk.token()
    const visitor = await desk.enter(of)
    await visitor.send(desk.at(of, 'address'), { email: 'jan@mail.example' })
    const first = await visitor.open(desk.at(of, 'login'))
    const email = /name="email" value="([^"]+)"/.exec(first.text)?.[1] ?? ''
    await visitor.open(desk.at(of))
    await visitor.send(desk.at(of, 'address'), { email: 'other@mail.example' })
    await visitor.open(desk.at(of, 'login'))
    await desk.connect(visitor, of, { ...desk.login('jan@mail.example'), email })
    const used = await desk.view(of)
    assert.equal(used['email'], 'jan@mail.example')
  })

  test('a token that names the address takes no other one', async () => {
    const { of, visitor } = await opened('kay@mail.example')
    await visitor.send(desk.at(of, 'address'), { email: 'other@mail.example' })
    await desk.connect(visitor, of, { ...desk.login('kay@mail.example'), email: 'other@mail.example' })
    const [account] = ((await desk.view(of))['user'] as { email_addresses: string[] }).email_addresses
    assert.equal(account, 'kay@mail.example')
  })

  test('progress comes as events, and ends with where to go', async () => {
    const { of, visitor } = await opened('ida@mail.example')
    await visitor.send(desk.at(of, 'login'), desk.login('ida@mail.example'))
    const stream = await visitor.ask(desk.at(of, 'events'))
    assert.equal(stream.headers.get('content-type'), 'text/event-stream')
    const news = [...stream.text.matchAll(/^data: (.*)$/gm)].map(([, text = '']) => JSON.parse(text) as Json)
    assert.deepEqual(news.at(-1), { to: desk.at(of, 'connecting') })
    const late = await visitor.ask(desk.at(of, 'events'))
    assert.match(late.text, /^data: \{"to":/m, 'once it is over, too')
    assert(news.slice(0, -1).every(({ list }) => /class="now"/.test(String(list))))
  })

  test('expired and spent links say so, with 410; unknown ones with 404; JSON for who asks for it', async () => {
    const { store } = rig.engine
    const [expired, spent] = [await desk.token(), await desk.token({ email: 'joe@mail.example' })]
    const stored = await store.tokens.find(expired)
    assert(stored)
    await store.tokens.remove(stored.developerId, expired)
    await store.tokens.create({ ...stored, expiresAt: Date.now() - 1 })
    const visitor = await desk.enter(spent)
    for (let n = 0; n < 20; n += 1) await store.tokens.tried(spent, 20)
    for (const [of, status, words] of [
      [expired, 410, /has expired/],
      [spent, 410, /Too many tries/],
      ['0123456789abcdef', 404, /not known/],
    ] as const) {
      for (const step of ['', 'login', 'connecting', 'done']) {
        const shown = await visitor.ask(desk.at(of, step))
        assert.equal(shown.status, status, step)
        assert.match(shown.text, words)
      }
      const sent = await visitor.send(desk.at(of, 'login'), desk.login('joe@mail.example'))
      assert.equal(sent.status === 403 ? status : sent.status, status)
      const json = await fetch(rig.url + desk.at(of), { headers: { accept: 'application/json' } })
      assert.equal(json.status, status)
      assert.equal(((await json.json()) as Json)['type'], 'error')
    }
    assert.equal((await desk.view(spent))['used'], 0)
  })

  test('20 tries are all that a token has: the last one that fails ends it', async () => {
    const { of, visitor } = await opened('kim@mail.example')
    const { store } = rig.engine
    for (let n = 0; n < 18; n += 1) await store.tokens.tried(of, 20)
    assert.match((await desk.connect(visitor, of, desk.login('kim@mail.example', 'no'))).text, /did not accept/)
    const last = await desk.connect(visitor, of, desk.login('kim@mail.example', 'no'))
    assert.match(last.text, /Too many tries/)
    assert.equal((await desk.connect(visitor, of, desk.login('kim@mail.example'))).status, 410)
    assert.equal((await rig.list('/lite/users?email=kim@mail.example')).length, 0)
  })

  test('a form of another site, of another browser or without its token is refused, and does nothing', async () => {
    const { of, visitor } = await opened('liz@mail.example')
    const body = (csrf: string) => new URLSearchParams({ csrf, ...desk.login('liz@mail.example') })
    const csrf = /name="csrf" value="([^"]+)"/.exec((await visitor.open(desk.at(of, 'login'))).text)?.[1] ?? ''
    const post = (from: Visitor, sent: string, headers = {}) =>
      from.ask(desk.at(of, 'login'), { method: 'POST', body: body(sent), headers })
    for (const refused of [
      await post(visitor, 'guess'),
      await post(visitor, ''),
      await post(createVisitor(rig.url), csrf),
      await post(visitor, csrf, { origin: 'https://evil.example' }),
      await post(visitor, csrf, { 'sec-fetch-site': 'cross-site' }),
    ]) {
      assert.equal(refused.status, 403)
      assert.match(refused.text, /out of date/)
    }
    assert.equal((await rig.engine.store.tokens.find(of))?.tries, undefined)
  })

  test('every page forbids scripts but its own, third parties, frames, referrers and caches', async () => {
    const { of, visitor } = await opened('mia@mail.example')
    const first = await desk.token()
    for (const path of [desk.at(of, 'login'), desk.at(first), '/connect/unknown']) {
      const { headers, text } = await visitor.ask(path)
      const policy = headers.get('content-security-policy') ?? ''
      assert.match(policy, /default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+';/)
      assert.match(policy, /frame-ancestors 'none'/)
      assert.equal(headers.get('referrer-policy'), 'no-referrer')
      assert.equal(headers.get('cache-control'), 'no-store')
      assert.doesNotMatch(text, /(?:src|action)="https?:|<link|style="|onclick/)
    }
    const { headers } = await createVisitor(rig.url).ask(desk.at(first))
    assert.match(headers.get('set-cookie') ?? '', /; HttpOnly; SameSite=Lax; Path=\/connect; Max-Age=7200$/)
  })

  test('the language is the browser’s, until another one is chosen', async () => {
    const of = await desk.token()
    const german = createVisitor(rig.url, { 'accept-language': 'fr, de-AT;q=0.8, en;q=0.5' })
    const page = await german.open(desk.at(of))
    assert.match(page.text, /<html lang="de">[\s\S]*bittet um Zugang/)
    assert.match(page.text, /href="\/connect\/\w+\?lang=en" lang="en"/)
    assert.match((await german.open(`${desk.at(of)}?lang=en`)).text, /<html lang="en">/)
    assert.match((await german.send(desk.at(of, 'address'), { email: '' })).text, /Please enter an email address/)
    assert.match((await german.ask('/connect/unknown')).text, /nicht bekannt/)
    assert.match((await german.ask('/connect/unknown?lang=en')).text, /not known/)
    assert.match((await german.ask('/connect/unknown?lang=constructor')).text, /nicht bekannt/)
  })

  test('many who only look at a link do not end the visit of the one who uses it', async () => {
    const { of, visitor } = await opened('pia@mail.example')
    await desk.connect(visitor, of, desk.login('pia@mail.example', 'no'))
    for (let n = 0; n < 21; n += 1) await createVisitor(rig.url).open(desk.at(of))
    const shown = await desk.connect(visitor, of, desk.login('pia@mail.example'))
    assert.match(shown.text, /Your mailbox is connected/)
  })

  test('a browser is shown a page wherever it comes under /connect, never an error in JSON', async () => {
    const { of, visitor } = await opened('ned@mail.example')
    const lost = await visitor.ask(desk.at(of, 'no-such-step'))
    assert.deepEqual([lost.status, lost.location], [303, desk.at(of)])
    const token = desk.at(of)
    const steps = ['/connect/unknown/no-such-step', '/connect/oauth2callback/x', `${token}/a/b`, `${token}//`]
    for (const path of ['/connect', '/connect/', '/connect/%ff', `${token}/%ff`, ...steps]) {
      const shown = await visitor.ask(path)
      assert.match(shown.headers.get('content-security-policy') ?? '', /default-src/, path)
      assert.equal(shown.status, 404, path)
      assert.match(shown.text, /This link is not known/, path)
    }
    for (const [path, status] of Object.entries({ '/connect': 404, [`${token}/a/b`]: 404, [`${token}/%ff`]: 400 })) {
      const json = await fetch(rig.url + path, { headers: { accept: 'application/json' } })
      assert.deepEqual([json.status, ((await json.json()) as Json)['type']], [status, 'error'])
    }
  })

  test('the query and the fragment of a callback_url stay as they are', () => {
    const into = (url: string) => withToken(url, 'service_token', 'abc')
    assert.equal(into('https://a.example'), 'https://a.example?service_token=abc')
    assert.equal(into('https://a.example/?'), 'https://a.example/?service_token=abc')
    assert.equal(into('https://a.example/x?a=%2F&'), 'https://a.example/x?a=%2F&service_token=abc')
    assert.equal(into('https://a.example/x#a?b'), 'https://a.example/x?service_token=abc#a?b')
  })
})
