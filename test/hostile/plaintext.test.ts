/**
 * A mail server, or somebody on the way to it, that wants passwords in clear text: the running service sends none, and
 * says why.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, suite, test } from 'node:test'
import { openStage, quickRetries, type Stage } from '../e2e/stage.ts'
import { selfSigned } from '../support/imap-server/certificate.ts'
import { createImapServer, fullCapabilities, type ImapServer } from '../support/imap-server/index.ts'
import { mail } from '../support/mail.ts'
import { until } from '../support/until.ts'
import { createUser, userBody } from '../support/users.ts'

const password = 'correct-horse'
const email = 'ann@mail.example'

suite('passwords in clear text', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mr-plaintext-'))
  const certificate = selfSigned()
  let stage: Stage
  let server: ImapServer
  /** With the name that the certificate has. */
  const target = () => ({ host: 'localhost', port: server.port, password })
  before(async () => {
    const NODE_EXTRA_CA_CERTS = join(folder, 'ca.pem')
    writeFileSync(NODE_EXTRA_CA_CERTS, certificate.cert)
    stage = await openStage({ env: { MAILROOM_PLAINTEXT: 'never', NODE_EXTRA_CA_CERTS } })
  })
  after(async () => {
    await stage.remove()
    rmSync(folder, { recursive: true, force: true })
  })
  beforeEach(async (t) => {
    server = await createImapServer({ users: { [email]: { password } }, tls: { ...certificate, mode: 'starttls' } })
    server.append(email, 'INBOX', mail({ to: email, subject: 'old' }))
    if ('after' in t) t.after(() => server.close())
  })

  /**
   * The man in the middle takes STARTTLS out, and ends what was encrypted before. Answers how many lines were heard
   * until then.
   */
  const strip = (): number => {
    server.capabilities = fullCapabilities
    const heard = server.log.length
    server.dropConnections()
    return heard
  }
  const nothingSecret = (from = 0): void => {
    const lines = server.log.slice(from).filter(({ line }) => line.startsWith('C: '))
    const said = lines.map(({ line }) => line).join('\n')
    assert.doesNotMatch(said, /LOGIN|AUTHENTICATE/i)
    assert(!said.includes(password) && !said.includes(Buffer.from(`\0${email}\0${password}`).toString('base64')), said)
  }
  const accountOf = (id: string) => stage.service.ok('GET', `/lite/users/${id}/email_accounts/0`)
  const says = async (id: string, words: RegExp | null): Promise<void> => {
    const told = async (): Promise<boolean> => {
      const { status_message: message } = await accountOf(id)
      return words === null ? message === null : typeof message === 'string' && words.test(message)
    }
    await until(`status_message ${String(words)}`, told, { explain: () => stage.service.log().slice(-2000) })
  }

  test('an email account at a server without STARTTLS is not made', async () => {
    strip()
    const answer = await stage.service.ok('POST', '/lite/users', userBody(target(), email))
    assert.equal(answer['success'], false)
    assert.equal(answer['feedback_code'], 'tls')
    assert.match(JSON.stringify(answer), /MAILROOM_PLAINTEXT=never/)
    assert(!JSON.stringify(answer).includes(password))
    assert.deepEqual(await stage.service.list('/lite/users'), [])
    nothingSecret()
  })

  test('STARTTLS that is taken away later: no login, the account says why, and goes on when it is back', async () => {
    const id = await createUser(stage.service, target(), email)
    await says(id, null)
    const from = strip()
    await says(id, /does not do STARTTLS, and MAILROOM_PLAINTEXT=never/)
    const read = await stage.service.api(
      'GET',
      `/lite/users/${id}/email_accounts/0/folders/INBOX/messages?include_body=1`,
    )
    assert.equal(read.status, 503, 'the command connection sends nothing either')
    const { accepted } = server
    await until('another try', () => server.accepted > accepted)
    nothingSecret(from)
    server.capabilities = [...fullCapabilities, 'STARTTLS']
    await says(id, null)
    assert.equal((await accountOf(id))['status'], 'OK')
    await stage.service.ok('DELETE', `/lite/users/${id}`)
  })

  test('an edit, and a check that is asked for, send nothing in clear text', async () => {
    const id = await createUser(stage.service, target(), email)
    await says(id, null)
    const from = strip()
    const path = `/lite/users/${id}/email_accounts/0`
    const edited = await stage.service.ok('POST', path, { password: `${password}!` })
    assert.equal(edited['feedback_code'], 'tls', JSON.stringify(edited))
    const checked = await stage.service.ok('POST', path, { force_status_check: 1 })
    assert.equal(checked['success'], false)
    assert.match(JSON.stringify(checked), /MAILROOM_PLAINTEXT=never/)
    nothingSecret(from)
    await stage.service.ok('DELETE', `/lite/users/${id}`)
  })

  test('an account that was made when clear text was allowed is not logged in to after a start without', async () => {
    server.capabilities = fullCapabilities
    const { service } = stage
    await service.stop()
    await service.start({ MAILROOM_PLAINTEXT: 'private', ...quickRetries })
    const id = await createUser(service, target(), email)
    await says(id, null)
    await service.stop()
    const from = server.log.length
    await service.start({ MAILROOM_PLAINTEXT: 'never', ...quickRetries })
    await says(id, /MAILROOM_PLAINTEXT=never/)
    nothingSecret(from)
    await service.ok('DELETE', `/lite/users/${id}`)
  })
})
