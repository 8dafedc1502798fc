/** Connect tokens on the wire. */
import { z } from 'zod'
import { email, nameText, url, urlOrEmpty } from '../../values.ts'
import { userView } from '../users/schema.ts'

export const tokenView = z
  .object({
    token: z.string(),
    account_lite: z.literal(true),
    created: z.int(),
    used: z.int().meta({ description: '0 while unused, else Unix timestamp of use' }),
    expires: z.union([z.int(), z.literal(false)]).meta({ description: 'Unix timestamp while unused; false once used' }),
    callback_url: z.string(),
    email: z.string().optional(),
    first_name: z.string(),
    last_name: z.string(),
    status_callback_url: z.string().optional(),
    browser_redirect_url: z.string(),
    serverLabel: z.string().optional().meta({ description: 'label of the email account, once there is one' }),
    email_account_id: z.string().optional().meta({ description: 'the same, once the token is used' }),
    user: userView.optional().meta({ description: 'once the token is used' }),
    resource_url: z.string(),
  })
  .meta({ id: 'ConnectToken' })

export const createBody = z.object({
  callback_url: url,
  email: email.optional(),
  first_name: nameText.optional(),
  last_name: nameText.optional(),
  status_callback_url: urlOrEmpty.optional(),
})

export const createAnswer = z.object({
  success: z.boolean(),
  token: z.string(),
  resource_url: z.string(),
  browser_redirect_url: z.string(),
})

/** `id` and `label` are absent at the level of the application, `label` at the level of a user. */
export const scopePath = z.object({ id: z.string().optional(), label: z.string().optional() })
export const tokenPath = scopePath.extend({ token: z.string() })
