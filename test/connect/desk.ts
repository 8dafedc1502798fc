/** Tokens of one rig, and the forms of the wizard as an end user fills them in. */
import assert from 'node:assert/strict'
import type { Json, LiteRig } from '../api/lite/rig.ts'
import { createVisitor, type Shown, type Visitor } from './visitor.ts'

const callback_url = 'https://app.example.com/done?x=1&y=%20#part'

export type Desk = ReturnType<typeof deskOf>

export function deskOf(rig: LiteRig) {
  const at = (of: string, step = ''): string => `/connect/${of}${step && `/${step}`}`
  const login = (email: string, password = 'secret') => ({
    password,
    server: rig.imap.host,
    port: String(rig.imap.port),
    security: 'starttls',
    username: email,
  })
  return {
    at,
    login,
    token: async (extra: Json = {}, base = '/lite'): Promise<string> =>
      String((await rig.ok('POST', `${base}/connect_tokens`, { callback_url, ...extra }))['token']),
    view: (of: string): Promise<Json> => rig.ok('GET', `/lite/connect_tokens/${of}`),
    /** To the login page of a token that has an address. */
    async enter(of: string, visitor = createVisitor(rig.url)): Promise<Visitor> {
      const page = await visitor.open(at(of))
      assert.equal(page.status, 200, page.text)
      return visitor
    },
    /** Sends the login; answers the page that it ends with. */
    async connect(visitor: Visitor, of: string, values: Readonly<Record<string, string>>): Promise<Shown> {
      const sent = await visitor.send(at(of, 'login'), values)
      return sent.location === null ? sent : visitor.open(sent.location)
    },
  }
}
