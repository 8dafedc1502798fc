/** Mail whose author hopes that a browser opens it on our origin, and links that end up with somebody else. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { openStage, type Stage } from '../e2e/stage.ts'
import { createImapServer, type ImapServer } from '../support/imap-server/index.ts'
import { apiKey, apiSecret } from '../support/service.ts'
import { createUser, listed } from '../support/users.ts'
import { basicOf, say, type Heard } from './stranger.ts'

const email = 'ann@mail.example'
const page = '<script>fetch("/lite/users")</script>'
const raw = [
  `From: ${page} <ada@sender.example>`,
  `To: ${email}`,
  `Subject: ${page}`,
  'Message-ID: <page@sender.example>',
  'Content-Type: multipart/mixed; boundary=b',
  '',
  '--b',
  'Content-Type: text/html',
  '',
  page,
  '--b',
  'Content-Type: text/html; name="a\\".html\r\n Content-Type: text/html"',
  'Content-Disposition: inline; filename="../../\\"; filename=evil.html"',
  '',
  page,
  '--b',
  'Content-Type: image/svg+xml; x="',
  'Content-Disposition: attachment; filename="<img src=x>.svg"',
  '',
  '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
  '--b--',
  '',
].join('\r\n')

suite('files of strangers', () => {
  const parts = new AsyncDisposableStack()
  let stage: Stage
  let server: ImapServer
  let user: string
  let message: string
  before(async () => {
    stage = await openStage()
    parts.defer(() => stage.remove())
    server = await createImapServer({ users: { [email]: {} } })
    parts.defer(() => server.close())
    server.append(email, 'INBOX', raw)
    user = await createUser(stage.service, { ...server, password: 'secret' }, email)
    await listed(stage.service, user, page)
    const [first] = await stage.service.list(`/lite/users/${user}/email_accounts/0/folders/INBOX/messages?limit=1`)
    message = `/lite/users/${user}/email_accounts/0/messages/${String(first?.['message_id'])}`
  })
  after(() => parts.disposeAsync())

  const get = (path: string, method = 'GET'): Promise<Heard> =>
    say(stage.service.url + path, { method, headers: { authorization: basicOf(apiKey, apiSecret) } })
  const link = async (): Promise<string> => {
    const answer = await stage.service.ok('GET', `${message}/attachments/0?as_link=1`)
    return String(answer['link']).slice(stage.service.url.length)
  }

  test('bytes of a mail are saved by a browser, never shown, whatever they say they are', async () => {
    for (const path of [`${message}/raw`, `${message}/attachments/0`, `${message}/attachments/1`, await link()]) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await get(path, method)
        assert.equal(status, 200, path)
        assert.equal(headers['x-content-type-options'], 'nosniff', path)
        assert.match(String(headers['content-disposition']), /^attachment; filename="[^"\\/]+"$/, path)
        assert.equal(headers['content-security-policy'], "sandbox; default-src 'none'", path)
        assert.match(String(headers['content-type']), /^[\w.+-]+\/[\w.+-]+$/)
      }
    }
    const { headers, body } = await get(`${message}/raw`)
    assert.equal(headers['content-type'], 'message/rfc822')
    assert.match(String(headers['content-disposition']), /\.eml"$/)
    assert(body.includes(page))
  })

  test('a link is good in one spelling, and under no name that a stranger chose', async () => {
    const own = await link()
    assert.equal((await get(own)).status, 200)
    const [path = '', expires = '', signed = ''] = own.split(/[?&]/)
    const spellings = [
      ...[
        own.replace('/0?', '/00?'),
        own.replace('expires=', 'expires=0'),
        own.replace('expires=', 'expires=+'),
        own.replace('s=', 's=%2B'),
      ],
      ...[`${path}?${signed}&${expires}`, `${own}&x=1`, `${path}?x=1&${expires}&${signed}`, `${own}&`],
      ...[`${path}?&${expires}&${signed}`, `${path}?${expires}&${expires}&${signed}`, `${own}&${signed}`],
      ...[own.replace('/0?', '/0/?'), own.replace('/0?', '/%30?'), own.replace('expires=1', 'expires=%31')],
      ...[own.replace('expires', '%65xpires')],
    ]
    for (const path of spellings) assert.equal((await get(path)).status, 403, path)
    const authorization = basicOf(apiKey, apiSecret)
    for (const path of [`${message}/attachments/0?as_link=1`, own]) {
      const answer = await say(stage.service.url + path, { headers: { authorization, host: 'evil.example' } })
      assert.equal(answer.status, 400, path)
      assert.match(answer.body, /Host: not a name of this service; set MAILROOM_PUBLIC_URL/)
    }
  })

  test('no answer at all is for a browser to guess at', async () => {
    const account = message.replace(/\/messages\/.*/, '')
    const told = ['', '/body', '/headers', '/flags', '/attachments', '?include_body=1', '/attachments/9', '/raw/x']
    const paths = [
      ...told.map((end) => message + end),
      `${account}/messages`,
      `${account}/folders`,
      `/lite/users/${user}/contacts`,
    ]
    for (const path of [
      ...paths,
      '/lite/users',
      '/docs',
      '/openapi.json',
      '/metrics',
      '/healthz',
      `/${page}`,
      '/nowhere',
    ]) {
      const { headers } = await get(path.replaceAll(/[<>" ]/g, encodeURIComponent))
      assert.equal(headers['x-content-type-options'], 'nosniff', path)
      if (path !== '/docs') assert.doesNotMatch(String(headers['content-type']), /html/)
    }
  })

  test('a link gives the file, and does not say whose it is', async () => {
    const path = await link()
    const { label } = await stage.service.ok('GET', `/lite/users/${user}/email_accounts/0`)
    const stranger = (): Promise<Heard> => say(stage.service.url + path)
    const discreet = ({ status, headers, body }: Heard): void => {
      const said = JSON.stringify(headers) + (status === 200 ? '' : body)
      for (const secret of [user, email, String(label), 'DISABLED', 'INBOX', `${server.host}:${server.port}`])
        assert(!said.includes(secret), `${secret} in ${said}`)
      assert.equal(headers['x-service-email-account-status'], undefined)
    }
    const good = await stranger()
    assert.equal(good.status, 200)
    assert.equal(good.body, page)
    discreet(good)
    server.hooks = { greeting: () => '* BYE ann@mail.example is over quota' }
    server.dropConnections()
    const bad = await stranger()
    assert([503, 504].includes(bad.status), String(bad.status))
    assert.match(bad.body, /the file cannot be read from the mail server now/)
    discreet(bad)
    server.hooks = {}
  })
})
