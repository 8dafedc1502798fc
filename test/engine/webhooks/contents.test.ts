/** What body_search finds in mail that has HTML only: the text that is seen. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readConfig } from '../../../engine/config.ts'
import { readContents } from '../../../engine/webhooks/contents.ts'
import { createPace } from '../../../engine/webhooks/envelope.ts'
import { Searches } from '../../../engine/webhooks/searches.ts'
import { compileMatcher } from '../../../engine/webhooks/match.ts'
import { createTestMail, facts, messageOf } from './fixture.ts'

suite('body_search in HTML', () => {
  const account = { id: 'a'.repeat(24), userId: 'b'.repeat(24) } as Parameters<typeof messageOf>[0]
  const html =
    '<html><head><title>Newsletter</title><style>.silver { color: gold }</style></head><body data-kind="copper">' +
    '<p><b>R</b>echnung f&uuml;r Gr&ouml;&szlig;e&nbsp;&#52;2</p><script>platinum()</script></body></html>'
  const part = { section: '1', type: 'text/html', charset: 'utf-8', encoding: '8bit', size: html.length }
  const message = messageOf(
    account,
    { facts: facts('html', { bodies: [{ ...part, flowed: false, delSp: false }] }) },
    1,
    null,
  )
  const mail = createTestMail()
  mail.bodies.set(message.id, { '1': html })

  const found = async (bodySearch: string): Promise<boolean> => {
    const matcher = compileMatcher({ filters: { bodySearch }, receiveAllChanges: false, receiveDrafts: false })
    const [place] = message.placements
    assert.ok(place)
    const webhook = { developerId: 'one', includeBody: true, bodyType: null, includeHeader: null }
    const reading = { config: readConfig({}), mail, pace: createPace(), searches: new Searches(5000, 0) }
    const { body, contents } = await readContents(reading, { message, webhook, matcher })
    assert.equal(contents.texts?.[0]?.text, html, 'the callback has the body as it is')
    assert.ok(body)
    const event = { kind: 'received', first: true, ...place } as const
    return matcher.judge(event, message, { body }).outcome === 'match'
  }

  for (const text of ['rechnung', 'für Größe 42', 'Rechnung * 42', '/^rechnung/'])
    test(`${text} is seen`, async () => assert.equal(await found(text), true))
  for (const text of ['gold', 'silver', 'platinum', 'copper', 'uuml', '<p>'])
    test(`${text} is not`, async () => assert.equal(await found(text), false))
})
