/** Routes that answer what they were given: the shapes of Mailroom's paths, without mail. */
import { z } from 'zod'
import { defineRoute, type Method, type Route } from '../../../api/route.ts'
import { flag, limit } from '../../../api/values.ts'

const echoed = z.object({
  route: z.string(),
  path: z.record(z.string(), z.string()),
  values: z.record(z.string(), z.unknown()),
})

export function echo(method: Method, path: string): Route {
  return defineRoute(`${method} ${path}`, {
    auth: 'developer',
    summary: `Echo ${path}`,
    tag: 'echo',
    response: echoed,
    handler: (input) =>
      Promise.resolve({
        route: `${method} ${path}`,
        path: input.path,
        values: { ...(input.body as Record<string, unknown>) },
      }),
  })
}

const account = '/lite/users/{id}/email_accounts/{label}'

export const echoRoutes: readonly Route[] = [
  echo('GET', '/lite/users'),
  echo('POST', '/lite/users'),
  echo('GET', '/lite/users/{id}'),
  echo('DELETE', '/lite/users/{id}'),
  echo('PUT', '/lite/users/{id}'),
  echo('GET', account),
  echo('GET', `${account}/folders`),
  echo('GET', `${account}/folders/{folder+}`),
  echo('POST', `${account}/folders/{folder+}`),
  echo('GET', `${account}/messages`),
  echo('GET', `${account}/messages/{message_id}`),
  echo('GET', `${account}/folders/{folder+}/messages`),
  echo('GET', `${account}/folders/{folder+}/messages/{message_id}`),
  echo('PUT', `${account}/folders/{folder+}/messages/{message_id}`),
  echo('GET', `${account}/folders/{folder+}/messages/{message_id}/flags`),
  echo('POST', `${account}/folders/{folder+}/messages/{message_id}/flags`),
  echo('GET', `${account}/folders/{folder+}/messages/{message_id}/attachments/{attachment_id}`),
  echo('GET', '/2.0/accounts/connect_tokens/{token}'),
  echo('GET', '/2.0/accounts/{id}/connect_tokens'),
  echo('PUT', '/2.0/accounts/{id}/sources/{label}/folders/{folder+}'),
  echo('POST', '/2.0/accounts/{id}/sources/{label}/folders/{folder+}/expunge'),
]

/** Query and body with schemas, to see how wrong values are told. */
export const checkedRoute = defineRoute('POST /checked', {
  auth: 'developer',
  summary: 'Parameters with schemas',
  tag: 'echo',
  query: z.object({ limit, loud: flag.default(false) }),
  body: z.object({ name: z.string() }),
  response: z.object({ limit: z.number(), loud: z.boolean(), name: z.string() }),
  handler: (input) => Promise.resolve({ ...input.query, name: input.body.name }),
})
