/** /connect: where `browser_redirect_url` leads. The wizard is not there yet, and the page says so to the end user who is sent to it. */
import { z } from 'zod'
import { html } from '../docs/html.ts'
import { renderSmallPage, smallPageHeaders } from '../docs/shell.ts'
import { defineRoute, StreamAnswer, type Route } from '../route.ts'

const words = 'connecting a mailbox in the browser is not there yet; use POST /lite/users'

const notThereYet = z.object({ type: z.literal('error'), value: z.string() }).meta({
  examples: [{ type: 'error', value: words }],
})

const page = renderSmallPage(
  'Not there yet',
  html`<h1>This page is not there yet</h1>
    <p>
      An application has sent you here to connect your mailbox. This service cannot do that in the browser yet. Nothing
      was changed, and nobody has got access to your mail.
    </p>
    <p>Please go back, and tell the people who run the application.</p>`,
)

const connect = defineRoute({
  method: 'GET',
  path: '/connect/{token}',
  auth: 'public',
  tag: 'Connect tokens',
  summary: 'The page behind a connect token',
  description:
    'The wizard is not there yet: a page that says so, or the error for who asks for JSON, whatever the token is.',
  request: { path: z.object({ token: z.string() }) },
  response: notThereYet,
  page: true,
  status: 501,
  handler: (_input, call) =>
    Promise.resolve(
      call.asksForJson() ? { type: 'error' as const, value: words } : new StreamAnswer(page, smallPageHeaders),
    ),
})

export const connectRoutes: readonly Route[] = [connect]
