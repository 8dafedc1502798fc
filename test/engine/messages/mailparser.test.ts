/**
 * What mailparser makes of the corpus, beside what each message holds. It is right about most mail, and wrong about the
 * messages named here: that is why engine/messages has decoders of its own. When a newer mailparser mends one, its name
 * goes from the list, and a decoder with the last of its names.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AddressObject, type ParsedMail, simpleParser } from 'mailparser'
import { corpus } from '../../support/corpus/index.ts'
import type { CorpusMessage, ExpectedFacts } from '../../support/corpus/types.ts'

const options = { skipHtmlToText: true, skipTextToHtml: true, skipImageLinks: true, skipTextLinks: true }

const addresses = (field: AddressObject | AddressObject[] | undefined): unknown =>
  [field ?? []].flat().flatMap(({ value }) => value.map(({ address }) => address))

const emails = (list: ExpectedFacts['to']): unknown => list?.map(({ email }) => email)

const text = (value: string): string => value.replaceAll('\r\n', '\n').trimEnd()

/** Both sides of one thing; undefined = nothing is written down of it. */
const aspects: Record<string, (mail: ParsedMail, expected: ExpectedFacts) => readonly [unknown, unknown]> = {
  subject: (mail, { subject }) => [mail.subject ?? '', subject],
  'message id': (mail, { emailMessageId }) => [
    mail.messageId?.replace(/^<|>$/g, '') ?? null,
    emailMessageId?.replace(/^<|>$/g, ''),
  ],
  from: (mail, { from }) => [addresses(mail.from), emails(from)],
  to: (mail, { to }) => [addresses(mail.to), emails(to)],
  date: (mail, { sentAt }) => [mail.date?.getTime() ?? null, sentAt],
  text(mail, { bodies }) {
    const [only] = bodies?.length === 1 && bodies[0]?.type === 'text/plain' ? bodies : []
    return [text(mail.text ?? ''), only?.text === undefined ? undefined : text(only.text)]
  },
  attachments: (mail, { attachments }) => [
    mail.attachments.map(({ filename }) => filename ?? ''),
    attachments?.map(({ fileName }) => fileName),
  ],
}

/** The messages that mailparser reads otherwise. */
const wrong: Readonly<Record<string, readonly string[]>> = {
  subject: [
    'charset-iso-2022-kr',
    'charset-hz-gb-2312',
    'charset-x-mac-cyrillic',
    'charset-q-iso-2022-kr',
    'charset-q-hz-gb-2312',
    'charset-q-x-mac-cyrillic',
    'raw-headers-latin1',
    'raw-headers-koi8',
    'subject-odd-words',
    'subject-injection',
    'huge-header',
    'folded-oddly',
    'nul-bytes',
  ],
  'message id': ['two-message-ids'],
  from: ['odd-addresses'],
  to: ['odd-addresses'],
  date: ['date-broken'],
  text: [
    'charset-iso-2022-kr',
    'charset-hz-gb-2312',
    'charset-x-mac-cyrillic',
    'charset-bom',
    'flowed',
    'bounce',
    'no-boundary-parameter',
    'boundary-never-used',
    'type-unfinished',
    'type-unfinished-koi8',
    'base64-footer',
  ],
  attachments: ['nested-rfc822', 'inline-text-file', 'bounce', 'type-unfinished'],
}

async function differs({ raw, expected }: CorpusMessage, aspect: string): Promise<boolean> {
  const [given, wanted] = aspects[aspect]?.(await simpleParser(raw, options), expected) ?? []
  return wanted !== undefined && JSON.stringify(given) !== JSON.stringify(wanted)
}

for (const aspect of Object.keys(aspects)) {
  test(`mailparser and the corpus: ${aspect}`, async () => {
    const found: string[] = []
    for (const message of corpus) if (await differs(message, aspect)) found.push(message.name)
    assert.deepEqual(found, wrong[aspect] ?? [])
  })
}
