/** The guard against requests into our own network: literal addresses, resolved ones, and every disguise of them. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { getEventListeners } from 'node:events'
import { suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAppError, type AppError, type ErrorCode } from '../../engine/errors.ts'
import { isPrivateAddress, isPublicAddress, networkOf, resolveGuarded } from '../../engine/net/address.ts'

const special = [
  ...[
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
  ],
  ...[
    '192.0.0.1',
    '192.0.2.1',
    '192.168.0.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.9',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
  ],
  ...['::', '::1', 'fc00::1', 'fd12:3456::1', 'fe80::1', 'fe80::1%eth0', 'ff02::1', '2001:db8::1', '100::1'],
  ...[
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '::ffff:a9fe:a9fe',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '2001:0:4136:e378::1',
    '::127.0.0.1',
    '::7f00:1',
    '4000::1',
  ],
]
const open = [
  '1.1.1.1',
  '8.8.8.8',
  '93.184.216.34',
  '172.32.0.1',
  '2606:4700:4700::1111',
  '2a00:1450:4001:81b::200e',
  '::ffff:8.8.8.8',
]

function refused(work: Promise<unknown>, code: ErrorCode): Promise<void> {
  return assert.rejects(work, (error) => {
    assert(isAppError(error), String(error))
    assert.equal(error.code, code)
    return true
  })
}

/** The failure of a host whose resolver fails with this. */
async function failureOf(reason: Error, host = 'mail.example'): Promise<AppError> {
  const lookup = () => Promise.reject(reason)
  const error = await resolveGuarded(host, { allowPrivate: true, lookup }).catch((thrown: unknown) => thrown)
  assert(isAppError(error), String(error))
  return error
}

const answers =
  (...addresses: readonly string[]) =>
  () =>
    Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })))

suite('public addresses', () => {
  test('special ranges are not public, in any notation; ordinary ones are', () => {
    for (const address of special) assert.equal(isPublicAddress(address), false, address)
    for (const address of open) assert.equal(isPublicAddress(address), true, address)
    for (const text of ['', 'localhost', 'a.b', '1.2.3', '[::1]', '1.1.1.1/8'])
      assert.equal(isPublicAddress(text), false, text)
  })

  test('private is what stays on our own network: less than what is not public', () => {
    const ours = ['127.0.0.1', '::1', '10.1.2.3', '172.16.0.1', '192.168.0.1', '169.254.1.1', 'fd12:3456::1', 'fe80::1']
    for (const address of [...ours, '::ffff:127.0.0.1']) assert.equal(isPrivateAddress(address), true, address)
    // A carrier's network, and transition addresses that lead to any host.
    const others = [
      '100.64.0.1',
      '198.51.100.1',
      '64:ff9b::808:808',
      '2002:808:808::',
      '0.0.0.0',
      '::',
      'localhost',
      '',
    ]
    for (const address of [...open, ...others]) assert.equal(isPrivateAddress(address), false, address)
  })

  test('no IPv4 address becomes more public by being written as an IPv6 one', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        assert.equal(isPublicAddress(`::ffff:${address}`), isPublicAddress(address))
        assert.equal(isPublicAddress(`64:ff9b::${address}`), false)
      }),
    )
  })
})

suite('networks of clients', () => {
  test('an IPv4 address stands for itself, an IPv6 address for its /64', () => {
    assert.equal(networkOf('203.0.113.7'), '203.0.113.7')
    assert.equal(networkOf('::ffff:203.0.113.7'), '203.0.113.7')
    assert.equal(networkOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
    assert.equal(networkOf('2001:db8:1:2::1'), networkOf('2001:db8:1:2:ffff::'))
    assert.notEqual(networkOf('2001:db8:1:2::1'), networkOf('2001:db8:1:3::1'))
    for (const text of ['', 'unknown', 'a:b']) assert.equal(networkOf(text), text)
  })
})

suite('resolving with the guard', () => {
  test('literal hosts, with brackets and a final dot', async () => {
    for (const host of ['127.0.0.1', '[::1]', '10.0.0.1.', '[::ffff:127.0.0.1]', '[fe80::1]']) {
      await refused(resolveGuarded(host, { allowPrivate: false }), 'private_address')
    }
    assert.deepEqual(await resolveGuarded('[::1]', { allowPrivate: true }), [{ address: '::1', family: 6 }])
    assert.deepEqual(await resolveGuarded('8.8.8.8', { allowPrivate: false }), [{ address: '8.8.8.8', family: 4 }])
  })

  test('unusual notations are resolved by the system, and what they mean is checked', async () => {
    for (const host of ['2130706433', '0x7f.1', '127.1', '017700000001', 'localhost']) {
      const result = await resolveGuarded(host, { allowPrivate: false }).catch((error: unknown) => error)
      assert(isAppError(result, 'private_address') || isAppError(result, 'network'), `${host}: ${String(result)}`)
    }
  })

  test('of a name’s addresses only the public ones are left; none left is a refusal', async () => {
    const mixed = answers('10.0.0.1', '8.8.8.8', '::1', '2606:4700::1')
    assert.deepEqual(await resolveGuarded('mail.example', { allowPrivate: false, lookup: mixed }), [
      { address: '8.8.8.8', family: 4 },
      { address: '2606:4700::1', family: 6 },
    ])
    assert.equal((await resolveGuarded('mail.example', { allowPrivate: true, lookup: mixed })).length, 4)
    await refused(
      resolveGuarded('mail.example', { allowPrivate: false, lookup: answers('10.0.0.1') }),
      'private_address',
    )
    await refused(resolveGuarded('mail.example', { allowPrivate: true, lookup: answers() }), 'network')
    await refused(resolveGuarded('  ', { allowPrivate: true }), 'network')
  })

  test('a literal address is never asked of the resolver; what only looks like one is, word for word', async () => {
    const asked: string[] = []
    const lookup = (host: string) => {
      asked.push(host)
      return answers('8.8.8.8')()
    }
    for (const [host, family] of [
      ['8.8.8.8', 4],
      [' 8.8.4.4. ', 4],
      ['2606:4700::1', 6],
      [' [2606:4700::2] ', 6],
    ] as const) {
      for (const allowPrivate of [true, false]) {
        const address = host.replace(/[[\] ]|\. $/g, '')
        assert.deepEqual(await resolveGuarded(host, { allowPrivate, lookup }), [{ address, family }], host)
      }
    }
    assert.deepEqual(asked, [])
    for (const host of ['x[::1]', '[::1]x', '127.1', 'mail.example.']) {
      assert.deepEqual(await resolveGuarded(host, { allowPrivate: false, lookup }), [{ address: '8.8.8.8', family: 4 }])
    }
    assert.deepEqual(asked, ['x[::1]', '[::1]x', '127.1', 'mail.example'])
  })

  test('an empty host is refused unasked', async () => {
    const lookup = () => assert.fail('asked')
    for (const host of ['', '  ', '[]', '.'])
      await refused(resolveGuarded(host, { allowPrivate: true, lookup }), 'network')
  })

  test('a refusal says which host', async () => {
    for (const host of ['10.0.0.1', 'mail.example']) {
      const work = resolveGuarded(host, { allowPrivate: false, lookup: answers('10.0.0.1') })
      const error = await work.catch((thrown: unknown) => thrown)
      assert(isAppError(error, 'private_address'))
      assert.deepEqual(error.details, { host })
      assert.match(error.message, new RegExp(host))
    }
  })

  test('a name that does not exist, and a resolver that is never done', async () => {
    const missing = () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' }))
    const error = await resolveGuarded('no.example', { allowPrivate: true, lookup: missing }).catch(
      (thrown: unknown) => thrown,
    )
    assert(isAppError(error, 'network'))
    assert.equal(error.details['errno'], 'ENOTFOUND')
    const never = () => new Promise<never>(() => undefined)
    const signal = AbortSignal.timeout(20)
    await refused(resolveGuarded('slow.example', { allowPrivate: true, lookup: never, signal }), 'timeout')
    await refused(resolveGuarded('slow.example', { allowPrivate: true, lookup: never, signal }), 'timeout')
  })

  test('a name that is not there is told apart from a resolver that fails', async () => {
    for (const code of ['ENOTFOUND', 'ENODATA']) {
      const cause = Object.assign(new Error('no'), { code })
      const error = await failureOf(cause)
      assert.equal(error.message, 'mail.example does not exist')
      assert.deepEqual(error.details, { host: 'mail.example', errno: code, reason: code })
      assert.equal(error.cause, cause)
    }
    const down = await failureOf(Object.assign(new Error('no'), { code: 'EAI_AGAIN' }))
    assert.equal(down.message, 'mail.example could not be resolved')
    assert.equal(down.details['errno'], 'EAI_AGAIN')
    assert.equal((await failureOf(new Error('odd'))).details['errno'], 'EUNKNOWN')
    assert.equal(
      (await failureOf({ code: 'ENOTFOUND' } as unknown as Error)).details['errno'],
      'EUNKNOWN',
      'no error at all',
    )
  })

  test('an answer in time leaves nothing behind on the signal; a late failure harms nobody', async () => {
    const { signal } = new AbortController()
    const options = { allowPrivate: false, signal, lookup: () => sleep(5).then(answers('8.8.8.8')) }
    assert.equal((await resolveGuarded('mail.example', options)).length, 1)
    assert.deepEqual(getEventListeners(signal, 'abort'), [])
    const ended = new AbortController()
    ended.abort(new Error('the call was given up'))
    const lookup = () => sleep(5).then(() => Promise.reject(new Error('late')))
    const work = resolveGuarded('mail.example', { allowPrivate: true, signal: ended.signal, lookup })
    const error = await work.catch((thrown: unknown) => thrown)
    assert(isAppError(error, 'timeout'))
    assert.equal(error.cause, ended.signal.reason)
    await sleep(20)
  })
})
