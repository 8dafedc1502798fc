/** Autoconfig files: what is whole and small is read, entities are XML's own, and nothing makes the reader throw. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { settingsIn } from '../../../engine/discovery/discover.ts'

const described = (text: string): string =>
  file(server('x.example', '993', 'SSL'))
    .replace('Mit  IMAP', 'No')
    .replace('Set up\n  IMAP', () => text)

const descriptionIn = (source: string): string | undefined => settingsIn(source)[0]?.documentation[0]?.description

suite('XML', () => {
  const read: readonly (readonly [string, string])[] = [
    ['', ''],
    ['<!-- hi -->x', 'x'],
    ['&lt;&#65;&#x42;&amp;<![CDATA[<&>]]>', '<AB&<&>'],
    ['&nbsp; & &#0;', '&nbsp; & \ufffd'],
  ]
  for (const [source, text] of read) {
    test(`is read: ${source}`, () => assert.equal(descriptionIn(described(source)), text))
  }

  test('an entity of the file’s own is not replaced', () => {
    const source = `<!DOCTYPE clientConfig [<!ENTITY x "y">]>${described('&x;')}`
    assert.equal(descriptionIn(source), '&x;')
  })

  test('a file that is cut, or of another format, gives nothing', () => {
    const whole = file(server('x.example', '993', 'SSL'))
    assert.equal(settingsIn(`${whole}\n`).length, 1)
    for (let end = 0; end < whole.length; end += 1) assert.deepEqual(settingsIn(whole.slice(0, end)), [])
    for (const source of ['text', '<a>', '</a>', '<a b="1/>', '<a><!-- </a>', '<html/>', `<a>${whole}</a>`])
      assert.deepEqual(settingsIn(source), [], source)
  })

  test('what is written is read again, whatever the texts hold', () => {
    const escape = (text: string): string =>
      text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        assert.equal(descriptionIn(described(escape(text))), text.trim().replaceAll(/\s+/g, ' '))
      }),
    )
  })

  test('no text of a stranger makes it throw', () => {
    const piece = fc.constantFrom(
      '<',
      '>',
      '/',
      '"',
      '&',
      ';',
      '<a>',
      '</a>',
      '<!--',
      ']]>',
      '<![CDATA[',
      'clientConfig',
      '<?',
      ' ',
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string())), (pieces) => {
        assert.doesNotThrow(() => settingsIn(pieces.join('')))
      }),
    )
  })
})

const file = (servers: string): string =>
  `<?xml version="1.0"?><clientConfig version="1.1"><emailProvider id="x.example"><domain>x.example</domain>${servers}` +
  '<documentation url="https://help.x.example/imap"><descr lang="de">Mit  IMAP</descr><descr lang="en">Set up\n  IMAP</descr></documentation>' +
  '<documentation url="https://help.x.example/fr"><descr lang="fr">Réglages &amp; aide</descr><descr lang="es">Ajustes</descr></documentation>' +
  '<documentation url="https://help.x.example/none"/><documentation url="javascript:alert(1)"><descr lang="en">no</descr></documentation></emailProvider></clientConfig>'

const server = (host: string, port: string, socket: string, more = '', type = 'imap'): string =>
  `<incomingServer type="${type}"><hostname>${host}</hostname><port>${port}</port><socketType>${socket}</socketType>${more}</incomingServer>`

suite('Autoconfig files', () => {
  test('give their IMAP servers, those with TLS first', () => {
    const settings = settingsIn(
      file(
        server('pop.x.example', '995', 'SSL', '', 'pop3') +
          server('imap.x.example', '143', 'STARTTLS', '<username>%EMAILLOCALPART%</username>') +
          server(
            'IMAP.x.example',
            '993',
            'SSL',
            '<authentication>OAuth2</authentication><username>%EMAILADDRESS%</username>',
          ),
      ),
    )
    const documentation = [
      { description: 'Set up IMAP', url: 'https://help.x.example/imap' },
      { description: 'Réglages & aide', url: 'https://help.x.example/fr' },
      { description: '', url: 'https://help.x.example/none' },
    ]
    assert.deepEqual(settings, [
      { server: 'imap.x.example', port: 993, useSsl: true, oauth: true, username: '%EMAILADDRESS%', documentation },
      { server: 'imap.x.example', port: 143, useSsl: false, oauth: false, username: '%EMAILLOCALPART%', documentation },
    ])
  })

  test('with hosts and ports that are none give nothing', () => {
    for (const [host, port] of [
      ['', '993'],
      ['a b', '993'],
      ['x/../y', '993'],
      ['x.example', '0'],
      ['x.example', '70000'],
      ['x.example', 'x'],
    ] as const) {
      assert.deepEqual(settingsIn(file(server(host, port, 'SSL'))), [], `${host}:${port}`)
    }
  })
})
