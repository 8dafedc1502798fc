/**
 * The reference at /docs: its curl lines go through a real shell and are what their routes take; its examples fit their
 * schemas. The quick start is run by test/demo.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { suite, test } from 'node:test'
import { renderDocs } from '../../../api/docs/page.ts'
import { buildOpenApi } from '../../../api/openapi.ts'
import { compileRoutes, matchOf } from '../../../api/router.ts'
import type { Route, Match } from '../../../api/route.ts'
import { resourceRoutes } from '../../../api/app.ts'
import { systemRoutes } from '../../../api/system.ts'
import { isWholeMailbox, type MailboxParameters } from '../../../api/lite/mailbox-input.ts'
import { readInput } from '../../../api/middleware/dispatch.ts'

const routes: readonly Route[] = [...resourceRoutes, ...systemRoutes(resourceRoutes)]
const baseUrl = 'http://127.0.0.1:8080'
const document = { ...buildOpenApi(routes), servers: [{ url: baseUrl }] }
const pages = renderDocs(document)
const all = [...pages.values()].join('\n')

interface Line {
  readonly method: string
  readonly path: string
  readonly values: Readonly<Record<string, string>>
  readonly signed: boolean
  /** Carries the token of an operator. */
  readonly operator: boolean
}

/** Every curl line as curl would get it: the shell's words, with a function in curl's place. */
function curlLines(): Line[] {
  const shown = [...all.matchAll(/<pre>(curl[\s\S]*?)<\/pre>/g)].map(([, text = '']) => unescaped(text))
  const stand = `curl() { printf '%s\\0' "$@"; printf '\\1'; }`
  const script = [stand, 'KEY=key', 'SECRET=secret', 'TOKEN=token', ...shown].join('\n')
  const words = execFileSync('bash', ['-eu', '-c', script], { encoding: 'utf8' })
  const lines = words.split('\u0001').slice(0, -1)
  assert.equal(lines.length, shown.length)
  return lines.map((line) => lineOf(line.split('\0').slice(0, -1)))
}

function unescaped(text: string): string {
  const signs: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }
  return text.replaceAll(/&(lt|gt|quot|#39|amp);/g, (_whole, name: string) => signs[name] ?? '')
}

function lineOf(words: readonly string[]): Line {
  const after = (option: string): string[] =>
    words.flatMap((word, index) => (word === option ? [words[index + 1] ?? ''] : []))
  const url = new URL(words.find((word) => word.startsWith(baseUrl)) ?? assert.fail(`no URL in ${words.join(' ')}`))
  const form = new URLSearchParams(after('-d').join('&'))
  return {
    method: after('-X')[0] ?? 'GET',
    path: url.pathname,
    values: { ...Object.fromEntries(url.searchParams), ...Object.fromEntries(form) },
    signed: after('-u')[0] === 'key:secret',
    operator: after('-H')[0] === 'Authorization: Bearer token',
  }
}

suite('curl lines of /docs', () => {
  const patterns = compileRoutes(routes)
  const matched = (method: string, path: string): Match | null => {
    const pattern = patterns.find(({ regexp }) => regexp.test(path))
    return pattern === undefined ? null : matchOf(pattern, method, pattern.regexp.exec(path)?.slice(1) ?? [])
  }
  const lines = curlLines()

  test('one for every entry, each taken by the route that the entry names first; every route is named once', () => {
    const sections = all.split('<section class="operation"').filter((text) => text.includes('<pre>curl'))
    const named = sections.map((text) =>
      [...text.matchAll(/<b class="\w+">(\w+)<\/b><code>(.*?)<\/code>/g)].map(
        ([, method, path = '']) => `${method} ${path.replaceAll(/<\/?var>/g, '')}`,
      ),
    )
    const reached = lines.map(({ method, path }) => matched(method, path)?.route)
    assert.deepEqual(
      reached.map((route) => `${route?.method} ${route?.path.replaceAll('+}', '}')}`),
      named.map(([first]) => first),
    )
    const served = routes.map((route) => `${route.method} ${route.path.replaceAll('+}', '}')}`)
    assert.deepEqual(named.flat().sort(), served.sort())
  })

  for (const { method, path, values, signed, operator } of lines) {
    test(`${method} ${path} is not refused`, () => {
      const match = matched(method, path)
      assert.ok(match)
      assert.equal(signed, match.route.auth === 'developer')
      assert.equal(operator, match.route.auth === 'operator')
      assert.ok(!Object.values(match.parameters).some((value) => /[{}]/.test(value)))
      readInput(match, values)
    })
  }

  const line = (method: string, path: RegExp): Line => {
    const found = lines.find((one) => one.method === method && path.test(one.path))
    assert.ok(found, `${method} ${path.source}`)
    return found
  }

  test('what is required beyond the schemas is there', () => {
    for (const path of [/^\/lite\/users$/, /^\/lite\/users\/\w+\/email_accounts$/]) {
      const match = matched('POST', line('POST', path).path)
      assert.ok(match)
      assert.ok(isWholeMailbox(readInput(match, line('POST', path).values).body as MailboxParameters))
    }
    assert.ok(Object.keys(line('POST', /\/flags$/).values).length > 0)
    assert.ok(Object.keys(line('POST', /\/email_accounts\/[^/]+$/).values).length > 0)
    assert.ok(line('PUT', /\/messages\/\w+$/).values['new_folder_id'])
  })

  test('the folder that is made is a new one', () => {
    assert.doesNotMatch(line('POST', /\/folders\/[^/]+$/).path, /INBOX/)
    assert.match(line('GET', /\/folders\/[^/]+$/).path, /INBOX/)
  })
})

suite('the pages', () => {
  test('less than 400 kB in all; an operation is described once on its page, and found from the first one', () => {
    assert.ok(Buffer.byteLength(all) < 400_000, `${Buffer.byteLength(all)} bytes`)
    const first = pages.get('') ?? ''
    for (const [name, page] of pages) {
      if (name === '') continue
      const summaries = [...page.matchAll(/<p class="summary">(.*?)<[/s]/g)].map(([, summary]) => summary)
      assert.equal(new Set(summaries).size, summaries.length, name)
      assert.ok(first.includes(`<a href="/docs/${name}">`), name)
      for (const [, id] of page.matchAll(/<section class="operation" id="(\w+)"/g))
        assert.ok(first.includes(`<a href="/docs/${name}#${id}"`), `${name} ${id}`)
    }
    assert.equal(first.split('>Get a message<').length, 3, 'once of each API')
  })

  test('every link inside leads somewhere, also where the service lies below a path', () => {
    for (const base of [baseUrl, 'https://example.com/mail/']) {
      const root = new URL(base).pathname.replace(/\/$/, '')
      const made = renderDocs({ ...document, servers: [{ url: base }] })
      for (const [name, page] of made) {
        for (const [, href = ''] of page.matchAll(/(?:href|action)="([^"]*)"/g)) {
          const { pathname, hash } = new URL(href, `http://x${root}/docs/${name}`)
          if (pathname === `${root}/openapi.json`) continue
          const target = made.get(pathname.slice(`${root}/docs/`.length)) ?? ''
          assert.ok(target.includes(hash === '' ? '<main>' : `id="${hash.slice(1)}"`), `${name}: ${href}`)
        }
      }
    }
  })

  test('no made-up words where an example should be, no backticks where code should be', () => {
    assert.doesNotMatch(all, /: &quot;text&quot;/)
    const outside = all.replaceAll(/<(pre|script|style)>[\s\S]*?<\/\1>/g, '')
    assert.doesNotMatch(outside, /`|\*\*/)
  })

  test('an answer of success says nothing of a failure', () => {
    const shown = [...all.matchAll(/<pre>(\{[\s\S]*?)<\/pre>/g)]
    const answers = shown.map(([, text = '']) => JSON.parse(unescaped(text)) as Record<string, unknown>)
    const soft = answers.filter((one) => 'feedback_code' in one)
    assert.ok(soft.length >= 3)
    assert.ok(soft.every((one) => one['success'] === false))
  })
})
