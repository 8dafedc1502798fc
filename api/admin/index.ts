/** Every route of the admin API: for the front, and for the command line, which reads their schemas. */
import { accountRoutes } from './account.ts'
import { accountsRoute } from './accounts.ts'
import { auditRoute } from './audit.ts'
import { hostRoutes } from './hosts.ts'
import { developerRoutes, tokenRoutes } from './keys.ts'
import { overviewRoute } from './overview.ts'
import { backupRoutes, retentionRoutes } from './store.ts'
import { adminWebhookRoutes } from './webhooks.ts'

export const adminRoutes = [
  ...backupRoutes,
  overviewRoute,
  accountsRoute,
  ...accountRoutes,
  ...adminWebhookRoutes,
  ...hostRoutes,
  auditRoute,
  ...developerRoutes,
  ...tokenRoutes,
  ...retentionRoutes,
]
