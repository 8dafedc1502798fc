/** End to end on real Dovecot, and what only a real server shows: a password that changes under us. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startDovecot } from '../support/dovecot.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { createUser } from '../support/users.ts'
import { promisesOn } from './promises.ts'
import { assertSigned, openStage } from './stage.ts'

promisesOn('Dovecot', needs('dovecot'), startDovecot)

suite('a password that changes on the mail server', needs('dovecot'), () => {
  test('DISABLED after three rejections, told once; OK with the new password, told once', async (t) => {
    const dovecot = await startDovecot()
    t.after(() => dovecot.remove())
    const stage = await openStage({ env: { MAILROOM_BACKOFF_AUTH: '200ms' } })
    t.after(() => stage.remove())
    const { service, receiver } = stage
    const id = await createUser(service, dovecot, 'iris@mail.example', {
      status_callback_url: `${receiver.url}/status`,
    })
    const path = `/lite/users/${id}/email_accounts/0`
    const status = async () => (await service.ok('GET', path))['status']
    const told = () => receiver.all.map((callback) => callback.body['failure'])

    await dovecot.setPassword('another-one')
    await until('DISABLED', async () => (await status()) === 'DISABLED', { withinMs: 20_000 })
    assert.match(String((await service.ok('GET', path))['status_message']), /password|credential|login/i)
    await until('the status callback', () => told().length > 0)
    assert.deepEqual(told(), ['permanent'])

    assert.equal((await service.ok('POST', path, { password: 'still-wrong' }))['success'], false)
    assert.equal(await status(), 'DISABLED')

    assert.equal((await service.ok('POST', path, { password: 'another-one' }))['success'], true)
    await until('OK', async () => (await status()) === 'OK')
    await until('the second status callback', () => told().length > 1)
    assert.deepEqual(told(), ['permanent', 'cleared'])
    receiver.all.forEach(assertSigned)
  })
})
