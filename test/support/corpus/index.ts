/**
 * A corpus of hard mail with what must be found in it. Every message that is `appendable` can be put on an IMAP server
 * with APPEND. 25 MB are built on demand: bigAttachment().
 */
import { brokenMail } from './broken-mail.ts'
import { charsetMail } from './charset-mail.ts'
import { headerMail } from './header-mail.ts'
import { structureMail } from './structure-mail.ts'
import type { CorpusMessage } from './types.ts'

export * from './types.ts'
export { bigAttachment } from './structure-mail.ts'
export { charsetSamples } from './charset-samples.ts'

export const corpus: readonly CorpusMessage[] = [...charsetMail, ...structureMail, ...headerMail, ...brokenMail]

/** One message by its name; throws when there is none. */
export function corpusMessage(name: string): CorpusMessage {
  const found = corpus.find((message) => message.name === name)
  if (!found) throw new Error(`no corpus message ${name}`)
  return found
}
