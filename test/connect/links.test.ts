/** What a link is good for: one mailbox, of one address. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { startLiteRig, type LiteRig } from '../api/lite/rig.ts'
import { deskOf, type Desk } from './desk.ts'

suite('links of the connect wizard', () => {
  let rig: LiteRig
  let desk: Desk
  before(async () => {
    rig = await startLiteRig()
    desk = deskOf(rig)
  })
  after(() => rig.close())

  test('a second tab with another address is told which mailbox the link has connected', async () => {
    const of = await desk.token()
    const visitor = await desk.enter(of)
    rig.imap.addUser('una@mail.example', { password: 'secret' })
    await visitor.send(desk.at(of, 'address'), { email: 'una@mail.example' })
    await visitor.open(desk.at(of, 'login'))
    const login = (email: string) => ({ ...desk.login(email), email })
    const done = await desk.connect(visitor, of, login('una@mail.example'))
    assert.match(done.text, /Your mailbox is connected/)
    for (const [step, values] of [
      ['login', login('due@mail.example')],
      ['address', { email: 'due@mail.example' }],
    ] as const) {
      const form = await visitor.send(desk.at(of, step), values)
      assert.equal(form.status, 409, step)
      assert.match(form.text, /chosen una@mail\.example\. due@mail\.example is not connected/)
    }
    const shown = await visitor.open(desk.at(of, 'done'))
    assert.match(shown.text, /una@<wbr \/>mail\.example/)
    assert.doesNotMatch(shown.text, /due@/)
  })

  test('an address without a whole domain is caught; each page leads back to the application', async () => {
    const of = await desk.token()
    const visitor = await desk.enter(of)
    const sent = await visitor.send(desk.at(of, 'address'), { email: 'anna@gmail' })
    assert.equal(sent.status, 400)
    assert.match(sent.text, /Please enter an email address/)
    await visitor.send(desk.at(of, 'address'), { email: 'anna@mail.example' })
    const login = await visitor.open(desk.at(of, 'login'))
    for (const { text } of [sent, login])
      assert.match(
        text,
        new RegExp(`href="https://app.example.com/done[^"]*service_token=${of}[^"]*">Cancel, back to app`),
      )
    assert.equal((await desk.view(of))['used'], 0)
  })
})
