/**
 * Plays a server that writes all words of the protocol in lower case, which they may be: flags, attributes, codes,
 * INBOX.
 */
import type { Hooks } from './hooks.ts'

/** Not the tag, nor what is quoted or a literal; INBOX in every form. */
function lowered(response: Buffer): Buffer {
  const text = response.toString('latin1')
  const [start = ''] = text.split('{', 1)
  const [tag = ''] = start.split(' ', 1)
  const words = start.slice(tag.length).replace(/"[^"]*"|[^"]+/g, (part) => {
    return part.startsWith('"') && part !== '"INBOX"' ? part : part.toLowerCase()
  })
  return Buffer.from(tag + words + text.slice(start.length), 'latin1')
}

export const lowerCase: Hooks = { send: lowered }
