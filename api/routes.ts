/** Every resource that Mailroom serves; app.ts adds the system routes. */
import { emailAccountRoutes } from './lite/email_accounts/handlers.ts'
import { folderRoutes } from './lite/folders/handlers.ts'
import { messageListRoutes } from './lite/messages/list.ts'
import { userRoutes } from './lite/users/handlers.ts'
import { deliveryRoutes } from './lite/webhooks/deliveries.ts'
import { webhookRoutes } from './lite/webhooks/handlers.ts'
import type { Route } from './route.ts'

export const resourceRoutes: readonly Route[] = [
  ...userRoutes,
  ...emailAccountRoutes,
  ...folderRoutes,
  ...messageListRoutes,
  ...webhookRoutes,
  ...deliveryRoutes,
]
