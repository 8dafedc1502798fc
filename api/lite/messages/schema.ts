/** Schemas of messages, their parts and flags, and of the parameters of the message lists. */
import { z } from 'zod'
import * as examples from '../../examples.ts'
import {
  commaList,
  documented,
  filledText,
  flag,
  headerMode,
  limit,
  lineText,
  offsetOf,
  optional,
  orEmptyList,
  sortOrder,
  text,
  timestamp,
} from '../../values.ts'
import { delimiter } from '../folders.ts'

export const address = z.object({ name: z.string(), email: z.string() })
const addresses = z.array(address).optional()
export const otherAddresses = { sender: addresses, reply_to: addresses, to: addresses, cc: addresses, bcc: addresses }

export const attachmentFields = {
  size: [z.int(), 48_213],
  type: [z.string(), 'application/pdf'],
  body_section: [z.string(), '2'],
  file_name: [z.string(), 'offer.pdf'],
  content_disposition: [z.string(), 'attachment'],
  content_id: [z.string().nullable(), null],
  attachment_id: [z.int(), 0],
  x_attachment_id: [z.string(), ''],
  encoding: [z.string(), 'base64'],
  is_embedded: [z.boolean(), false],
} as const

export const attachmentView = examples.view('Attachment', attachmentFields)

export const bodyPartView = examples.view('BodyPart', {
  body_section: [z.string(), '1'],
  type: [z.string(), 'text/plain'],
  encoding: [z.string(), 'quoted-printable'],
  size: [z.int(), 18],
  charset: [z.string().optional(), 'utf-8'],
  content: [z.string().optional(), 'See you on Monday.'],
  truncated: z.literal(true).optional(),
})

const yes = [z.boolean(), true] as const
const no = [z.boolean(), false] as const

export const flagsView = examples.answer({
  read: yes,
  answered: no,
  flagged: no,
  draft: no,
  raw: [z.array(z.string()), ['\\Seen']],
})

/** Lower-case name → decoded values, or the text of the header block (raw). */
export const headersView = z.union([z.record(z.string(), z.array(z.string())), z.string()])

export const messageFields = {
  person_info: [
    orEmptyList(z.record(z.string(), z.object({ thumbnail: z.string() }))),
    { 'ben@example.org': { thumbnail: examples.thumbnail } },
  ],
  subject: [z.string(), 'Hello'],
  message_id: [z.string(), examples.ids.message],
  email_message_id: [z.string(), examples.ids.emailMessage],
  mailhost_message_id: z.string().optional(),
  mailhost_thread_id: z.string().optional(),
  gmail_message_id: z.string().optional(),
  gmail_thread_id: z.string().optional(),
  list_headers: [orEmptyList(z.record(z.string(), z.string())), []],
  in_reply_to: [z.string().nullable(), null],
  references: [z.array(z.string()), []],
  received_headers: [z.array(z.string()), ['from mx.example.org by imap.example.com; Tue, 14 Nov 2023 22:13:15 +0000']],
  folders: [z.array(z.string()), ['INBOX']],
  headers: headersView.optional(),
  body_error: z.string().optional(),
} as const

export const messageView = examples.view('Message', {
  ...messageFields,
  sent_at: [z.int(), 1_699_999_990],
  received_at: [z.int(), 1_699_999_995],
  addresses: [
    orEmptyList(z.object({ from: addresses, ...otherAddresses })),
    {
      from: [{ name: 'Ben Lind', email: 'ben@example.org' }],
      to: [{ name: 'Anna Berg', email: examples.address }],
    },
  ],
  attachments: [z.array(attachmentView), [examples.exampleOf(attachmentView)]],
  bodies: [z.array(bodyPartView), [examples.exampleOf(bodyPartView)]],
  flags: [flagsView.optional(), examples.exampleOf(flagsView)],
  resource_url: [z.string(), examples.urls.message],
})

export const mimeType = optional(
  text,
  'only body parts of this MIME type; absent = every text part',
  'text/plain',
  'text/html',
)

/** Parameters that need more than the message records. */
const contentParameters = {
  include_body: optional(flag, '1 = with the content of the text parts in `bodies`'),
  include_headers: optional(
    headerMode,
    '1 = with the header fields, decoded, by lower-case name; `raw` = as they are in the message',
  ),
  include_flags: optional(flag, '1 = with the IMAP flags'),
  body_type: mimeType.describe('with include_body: only body parts of this MIME type; absent = every text part'),
  body_search_string: optional(
    lineText,
    'only messages whose body holds this text; the mail server searches',
    'invoice',
  ),
}

/** The same parameters, and those that only 2.0 has. */
export type Wishes = Partial<z.output<z.ZodObject<typeof contentParameters>>> & {
  readonly [Name in 'include_source' | 'include_thread_size' | 'flag_seen']?: boolean | undefined
} & {
  readonly [Name in 'indexed_before' | 'indexed_after' | 'file_size_min' | 'file_size_max']?: number | undefined
} & { readonly file_name?: string | undefined }

const mostAsked = 100
const fewAddresses = documented(
  commaList.refine(({ length }) => length <= mostAsked, `expected ${mostAsked} addresses at most`),
  { type: 'string', description: `comma-separated list, ${mostAsked} at most` },
)

const addressList = (where: string) =>
  optional(fewAddresses, `only messages with one of these email addresses ${where}`)

export const listQuery = z.object({
  delimiter,
  subject: optional(filledText, 'only messages whose subject holds this text, in upper or lower case', 'Report'),
  email: addressList('in any of From, To, Cc and Bcc'),
  to: addressList('in To'),
  from: addressList('in From'),
  cc: addressList('in Cc'),
  bcc: addressList('in Bcc'),
  date_before: optional(timestamp, 'only messages sent at this time or before: Unix timestamp in seconds'),
  date_after: optional(timestamp, 'only messages sent at this time or after: Unix timestamp in seconds'),
  ...contentParameters,
  sort_order: optional(sortOrder, 'by the time of sending: `desc` (the default) = newest first, `asc` = oldest first'),
  limit,
  offset: offsetOf(
    'messages to pass over. Newest first, mail that arrives between two pages moves the rest down, so that rows come again: to read ' +
      'all of a mailbox take sort_order=asc, or keep date_before at the time of the first page',
  ),
})

export const accountListQuery = listQuery.extend({
  folder: optional(filledText, 'only messages in this folder, by its full path; absent = all folders', 'INBOX'),
})

export const messageQuery = z.object({ delimiter, ...contentParameters })

export const delimiterQuery = z.object({ delimiter })
/** The flags that a call may change → their names in IMAP. */
export const flagNames = {
  seen: '\\Seen',
  answered: '\\Answered',
  flagged: '\\Flagged',
  deleted: '\\Deleted',
  draft: '\\Draft',
} as const
export type FlagName = keyof typeof flagNames

/** One optional parameter per flag. */
export function flagParameters<P extends string>(prefix: P, describe: (imapFlag: string) => string) {
  const parameters = Object.entries(flagNames).map(([name, imapFlag]) => [
    `${prefix}${name}`,
    optional(flag, describe(imapFlag)),
  ])
  return Object.fromEntries(parameters) as Record<`${P}${FlagName}`, z.ZodOptional<typeof flag>>
}

const changeWords = (name: string) =>
  `1 sets the IMAP flag ${name}, 0 unsets it; absent leaves it. At least one flag is required`

export const flagChange = z.object(flagParameters('', changeWords)).meta({ examples: [{ seen: 1, flagged: 0 }] })

/** The flags besides the one that lite calls `read` and 2.0 calls `seen`. */
export const otherFlagFields = { answered: no, flagged: no, deleted: no, draft: no }
export const writtenFlagsView = examples.answer({ read: yes, ...otherFlagFields })
