/** Contacts on the wire. */
import { z } from 'zod'
import { limitOf, offset, sortOrder } from '../../values.ts'

export const contactView = z
  .object({
    email: z.string(),
    name: z.string(),
    total_count: z.int(),
    direct_count: z.int(),
    indirect_count: z.int(),
    last_received: z.int(),
    service_user_id: z.string(),
    contact_id: z.string(),
  })
  .meta({ id: 'Contact' })

export const listAnswer = z.object({ contacts: z.array(contactView) })

const sortBy = z.enum(['total_count', 'direct_count', 'indirect_count'], {
  error: 'expected total_count, direct_count or indirect_count',
})

export const listQuery = z.object({
  sort_by: sortBy.default('total_count'),
  sort_order: sortOrder.default('desc'),
  limit: limitOf(100),
  offset,
})

export const userPath = z.object({ id: z.string() })
export const contactPath = z.object({
  id: z.string(),
  contactid: z.string().meta({ description: 'id of the contact, or its email address' }),
})
