/** Autoconfig files: servers and help pages are read, entities are XML's own, and nothing makes the reader throw. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { settingsIn } from '../../../engine/discovery/discover.ts'

suite('XML', () => {
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

  test('of more than 2,000 tags are not read: the parser needs time by the square of the depth', () => {
    const tagged = (tags: number): string => file(server('x.example', '993', 'SSL')) + '<a>'.repeat(tags)
    assert.deepEqual(
      [tagged(1900), tagged(2000)].map((one) => settingsIn(one).length),
      [1, 0],
    )
  })

  test('are read as XML is: references, CDATA, comments, white space, and what else they hold', () => {
    for (const [written, read] of [
      ['<username>a&#64;&lt;b&#x3e;</username>', 'a@<b>'],
      ['<!-- hi --><username >\n <![CDATA[<&>]]> </username >', '<&>'],
      ['<username>&x;&nbsp;</username><username>other</username>', '&x;&nbsp;'],
    ] as const) {
      const whole = `<!DOCTYPE clientConfig [<!ENTITY x "y">]>${file(server('x.example', '993', 'SSL', written))}`
      assert.deepEqual(
        settingsIn(whole).map(({ username }) => username),
        [read],
        written,
      )
    }
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
    for (const other of ['', 'text', '<html/>', '<emailProvider/>', '<a><clientConfig/></a>'])
      assert.deepEqual(settingsIn(other), [])
  })
})
