/** Messages on the wire. */
import { z } from 'zod'
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
import { delimiter } from '../folders/schema.ts'

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
  .meta({ id: 'Attachment' })

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
  .meta({ id: 'BodyPart' })

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
  .meta({ id: 'Message' })

/** What a message may carry besides its index entry. */
export const contentParameters = {
  include_body: flag.optional(),
  include_headers: headerMode.optional(),
  include_flags: flag.optional(),
  body_type: documented(text, { type: 'string', examples: ['text/plain', 'text/html'] }).optional(),
  body_search_string: lineText.optional(),
}

const pageOffset = documented(integer(0).default(0), {
  type: 'integer',
  minimum: 0,
  default: 0,
  description:
    'messages to pass over. Newest first, mail that arrives between two pages moves the rest down, so that rows come again: to read ' +
    'all of a mailbox take sort_order=asc, or keep date_before at the time of the first page',
})

export const listQuery = z.object({
  delimiter,
  subject: filledText.optional(),
  email: commaList.optional(),
  to: commaList.optional(),
  from: commaList.optional(),
  cc: commaList.optional(),
  bcc: commaList.optional(),
  date_before: timestamp.optional(),
  date_after: timestamp.optional(),
  ...contentParameters,
  sort_order: sortOrder.optional(),
  limit,
  offset: pageOffset,
})
export type ListParameters = z.output<typeof listQuery>

/** The path without a folder takes it as a parameter. */
export const accountListQuery = listQuery.extend({ folder: filledText.optional() })

export const messageQuery = z.object({ delimiter, ...contentParameters })

export const accountPath = z.object({ id: z.string(), label: z.string() })
export const folderPath = accountPath.extend({ folder: z.string() })
export const messagePath = accountPath.extend({ message_id: z.string(), folder: z.string().optional() })

export const attachmentPath = messagePath.extend({ attachment_id: z.string() })
export const delimiterQuery = z.object({ delimiter })
export const downloadQuery = z.object({ delimiter, as_link: flag.optional() })
export const linkAnswer = z.object({ link: z.string() })

export const downloadPath = z.object({ account: z.string(), message: z.string(), attachment: integer(0, 999_999) })
export const linkQuery = z.object({ expires: integer(0), signature: filledText })

export const bodyQuery = z.object({ delimiter, type: contentParameters.body_type })
export const bodyAnswer = z.object({ resource_url: z.string(), bodies: z.array(bodyPartView) })

export const headersQuery = z.object({ delimiter, raw: flag.optional() })
export const headersAnswer = z.object({ resource_url: z.string(), headers: headersView })

export const flagsAnswer = z.object({ resource_url: z.string(), flags: flagsView })

export const flagChange = z.object({
  seen: flag.optional(),
  answered: flag.optional(),
  flagged: flag.optional(),
  deleted: flag.optional(),
  draft: flag.optional(),
})
export type FlagChangeParameters = z.output<typeof flagChange>

export const writtenFlagsView = z.object({
  read: z.boolean(),
  answered: z.boolean(),
  flagged: z.boolean(),
  deleted: z.boolean(),
  draft: z.boolean(),
})
export const flagsWritten = z.object({ success: z.boolean(), flags: writtenFlagsView })

export const moveQuery = z.object({ delimiter, new_folder_id: filledText })
