/** Messages on the wire. */
import { z } from 'zod'
import * as examples from '../../examples.ts'
import {
  commaList,
  documented,
  filledText,
  flag,
  headerMode,
  integer,
  limit,
  lineText,
  sortOrder,
  text,
  timestamp,
} from '../../values.ts'
import { delimiter } from '../folders.ts'

const address = z.object({ name: z.string(), email: z.string() })
const addresses = z.array(address)

/** An empty map is `[]` in addresses, person_info and list_headers. */
const orEmptyList = <T extends z.ZodType>(map: T) => z.union([map, z.array(z.never())])

export const attachmentView = z
  .object({
    size: z.int(),
    type: z.string(),
    body_section: z.string(),
    file_name: z.string(),
    content_disposition: z.string(),
    content_id: z.string().nullable(),
    attachment_id: z.int(),
    x_attachment_id: z.string(),
    encoding: z.string(),
    is_embedded: z.boolean(),
  })
  .meta({ id: 'Attachment', examples: [examples.attachment] })

export const bodyPartView = z
  .object({
    body_section: z.string(),
    type: z.string(),
    encoding: z.string(),
    size: z.int(),
    charset: z.string().optional(),
    content: z.string().optional(),
    truncated: z.literal(true).optional(),
  })
  .meta({ id: 'BodyPart', examples: [examples.bodyPart] })

export const flagsView = z.object({
  read: z.boolean(),
  answered: z.boolean(),
  flagged: z.boolean(),
  draft: z.boolean(),
  raw: z.array(z.string()),
})

/** Lower-cased name → decoded values, or the block as it is in the message (raw). */
const headersView = z.union([z.record(z.string(), z.array(z.string())), z.string()])

export const messageView = z
  .object({
    sent_at: z.int(),
    received_at: z.int(),
    addresses: orEmptyList(
      z.object({
        from: addresses.optional(),
        sender: addresses.optional(),
        reply_to: addresses.optional(),
        to: addresses.optional(),
        cc: addresses.optional(),
        bcc: addresses.optional(),
      }),
    ),
    person_info: orEmptyList(z.record(z.string(), z.object({ thumbnail: z.string() }))),
    subject: z.string(),
    message_id: z.string(),
    email_message_id: z.string(),
    mailhost_message_id: z.string().optional(),
    mailhost_thread_id: z.string().optional(),
    gmail_message_id: z.string().optional(),
    gmail_thread_id: z.string().optional(),
    list_headers: orEmptyList(z.record(z.string(), z.string())),
    in_reply_to: z.string().nullable(),
    references: z.array(z.string()),
    attachments: z.array(attachmentView),
    bodies: z.array(bodyPartView),
    received_headers: z.array(z.string()),
    folders: z.array(z.string()),
    flags: flagsView.optional(),
    headers: headersView.optional(),
    body_error: z.string().optional(),
    resource_url: z.string(),
  })
  .meta({ id: 'Message', examples: [examples.message] })

const mimeType = text.optional().meta({
  description: 'only body parts of this MIME type; absent = every text part',
  examples: ['text/plain', 'text/html'],
})

/** What a message may carry besides its index entry. */
const contentParameters = {
  include_body: flag.optional().meta({ description: '1 = with the content of the text parts in `bodies`' }),
  include_headers: headerMode.optional().meta({
    description: '1 = with the header fields, decoded, by lower-case name; `raw` = as they are in the message',
  }),
  include_flags: flag.optional().meta({ description: '1 = with the IMAP flags' }),
  body_type: mimeType.describe('with include_body: only body parts of this MIME type; absent = every text part'),
  body_search_string: lineText
    .optional()
    .meta({ description: 'only messages whose body holds this text; the mail server searches', examples: ['invoice'] }),
}

const pageOffset = documented(integer(0).default(0), {
  type: 'integer',
  minimum: 0,
  default: 0,
  description:
    'messages to pass over. Newest first, mail that arrives between two pages moves the rest down, so that rows come again: to read ' +
    'all of a mailbox take sort_order=asc, or keep date_before at the time of the first page',
})

const addressList = (where: string) =>
  commaList
    .optional()
    .meta({ description: `only messages with one of these email addresses ${where}; comma-separated list` })

export const listQuery = z.object({
  delimiter,
  subject: filledText
    .optional()
    .meta({ description: 'only messages whose subject holds this text, in upper or lower case', examples: ['Report'] }),
  email: addressList('in any of From, To, Cc and Bcc'),
  to: addressList('in To'),
  from: addressList('in From'),
  cc: addressList('in Cc'),
  bcc: addressList('in Bcc'),
  date_before: timestamp
    .optional()
    .meta({ description: 'only messages sent at this time or before: Unix timestamp in seconds' }),
  date_after: timestamp
    .optional()
    .meta({ description: 'only messages sent at this time or after: Unix timestamp in seconds' }),
  ...contentParameters,
  sort_order: sortOrder
    .optional()
    .meta({ description: 'by the time of sending: `desc` (the default) = newest first, `asc` = oldest first' }),
  limit,
  offset: pageOffset,
})
export type ListParameters = z.output<typeof listQuery>

/** The path without a folder takes it as a parameter. */
export const accountListQuery = listQuery.extend({
  folder: filledText
    .optional()
    .meta({ description: 'only messages in this folder, by its full path; absent = all folders', examples: ['INBOX'] }),
})

export const messageQuery = z.object({ delimiter, ...contentParameters })

export const delimiterQuery = z.object({ delimiter })
export const downloadQuery = z.object({
  delimiter,
  as_link: flag.optional().meta({
    description: '1 = answer a signed link to the file, good for 15 minutes without a key, instead of the bytes',
  }),
})

export const linkQuery = z.object({
  expires: integer(0).meta({
    description: 'end of the link, as it has it: Unix timestamp in seconds',
    examples: [1_700_000_900],
  }),
  signature: filledText.meta({ description: 'of the whole link, as it has it', examples: ['q1w2e3r4t5y6u7i8o9p0'] }),
})

export const bodyQuery = z.object({ delimiter, type: mimeType })
export const bodyAnswer = z
  .object({ resource_url: z.string(), bodies: z.array(bodyPartView) })
  .meta({ examples: [{ resource_url: examples.urls.message, bodies: [examples.bodyPart] }] })

export const headersQuery = z.object({
  delimiter,
  raw: flag.optional().meta({
    description: '1 = the header block as one text, as it is in the message; 0 = decoded, by lower-case name',
  }),
})
export const headersAnswer = z
  .object({ resource_url: z.string(), headers: headersView })
  .meta({ examples: [examples.headers] })

export const flagsAnswer = z
  .object({ resource_url: z.string(), flags: flagsView })
  .meta({ examples: [{ resource_url: examples.urls.message, flags: examples.flags }] })

const flagParameter = (name: string) =>
  flag
    .optional()
    .meta({ description: `1 sets the IMAP flag ${name}, 0 unsets it; absent leaves it. At least one flag is required` })

export const flagChange = z
  .object({
    seen: flagParameter('\\Seen'),
    answered: flagParameter('\\Answered'),
    flagged: flagParameter('\\Flagged'),
    deleted: flagParameter('\\Deleted'),
    draft: flagParameter('\\Draft'),
  })
  .meta({ examples: [{ seen: 1, flagged: 0 }] })
export type FlagChangeParameters = z.output<typeof flagChange>

export const writtenFlagsView = z.object({
  read: z.boolean(),
  answered: z.boolean(),
  flagged: z.boolean(),
  deleted: z.boolean(),
  draft: z.boolean(),
})
export const flagsWritten = z
  .object({ success: z.boolean(), flags: writtenFlagsView })
  .meta({ examples: [examples.flagsWritten] })

export const moveQuery = z.object({
  delimiter,
  new_folder_id: filledText.meta({ description: 'full path of the folder to move it to', examples: ['Archive'] }),
})
