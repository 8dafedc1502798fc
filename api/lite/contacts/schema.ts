/** Contacts on the wire. */
import { z } from 'zod'
import * as examples from '../../examples.ts'
import { choice, limitOf, offset, sortOrder } from '../../values.ts'

export const contactView = z
  .object({
    email: z.string(),
    name: z.string(),
    total_count: z
      .int()
      .meta({ description: 'all messages with the contact: in From, To, Cc or Bcc, received or sent' }),
    direct_count: z.int().meta({ description: 'messages received from the contact and replied to' }),
    indirect_count: z.int().meta({ description: 'messages received from the contact' }),
    last_received: z
      .int()
      .meta({ description: 'Unix timestamp of the newest message received from the contact; 0 = none was' }),
    service_user_id: z.string(),
    contact_id: z.string(),
  })
  .meta({ id: 'Contact', examples: [examples.contact] })

export const listAnswer = z
  .object({ contacts: z.array(contactView) })
  .meta({ examples: [{ contacts: [examples.contact] }] })

const sortBy = choice(['total_count', 'direct_count', 'indirect_count'])

export const listQuery = z.object({
  sort_by: sortBy.default('total_count').meta({
    description:
      'count to sort by: `total_count` of all messages with the contact, `indirect_count` of those received from the contact, ' +
      '`direct_count` of those received and replied to',
  }),
  sort_order: sortOrder.default('desc').meta({ description: '`desc` = highest count first, `asc` = lowest first' }),
  limit: limitOf(100),
  offset,
})

export const userPath = z.object({ id: z.string() })
export const contactPath = z.object({
  id: z.string(),
  contactid: z.string().meta({ description: 'id of the contact, or its email address' }),
})
