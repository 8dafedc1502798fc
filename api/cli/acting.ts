/** Commands that call one route of the admin API. Their summary and their options are those of the route. */
import { z } from 'zod'
import { AppError } from '../../engine/index.ts'
import type { checkView } from '../admin/account.ts'
import { adminRoutes } from '../admin/index.ts'
import type { Method } from '../route.ts'
import { accountId, clientOf, say } from './client.ts'
import { showAccount, showAny, showDeliveries, showExplanation } from './show.ts'
import { type Command, type Given, type OptionName, isOption } from './usage.ts'

/** `at`: method and path. The word after the command is {id} in the path, or this `parameter` of the query. */
function commandOf(at: string, show: Show = showAny, words = '', parameter?: string): Command {
  const [method, path] = at.split(' ') as [Method, string]
  const route = adminRoutes.find((one) => one.method === method && one.path === path)
  if (route === undefined) throw new Error(`no route ${at}`)
  const fields = route.query instanceof z.ZodObject ? Object.keys(route.query.shape) : []
  const options = fields.map((name) => name.replace('_', '-')).filter(isOption)
  return {
    words,
    does: route.summary,
    options,
    run: async (given) => {
      const client = clientOf(given)
      const [word] = given.words
      // An account may be named by its address.
      const id = path.includes('/accounts/{id}') ? await accountId(client, word ?? '') : encodeURIComponent(word ?? '')
      const filled = path.replace('{id}', id)
      const query = new URLSearchParams(valuesOf(given, options))
      if (parameter !== undefined && word !== undefined) query.set(parameter, word)
      say(given, await client.call(method, query.size === 0 ? filled : `${filled}?${query.toString()}`), show)
    },
  }
}

type Show = Parameters<typeof say>[2]

export function valuesOf({ values }: Given, options: readonly OptionName[]): Record<string, string> {
  const given = options.map((name) => [name.replace('-', '_'), values[name]] as const)
  return Object.fromEntries(given.filter((pair): pair is [string, string] => typeof pair[1] === 'string'))
}

export const accountOptions = commandOf('GET /admin/accounts').options ?? []
const allHosts = commandOf('GET /admin/hosts')

export const actingCommands: Readonly<Record<string, Command>> = {
  explain: commandOf('GET /admin/accounts/{id}/explain', showExplanation, '<account>'),
  reconnect: commandOf('POST /admin/accounts/{id}/reconnect', showAccount, '<account>'),
  pause: commandOf('POST /admin/accounts/{id}/pause', showAccount, '<account>'),
  resume: commandOf('POST /admin/accounts/{id}/resume', showAccount, '<account>'),
  check: commandOf('POST /admin/accounts/{id}/check', showCheck, '<account>'),
  link: commandOf('POST /admin/accounts/{id}/link', showAny, '<account>'),
  find: commandOf('GET /admin/search', showAny, '<text>', 'q'),
  webhooks: commandOf('GET /admin/webhooks'),
  deliveries: commandOf('GET /admin/deliveries', showDeliveries),
  redeliver: commandOf('POST /admin/deliveries/{id}/redeliver', showAny, '<callback>'),
  audit: commandOf('GET /admin/audit', showAny, '[<address, name or id>]', 'target'),
  nodes: commandOf('GET /admin/nodes'),
  hosts: {
    ...allHosts,
    words: '[slow <host> <logins a minute> | stop <host> | free <host>]',
    does: 'mail servers, and how many logins they get',
    run: hosts,
  },
}

/** Throws `bad_request` when the login fails: a script sees it by the exit status. */
function showCheck(answer: unknown): readonly string[] {
  const { failure, message } = answer as z.output<typeof checkView>
  if (failure !== null) throw new AppError('bad_request', `the login fails (${failure}): ${message ?? ''}`)
  return ['The login works.']
}

async function hosts(given: Given): Promise<void> {
  const [verb, host = '', pace = ''] = given.words
  if (verb === undefined) return allHosts.run(given)
  const body = { pace: verb === 'stop' ? '0' : pace }
  say(given, await clientOf(given).call('PUT', `/admin/hosts/${encodeURIComponent(host)}`, body), showAny)
}
