/** Sealing: what is sealed opens with the same key and for the same record, and in no other way. */
import assert from 'node:assert/strict'
import { createDecipheriv, randomBytes, scryptSync } from 'node:crypto'
import { suite, test } from 'node:test'
import { isAppError } from '../../engine/errors.ts'
import { onlySecret, openSecrets, rotated, sealSecrets, type Secret } from '../../engine/secrets/list.ts'
import { createSealer, keyFrom, openCredential, sealCredential } from '../../engine/secrets/seal.ts'
import { newSecret } from '../../engine/webhooks/envelope.ts'

const key = randomBytes(32)
const sealer = createSealer(key)

function doesNotOpen(sealed: string, recordId = 'account-1', by = sealer): void {
  const refusal = (error: unknown) => {
    assert(isAppError(error, 'internal'), String(error))
    assert.match(error.message, /MAILROOM_SECRET/)
    assert.ok(error.cause instanceof Error)
    return true
  }
  assert.throws(() => by.open(sealed, recordId), refusal, sealed)
}

suite('sealed values', () => {
  test('any text opens again, and is not to be read in what is stored', () => {
    for (const plain of ['', 'a', 'grüße 🜁', '\0\n.', 'x'.repeat(5000)]) {
      for (const recordId of ['', 'account-1', 'ä.ö'])
        assert.equal(sealer.open(sealer.seal(plain, recordId), recordId), plain)
    }
    assert.doesNotMatch(sealer.seal('hunter2hunter2', 'account-1'), /hunter2|aHVudGVy/)
  })

  test('for its own record only, and with its own key only', () => {
    const sealed = sealer.seal('secret', 'account-1')
    doesNotOpen(sealed, 'account-2')
    doesNotOpen(sealed, '')
    doesNotOpen(sealed, 'account-1', createSealer(randomBytes(32)))
  })

  test('a credential, and the secrets of a webhook, do not open when they are moved to another record', () => {
    const credential = { kind: 'password', password: 'pw' } as const
    const sealedCredential = sealCredential(sealer, 'one', credential)
    assert.deepEqual(openCredential(sealer, { id: 'one', sealedCredential }), credential)
    assert.throws(() => openCredential(sealer, { id: 'other', sealedCredential }), { code: 'internal' })
    const secrets = [onlySecret(newSecret(), 1)]
    const sealedSecrets = sealSecrets(sealer, 'one', secrets)
    assert.deepEqual(openSecrets(sealer, 'one', sealedSecrets), secrets)
    assert.throws(() => openSecrets(sealer, 'other', sealedSecrets), { code: 'internal' })
  })

  test('a secret of a developer that was sealed by itself, as before there were lists, is the current one', () => {
    assert.deepEqual(openSecrets(sealer, 'd1', sealer.seal('api secret', 'd1')), [onlySecret('api secret', 0)])
  })

  test('a replaced secret is good until its overlap ends, and never longer than that of the next one', () => {
    const first = rotated([onlySecret('a', 0)], 'b', 1000, 5000)
    const second = rotated(first, 'c', 2000, 5000)
    const ends = (secrets: readonly Secret[]) => secrets.map(({ secret, expiresAt }) => [secret, expiresAt])
    assert.deepEqual(ends(second), [['c', null], ['b', 7000], ['a', 6000]]) // prettier-ignore
    assert.deepEqual(ends(rotated(second, 'd', 3000, 0)), [['d', null]])
  })

  test('the same text sealed twice shares nothing', () => {
    const [one, other] = [sealer.seal('secret', 'a').split('.'), sealer.seal('secret', 'a').split('.')]
    for (const part of [2, 3, 4]) assert.notEqual(one[part], other[part])
  })

  test('a changed part is noticed, whichever it is', () => {
    const parts = sealer.seal('secret', 'account-1').split('.')
    for (const part of [2, 3, 4]) {
      const bytes = Buffer.from(parts[part] ?? '', 'base64url')
      bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0)
      doesNotOpen(parts.with(part, bytes.toString('base64url')).join('.'))
    }
    const odd = [
      parts.with(0, 'v1'),
      parts.with(0, 'v3'),
      parts.with(1, '00000000'),
      parts.slice(0, 4),
      [...parts, 'a'],
    ]
    for (const text of ['', 'v1', 'v2', 'secret', ...odd.map((some) => some.join('.'))]) doesNotOpen(text)
  })

  test('the form that is stored: v2, key id, nonce, tag and text in base64url, AES-256-GCM with the record as its data', () => {
    const [version, id, iv = '', tag = '', data = '', ...rest] = sealer.seal('secret', 'account-1').split('.')
    assert.deepEqual([version, id, rest], ['v2', sealer.keyId, []])
    const bytes = (part: string) => Buffer.from(part, 'base64url')
    assert.deepEqual([bytes(iv).length, bytes(tag).length], [12, 16])
    const decipher = createDecipheriv('aes-256-gcm', key, bytes(iv)).setAAD(Buffer.from('account-1'))
    decipher.setAuthTag(bytes(tag))
    assert.equal(decipher.update(bytes(data), undefined, 'utf8') + decipher.final('utf8'), 'secret')
  })

  test('what earlier versions stored, without a key id, opens', () => {
    const [, , ...parts] = sealer.seal('secret', 'account-1').split('.')
    const old = ['v1', ...parts].join('.')
    assert.equal(sealer.open(old, 'account-1'), 'secret')
    assert.equal(sealer.keyOf(old), 'v1')
    assert.equal(createSealer(randomBytes(32), [randomBytes(32), key]).open(old, 'account-1'), 'secret')
    doesNotOpen(old, 'account-2')
  })

  test('former keys open what they sealed, and seal nothing', () => {
    const sealed = sealer.seal('secret', 'account-1')
    const next = createSealer(randomBytes(32), [key])
    assert.equal(next.open(sealed, 'account-1'), 'secret')
    assert.equal(next.keyOf(sealed), sealer.keyId)
    assert.notEqual(next.keyId, sealer.keyId)
    assert.equal(next.keyOf(next.seal('secret', 'account-1')), next.keyId)
    doesNotOpen(next.seal('secret', 'account-1'))
  })
})

suite('the key', () => {
  test('32 bytes as hex or base64, with or without padding, are the key itself', () => {
    const bytes = Buffer.concat([Buffer.alloc(2, 0xff), randomBytes(30)])
    const hex = bytes.toString('hex')
    for (const text of [hex, hex.toUpperCase(), bytes.toString('base64'), bytes.toString('base64url')]) {
      assert.deepEqual(keyFrom(text), bytes, text)
    }
    assert.deepEqual(keyFrom(bytes.toString('base64').replace('=', '')), bytes)
  })

  test('anything else is a pass phrase: hard to guess by trying, and always the same key', () => {
    const hex = 'b'.repeat(64)
    const base64 = 'x'.repeat(43)
    const phrases = ['eight888', `a${hex}`, `${hex}-`, `.${base64}`, `${base64}.`]
    for (const phrase of phrases) {
      const derived = scryptSync(phrase, 'mailroom/credentials/v1', 32, { N: 16384, r: 8, p: 1 })
      assert.deepEqual(keyFrom(phrase), derived, phrase)
    }
  })

  test('a pass phrase of fewer than 8 characters is refused by the name of its setting', () => {
    for (const phrase of ['', 'seven77']) {
      assert.throws(
        () => keyFrom(phrase),
        (error) => isAppError(error, 'bad_request') && error.message.startsWith('MAILROOM_SECRET: '),
      )
    }
  })
})
