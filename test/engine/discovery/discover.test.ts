/** Discovery against a name server and web servers on local ports: who is asked, who is believed, and for how long. */
import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, suite, test } from 'node:test'
import { createDiscovery, createResolver, type Discovery } from '../../../engine/discovery/discover.ts'
import { createHttpClient, type HttpClient } from '../../../engine/net/http.ts'
import { startDnsStub, type DnsStub } from '../../support/dns-stub.ts'
import { until } from '../../support/until.ts'

const file = (host: string): string =>
  `<clientConfig><emailProvider id="x"><incomingServer type="imap"><hostname>${host}</hostname><port>993</port>` +
  '<socketType>SSL</socketType><username>%EMAILLOCALPART%@%EMAILDOMAIN%</username></incomingServer></emailProvider></clientConfig>'

suite('discovery', () => {
  let dns: DnsStub
  let web: Server
  let real: HttpClient
  let discovery: Discovery
  /** URL as discovery asks for it → what the web server does. Others answer 404. */
  const pages = new Map<string, (response: ServerResponse) => void>()
  const fetched: string[] = []
  const probed: string[] = []
  const probe = (domain: string, exchanges: readonly string[]) => {
    probed.push([domain, ...exchanges].join(' '))
    const usual = { port: 993, useSsl: true, oauth: false, username: '%EMAILADDRESS%', documentation: [] }
    return Promise.resolve(domain.startsWith('probed') ? [{ ...usual, server: `mail.${domain}` }] : [])
  }

  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const url = String(request.headers['x-url'])
    const page = pages.get(url)
    if (page === undefined) response.writeHead(404).end()
    else page(response)
  }
  const create = (options: { readonly timeoutMs?: number; readonly dns?: string } = {}): Discovery => {
    const origin = `http://127.0.0.1:${(web.address() as AddressInfo).port}/`
    const http: Pick<HttpClient, 'get'> = {
      get(url, headers, limits) {
        fetched.push(url)
        return real.get(origin, { ...headers, 'x-url': url }, limits)
      },
    }
    const timeout = options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }
    return createDiscovery({ http, probe, resolver: createResolver([options.dns ?? dns.address]), ...timeout })
  }
  const brief = async (email: string): Promise<string[]> =>
    (await discovery.discover(email)).map((one) => `${one.type} ${one.server}:${one.port} ${one.username}`)

  before(async () => {
    dns = await startDnsStub()
    web = createServer(serve).listen(0, '127.0.0.1')
    await once(web, 'listening')
    real = createHttpClient({ allowPrivate: true })
  })
  beforeEach(() => {
    pages.clear()
    fetched.length = 0
    discovery = create()
  })
  after(async () => {
    await real.close()
    web.closeAllConnections()
    web.close()
    await dns.close()
  })

  test('a provider of the table is known at once, and nobody is asked', async () => {
    const asked = dns.asked.length
    assert.deepEqual(await brief('Some.One@GMAIL.com'), ['gmail imap.gmail.com:993 Some.One@GMAIL.com'])
    assert.deepEqual(await brief('hans@web.de'), ['webde imap.web.de:993 hans'])
    assert.deepEqual([dns.asked.length - asked, fetched.length], [0, 0])
  })

  test('both Autoconfig addresses are asked, over https', async () => {
    await discovery.discover('a@one.example')
    assert.deepEqual(fetched.sort(), [
      'https://autoconfig.one.example/mail/config-v1.1.xml',
      'https://one.example/.well-known/autoconfig/mail/config-v1.1.xml',
    ])
  })

  test('what the domain publishes goes before what DNS says, and each server is there once', async () => {
    pages.set('https://autoconfig.two.example/mail/config-v1.1.xml', (response) =>
      response.end(file('mail.two.example')),
    )
    dns.srv('_imaps._tcp.two.example', [
      { name: 'mail.two.example', port: 993 },
      { name: 'late.two.example', port: 993, priority: 20 },
      { name: 'light.two.example', port: 993, priority: 10, weight: 1 },
      { name: 'heavy.two.example', port: 993, priority: 10, weight: 9 },
    ])
    dns.srv('_imap._tcp.two.example', [{ name: 'mail.two.example', port: 143 }])
    dns.mx('two.example', ['other.two.example', 'aspmx.l.google.com'])
    assert.deepEqual(await brief('bo@two.example'), [
      'generic mail.two.example:993 bo@two.example',
      'generic heavy.two.example:993 bo@two.example',
      'generic light.two.example:993 bo@two.example',
      'generic late.two.example:993 bo@two.example',
      'generic mail.two.example:143 bo@two.example',
      'googleapps imap.gmail.com:993 bo@two.example',
    ])
  })

  test('a custom domain is known by who takes its mail', async () => {
    dns.mx('three.example', ['three-example.mail.protection.outlook.com'])
    const [found] = await discovery.discover('x@three.example')
    assert.deepEqual([found?.type, found?.server, found?.oauth], ['office365', 'outlook.office365.com', true])
  })

  test('a provider that is published by the domain keeps its name and its OAuth', async () => {
    pages.set('https://four.example/.well-known/autoconfig/mail/config-v1.1.xml', (response) =>
      response.end(file('imap.gmail.com')),
    )
    const [found] = await discovery.discover('x@four.example')
    assert.deepEqual([found?.type, found?.oauth], ['googleapps', true])
  })

  test('a service that is declared absent is none', async () => {
    dns.srv('_imaps._tcp.probed-five.example', [{ name: '.', port: 0 }])
    assert.deepEqual(await brief('x@probed-five.example'), [])
    assert(!probed.includes('probed-five.example'))
  })

  test('redirects are followed twice, to https alone', async () => {
    const moved = (to: string) => (response: ServerResponse) => void response.writeHead(301, { location: to }).end()
    pages.set('https://autoconfig.six.example/mail/config-v1.1.xml', moved('https://conf.example/a'))
    pages.set('https://conf.example/a', moved('/b'))
    pages.set('https://conf.example/b', (response) => response.end(file('imap.six.example')))
    pages.set('https://six.example/.well-known/autoconfig/mail/config-v1.1.xml', moved('http://plain.example/'))
    assert.deepEqual(await brief('x@six.example'), ['generic imap.six.example:993 x@six.example'])
    assert(!fetched.includes('http://plain.example/'))
    pages.set(
      'https://autoconfig.seven.example/mail/config-v1.1.xml',
      moved('https://autoconfig.seven.example/mail/config-v1.1.xml'),
    )
    assert.deepEqual(await brief('x@seven.example'), [])
    assert.equal(fetched.filter((url) => url.startsWith('https://autoconfig.seven')).length, 3)
  })

  test('an answer is remembered for the domain, also that nothing is known, and asked for once at a time', async () => {
    dns.mx('eight.example', ['mx.zoho.com'])
    await Promise.all(['a', 'b', 'c'].map((name) => discovery.discover(`${name}@eight.example`)))
    assert.deepEqual(await brief('d@EIGHT.example'), ['zoho imap.zoho.com:993 d@EIGHT.example'])
    await discovery.discover('x@nine.example')
    const asked = dns.asked.length
    await discovery.discover('y@nine.example')
    assert.deepEqual([fetched.length, dns.asked.length], [4, asked])
  })

  test('a provider of one name that is another company, or another place, elsewhere', async () => {
    dns.mx('zoho-eu.example', ['mx.zoho.eu'])
    assert.deepEqual(await brief('x@zoho-eu.example'), ['zoho imap.zoho.eu:993 x@zoho-eu.example'])
    assert.deepEqual(await brief('x@zohomail.eu'), ['zoho imap.zoho.eu:993 x@zohomail.eu'])
    assert.deepEqual(await brief('x@yahoo.co.jp'), [])
    pages.set('https://autoconfig.yahoo.co.jp/mail/config-v1.1.xml', (response) =>
      response.end(file('imap.mail.yahoo.co.jp')),
    )
    discovery = create()
    assert.deepEqual(await brief('x@yahoo.co.jp'), ['generic imap.mail.yahoo.co.jp:993 x@yahoo.co.jp'])
  })

  test('the hosts of a domain are probed where the look-ups found nothing, once, also when a name server failed', async () => {
    dns.mx('probed.example', ['mx.host.example', '127.0.0.1', 'mx2.host.example'])
    dns.fail('_imaps._tcp.probed-too.example')
    for (const email of ['x@probed.example', 'y@probed.example', 'y@probed-too.example']) {
      const domain = email.slice(2)
      assert.deepEqual(await brief(email), [`generic mail.${domain}:993 ${email}`])
    }
    dns.mx('probed-zoho.example', ['mx.zoho.eu'])
    assert.deepEqual(await brief('x@probed-zoho.example'), ['zoho imap.zoho.eu:993 x@probed-zoho.example'])
    const ours = probed.filter((line) => line.startsWith('probed'))
    assert.deepEqual(ours, ['probed.example mx.host.example mx2.host.example', 'probed-too.example'])
  })

  test('one look-up that fails or hangs does not hide the others, and all end in time', async () => {
    discovery = create({ timeoutMs: 5000 })
    dns.fail('_imaps._tcp.ten.example')
    dns.mx('ten.example', ['mx1.mail.icloud.com'])
    pages.set('https://ten.example/.well-known/autoconfig/mail/config-v1.1.xml', () => undefined)
    const began = performance.now()
    assert.deepEqual(await brief('x@ten.example'), ['icloud imap.mail.me.com:993 x@ten.example'])
    assert(performance.now() - began < 15_000)
  })

  test('a name server that fails does not say that nothing is known', async () => {
    for (const name of ['_imaps._tcp.fifteen.example', '_imap._tcp.fifteen.example', 'fifteen.example']) dns.fail(name)
    for (const email of ['x@fifteen.example', 'y@fifteen.example'])
      await assert.rejects(discovery.discover(email), { code: 'network', retryAfterMs: 60_000 })
    pages.set('https://fifteen.example/.well-known/autoconfig/mail/config-v1.1.xml', (response) =>
      response.end(file('imap.fifteen.example')),
    )
    discovery = create()
    assert.deepEqual(await brief('x@fifteen.example'), ['generic imap.fifteen.example:993 x@fifteen.example'])
  })

  test('a domain that leaves no room for the name of a service has none', async () => {
    const domain = `${['a', 'b', 'c', 'd'].map((letter) => letter.repeat(60)).join('.')}.example`
    assert.deepEqual(await brief(`x@${domain}`), [])
  })

  test('the deadlines of look-ups that were in time end with them', async () => {
    const [seen, open] = [new Set<number>(), new Set<number>()]
    let isAsking = true
    const timers = createHook({
      init: (id, type) => {
        if (!isAsking || type !== 'Timeout') return
        seen.add(id)
        open.add(id)
      },
      destroy: (id) => void open.delete(id),
    }).enable()
    // The sockets of a real client have timers of their own.
    const http = { get: () => Promise.resolve({ status: 404, headers: {}, body: '' }) }
    const resolver = createResolver([dns.address])
    discovery = createDiscovery({ http, probe, resolver, timeoutMs: 3_600_000 })
    await discovery.discover('x@fourteen.example')
    isAsking = false
    await until('no timer is left', () => open.size === 0)
    timers.disable()
    assert(seen.size > 0)
  })

  test('a file that is no XML, too large or not there is nothing', async () => {
    pages.set('https://autoconfig.eleven.example/mail/config-v1.1.xml', (response) => response.end('<html><br></html>'))
    pages.set('https://eleven.example/.well-known/autoconfig/mail/config-v1.1.xml', (response) =>
      response.end(`<clientConfig>${' '.repeat(100_000)}</clientConfig>`),
    )
    assert.deepEqual(await brief('x@eleven.example'), [])
  })

  test('a file nested too deep to be read costs only itself', async () => {
    const deep = `<clientConfig><emailProvider><incomingServer type="imap"><hostname>${'<a>'.repeat(21_000)}`
    pages.set('https://autoconfig.deep.example/mail/config-v1.1.xml', (response) => response.end(deep))
    pages.set('https://deep.example/.well-known/autoconfig/mail/config-v1.1.xml', (response) =>
      response.end(file('imap.deep.example')),
    )
    assert.deepEqual(await brief('x@deep.example'), ['generic imap.deep.example:993 x@deep.example'])
  })

  test('names that are no public domains are not asked about', async () => {
    const asked = dns.asked.length
    for (const email of ['x@localhost', 'x@127.0.0.1', 'x@[::1]', 'x@a..b', 'x@ex ample.com', 'x@-', 'x@évil/../x']) {
      assert.deepEqual(await brief(email), [], email)
    }
    assert.deepEqual([dns.asked.length - asked, fetched.length], [0, 0])
  })

  test('international domains are asked for in their ASCII form', async () => {
    dns.mx('xn--bcher-kva.example', ['mx.yandex.net'])
    assert.equal((await discovery.discover('x@bücher.example'))[0]?.type, 'yandex')
  })

  test('private addresses are not fetched from unless that is allowed', async () => {
    let asked = 0
    const inner = createServer((_request, response) => {
      asked += 1
      response.end(file('imap.inner.example'))
    }).listen(0, '127.0.0.1')
    await once(inner, 'listening')
    const port = (inner.address() as AddressInfo).port
    const client = createHttpClient({ allowPrivate: false })
    const http: Pick<HttpClient, 'get'> = {
      get: (_url, headers, limits) => client.get(`http://127.0.0.1:${port}/`, headers, limits),
    }
    const guarded = createDiscovery({ http, probe, resolver: createResolver([dns.address]) })
    assert.deepEqual(await guarded.discover('x@twelve.example'), [])
    assert.equal(asked, 0)
    await client.close()
    inner.close()
  })
})
