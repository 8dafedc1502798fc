/** All routes of the admin API. The command line reads their schemas, too. */
import { accountRoutes } from './account.ts'
import { accountsRoute } from './accounts.ts'
import { auditRoute } from './audit.ts'
import { deliveryRoutes } from './deliveries.ts'
import { hostRoutes } from './hosts.ts'
import { developerRoutes, tokenRoutes } from './keys.ts'
import { nodesRoute } from './nodes.ts'
import { overviewRoute } from './overview.ts'
import { searchRoute } from './search.ts'
import { backupRoutes, retentionRoutes } from './store.ts'
import { trailRoute } from './trail.ts'
import { adminWebhookRoutes } from './webhooks.ts'

export const adminRoutes = [
  ...backupRoutes,
  overviewRoute,
  nodesRoute,
  searchRoute,
  accountsRoute,
  ...accountRoutes,
  trailRoute,
  ...adminWebhookRoutes,
  ...deliveryRoutes,
  ...hostRoutes,
  auditRoute,
  ...developerRoutes,
  ...tokenRoutes,
  ...retentionRoutes,
]
