/** Users on the wire. */
import { z } from 'zod'
import { limitOf, nameText, offset, statusFilter, text } from '../../values.ts'
import { emailAccountView, softFailure } from '../email_accounts/schema.ts'
import { mailboxParameters } from '../mailbox-input.ts'

export const userView = z
  .object({
    id: z.string(),
    username: z.string(),
    created: z.int(),
    suspended: z.literal(0),
    password_expired: z.literal(0),
    first_name: z.string(),
    last_name: z.string(),
    email_addresses: z.array(z.string()),
    email_accounts: z.array(emailAccountView),
    resource_url: z.string(),
  })
  .meta({ id: 'User' })

export const listQuery = z.object({ email: text.optional(), ...statusFilter, limit: limitOf(100), offset })

export const userPath = z.object({ id: z.string() })

const names = { first_name: nameText.optional(), last_name: nameText.optional() }

export const createBody = z.object({ ...mailboxParameters, ...names, migrate_account_id: text.optional() })

export const editBody = z.object(names)

const reference = z.object({ label: z.string(), resource_url: z.string() })

export const createAnswer = z.object({
  ...softFailure,
  id: z.string().optional(),
  resource_url: z.string().optional(),
  source: reference.optional(),
  email_account: reference.optional(),
})

export const editAnswer = z.object({ success: z.boolean(), resource_url: z.string() })
