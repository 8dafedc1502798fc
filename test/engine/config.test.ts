import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { configTable, parseDuration, readConfig } from '../../engine/config.ts'
import { isAppError } from '../../engine/errors.ts'

/** The message of the error that a wrong environment ends the start with. */
function problemOf(env: Record<string, string>): string {
  try {
    readConfig(env)
  } catch (error) {
    assert(isAppError(error, 'bad_request'), String(error))
    return error.message
  }
  return assert.fail(`accepted: ${JSON.stringify(env)}`)
}

suite('configuration', () => {
  test('an empty environment is enough, and gives the documented defaults', () => {
    const config = readConfig({})
    assert.equal(config.MAILROOM_HOST, '127.0.0.1')
    assert.equal(config.MAILROOM_PORT, 3000)
    assert.equal(config.MONGODB_URI, null)
    assert.equal(config.MAILROOM_ALLOW_PRIVATE, false)
    assert.equal(config.MAILROOM_COMMAND_IDLE_CLOSE, 60_000)
    assert.deepEqual(config.MAILROOM_WEBHOOK_SCHEDULE.slice(0, 3), [5000, 300_000, 1_800_000])
    assert(Object.isFrozen(config))
  })

  test('each default in the table, written into the environment, changes nothing', () => {
    const env = Object.fromEntries(
      configTable()
        .filter(({ fallback }) => fallback !== '')
        .map(({ name, fallback }) => [name, fallback]),
    )
    assert.deepEqual(readConfig(env), readConfig({}))
  })

  test('every setting has a meaning, and stands once in the table', () => {
    const rows = configTable()
    assert.equal(new Set(rows.map(({ name }) => name)).size, rows.length)
    assert.deepEqual(
      rows.filter(({ meaning }) => meaning.length < 10),
      [],
    )
    assert.deepEqual(rows.map(({ name }) => name).toSorted(), Object.keys(readConfig({})).toSorted())
  })

  test('an empty value counts as unset', () => {
    assert.deepEqual(readConfig({ MAILROOM_PORT: '', MONGODB_URI: '', MAILROOM_API_KEY: '' }), readConfig({}))
  })

  const wrong: readonly (readonly [string, string, RegExp])[] = [
    ['MAILROOM_PORT', '65536', /whole number from 0 to 65535, got "65536"/],
    ['MAILROOM_PORT', '80.5', /whole number/],
    ['MAILROOM_PORT', '-1', /whole number/],
    ['MAILROOM_COMMAND_TIMEOUT', 'soon', /expected a duration such as 30s.*got "soon"/],
    ['MAILROOM_WEBHOOK_SCHEDULE', '5s,,1m', /expected a duration/],
    ['MAILROOM_ALLOW_PRIVATE', 'yes', /expected 0 or 1/],
    ['MAILROOM_ROLE', 'api', /needs MONGODB_URI/],
    ['MAILROOM_PUBLIC_URL', 'mail.example.com', /http:\/\/ or https:\/\//],
    ['MAILROOM_LOG_LEVEL', 'loud', /expected fatal, error, warn/],
    ['MAILROOM_STATUS_HEADER', 'two words', /letters, digits and hyphens/],
    ['MAILROOM_SYNC_BATCH', '0', /from 1 to 1000/],
    ['MAILROOM_COMMAND_TIMEOUT', '0', /a duration from 100ms to 24d, got "0"/],
    ['MAILROOM_FOLDER_POLL', '99ms', /a duration from 100ms to 24d/],
    ['MAILROOM_IDLE_RENEW', '25d', /a duration from 1s to 24d, got "25d"/],
    ['MAILROOM_BACKOFF_AUTH', '1m,0s', /a duration from 10ms to 24d, got "0s"/],
    ['MAILROOM_WEBHOOK_SCHEDULE', '5s,30d', /a duration from 10ms to 24d, got "30d"/],
    ['MAILROOM_WEBHOOK_TIMEOUT', '31s', /a duration from 100ms to 30s, got "31s"/],
    ['MAILROOM_CALL_LOG_RETENTION', '0', /a duration from 1m to 36500d/],
    ['MAILROOM_OAUTH_NONCE_TTL', '9m', /at least twice MAILROOM_OAUTH_WINDOW/],
  ]
  for (const [name, value, words] of wrong) {
    test(`${name}=${value} stops the start with one line that names it`, () => {
      const message = problemOf({ [name]: value })
      assert.match(message, new RegExp(`^configuration: ${name}: `))
      assert.match(message, words)
      assert(!message.includes('\n'), message)
    })
  }

  test('every wrong setting is named at once', () => {
    const message = problemOf({ MAILROOM_PORT: 'x', MAILROOM_STRIKES: 'y', MAILROOM_LOG_LEVEL: 'z' })
    for (const name of ['MAILROOM_PORT', 'MAILROOM_STRIKES', 'MAILROOM_LOG_LEVEL']) assert(message.includes(name))
  })

  test('a setting that does not exist is an error, not a silence', () => {
    assert.match(problemOf({ MAILROOM_PROT: '3000' }), /MAILROOM_PROT: unknown setting/)
    assert.doesNotThrow(() => readConfig({ MAILROOM_REQUIRE: 'dovecot', PATH: '/bin' }))
  })

  test('key and secret come together or not at all', () => {
    assert.match(problemOf({ MAILROOM_API_KEY: 'me' }), /set both or none/)
    const secret = 'sixteen letters!'
    assert.match(problemOf({ MAILROOM_API_SECRET: secret }), /set both or none/)
    assert.equal(readConfig({ MAILROOM_API_KEY: 'me', MAILROOM_API_SECRET: secret }).MAILROOM_API_KEY, 'me')
  })

  test('a secret that could be guessed is refused, and not told', () => {
    for (const name of ['MAILROOM_API_SECRET', 'MAILROOM_METRICS_TOKEN']) {
      for (const secret of ['mine-is-15-long', '   mine-is-15-long   ']) {
        const message = problemOf({ MAILROOM_API_KEY: 'me', [name]: secret })
        assert.match(message, new RegExp(`^configuration: ${name}: expected at least 16 characters`))
        assert(!message.includes('mine'), message)
      }
    }
  })

  test('no setting that is a duration is accepted without an end, and only ages may be longer than a timer can wait', () => {
    const ages = /RETENTION|_TTL$|_WINDOW$|OVERLAP$|ABANDON$/
    const durations = configTable().filter(({ fallback }) => /^\d+(\.\d+)?(ms|s|m|h|d)(,|$)/.test(fallback))
    assert(durations.length > 25, `${durations.length} durations`)
    for (const { name } of durations) {
      assert.match(problemOf({ [name]: '99999999d' }), new RegExp(`${name}: expected a duration from`))
      if (!ages.test(name)) assert.match(problemOf({ [name]: '25d' }), new RegExp(`${name}: .* to (24d|30s)`))
    }
    const config = readConfig({ MAILROOM_CHANGE_RETENTION: '365d', MAILROOM_GONE_HOLD: '0' })
    assert.equal(config.MAILROOM_CHANGE_RETENTION, 365 * 86_400_000)
    assert.equal(config.MAILROOM_GONE_HOLD, 0)
  })

  test('durations: every unit, and a bare number is seconds', () => {
    const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, '': 1000 }
    const unit = fc.constantFrom(...(Object.keys(units) as (keyof typeof units)[]))
    fc.assert(
      fc.property(fc.nat(10_000), unit, (amount, name) => {
        assert.equal(parseDuration(`${amount}${name}`), amount * units[name])
      }),
    )
    assert.equal(parseDuration('1.5m'), 90_000)
    for (const text of ['', 'm', '-5s', '5 s', '1w', '1h30m']) assert.throws(() => parseDuration(text), /duration/)
  })
})
