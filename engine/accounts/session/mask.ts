/** Takes secrets out of protocol lines. imapflow hides what it sends itself; this also catches what a server echoes. */
import type { SessionOptions } from '../session-types.ts'

/** Shorter secrets would blank out half the log, and stand in no line that imapflow has not masked already. */
const shortest = 4

export function secretMask(auth: SessionOptions['auth'], username: string): (line: string) => string {
  const secret = 'password' in auth ? auth.password : auth.accessToken
  if (secret.length < shortest) return (line) => line
  const encoded = [secret, `\0${username}\0${secret}`].map((text) => Buffer.from(text).toString('base64'))
  const shapes = [secret, secret.replace(/["\\]/g, '\\$&'), ...encoded]
  return (line) => shapes.reduce((masked, shape) => masked.replaceAll(shape, '***'), line)
}
