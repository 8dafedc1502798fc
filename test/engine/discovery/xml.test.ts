/** Autoconfig files: what is whole and small is read, entities are XML's own, and nothing makes the reader throw. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { readXml, settingsIn, type XmlElement } from '../../../engine/discovery/discover.ts'

function leaf(name: string, text = '', attributes: Record<string, string> = {}): XmlElement {
  return { name, text, attributes, children: [] }
}

function plain(element: XmlElement | null): unknown {
  return element === null ? null : JSON.parse(JSON.stringify(element))
}

suite('XML', () => {
  const read: readonly (readonly [string, XmlElement])[] = [
    ['<a/>', leaf('a')],
    ['<?xml version="1.0"?>\n<!-- hi > --><a >x</a >\n', leaf('a', 'x')],
    [`<a b="1 > 2" c='"'/>`, leaf('a', '', { b: '1 > 2', c: '"' })],
    ['<a>&lt;&#65;&#x42;&amp;<![CDATA[<&>]]></a>', leaf('a', '<AB&<&>')],
    ['<a>&nbsp; & &#0;</a>', leaf('a', '&nbsp; & \ufffd')],
    ['<a> x <b>y</b> z </a>', { ...leaf('a', 'x  z'), children: [leaf('b', 'y')] }],
  ]
  for (const [source, element] of read) {
    test(`is read: ${source}`, () => assert.deepEqual(plain(readXml(source)), element))
  }

  const broken = [
    '',
    'text',
    '<a>',
    '</a>',
    '<a></b>',
    '<a/><b/>',
    '<a b="1/>',
    '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
    '<a><!-- </a>',
    '<a><![CDATA[</a>',
    '<a>'.repeat(50) + '</a>'.repeat(50),
    `<a>${'<b/>'.repeat(5000)}</a>`,
    `<a>${'x'.repeat(70_000)}</a>`,
  ]
  for (const source of broken) {
    test(`is refused: ${source.slice(0, 40)}`, () => assert.equal(readXml(source), null))
  }

  test('what is written is read again, whatever the texts hold', () => {
    const escape = (text: string): string =>
      text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (text, value) => {
        const found = readXml(`<a v="${escape(value)}">${escape(text)}</a>`)
        assert.deepEqual([found?.text, found?.attributes['v']], [text.trim(), value])
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
    assert.deepEqual(settingsIn('<html/>'), [])
  })
})
