/** All routes of the console. They are no part of the API: the documents do not have them. */
import type { Config, Logger } from '../../engine/index.ts'
import type { Route } from '../route.ts'
import { createTries } from '../tries.ts'
import { account, accountActions } from './account.ts'
import { accounts } from './accounts.ts'
import { developerActions, developers } from './developers.ts'
import { eventsRoute } from './events.ts'
import { actionRoute, pageRoute } from './frame.ts'
import { hosts, paceAction } from './hosts.ts'
import { loginRoutes, logout } from './login.ts'
import { overview } from './overview.ts'
import { tokenActions, tokens } from './tokens.ts'
import { delivery, deliveryActions, webhook, webhooks } from './webhooks.ts'

const pages = [overview, accounts, account, webhooks, webhook, delivery, hosts, developers, tokens]
const actions = [logout, ...accountActions, ...deliveryActions, paceAction, ...developerActions, ...tokenActions]

const usualTries = 10

interface Deps {
  readonly config: Pick<Config, 'MAILROOM_WRONG_KEYS'>
  readonly log: Logger
  readonly now: () => number
}

export function consoleRoutes({ config, log, now }: Deps): readonly Route[] {
  // One password, which is guessed at: there is always a limit.
  const tries = createTries({ free: config.MAILROOM_WRONG_KEYS || usualTries, now, log })
  return [...loginRoutes(tries), ...pages.map(pageRoute), ...actions.map(actionRoute), eventsRoute(pages)]
}
