/** Connect tokens on the wire. */
import { z } from 'zod'
import * as examples from '../../examples.ts'
import { email, personNames, url, urlOrEmpty } from '../../values.ts'
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
  .meta({ id: 'ConnectToken', examples: [examples.connectToken, examples.connectTokenUsed] })

export const createBody = z
  .object({
    callback_url: url.meta({
      description: 'where the browser goes after the wizard, with the token in the query',
      examples: ['https://app.example.com/connected'],
    }),
    email: email.optional().meta({
      description: 'address of the mailbox: skips the first step of the wizard',
      examples: ['anna@example.com'],
    }),
    ...personNames,
    status_callback_url: urlOrEmpty.optional().meta({
      description:
        'takes the status callbacks of the email account that the wizard makes; the URL of the user when none is named',
      examples: ['https://app.example.com/status'],
    }),
  })
  .meta({ examples: [{ callback_url: 'https://app.example.com/connected', email: 'anna@example.com' }] })

export const createAnswer = z
  .object({
    success: z.boolean(),
    token: z.string(),
    resource_url: z.string(),
    browser_redirect_url: z.string(),
  })
  .meta({
    examples: [
      {
        success: true,
        token: examples.connectToken.token,
        resource_url: examples.urls.token,
        browser_redirect_url: examples.urls.redirect,
      },
    ],
  })

/** `id` and `label` are absent at the level of the application, `label` at the level of a user. */
export const scopePath = z.object({ id: z.string().optional(), label: z.string().optional() })
export const tokenPath = scopePath.extend({ token: z.string() })
