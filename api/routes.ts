/** Every resource that Mailroom serves; app.ts adds the system routes. */
import { logRoutes } from './app/logs.ts'
import { statusCallbackRoutes } from './app/status-callback.ts'
import { connectRoutes } from './connect/handlers.ts'
import { changeRoutes } from './lite/changes/handlers.ts'
import { connectTokenRoutes } from './lite/connect_tokens/handlers.ts'
import { contactRoutes } from './lite/contacts/handlers.ts'
import { discoveryRoutes } from './lite/discovery/handlers.ts'
import { emailAccountRoutes } from './lite/email_accounts/handlers.ts'
import { folderRoutes } from './lite/folders/handlers.ts'
import { messageRoutes } from './lite/messages/routes.ts'
import { oauthProviderRoutes } from './lite/oauth_providers/handlers.ts'
import { userRoutes } from './lite/users/handlers.ts'
import { deliveryRoutes } from './lite/webhooks/deliveries.ts'
import { explainRoutes } from './lite/webhooks/explain.ts'
import { webhookRoutes } from './lite/webhooks/handlers.ts'
import type { Route } from './route.ts'

export const resourceRoutes: readonly Route[] = [
  ...userRoutes,
  ...emailAccountRoutes,
  ...folderRoutes,
  ...messageRoutes,
  ...webhookRoutes,
  ...deliveryRoutes,
  ...explainRoutes,
  ...changeRoutes,
  ...contactRoutes,
  ...connectTokenRoutes,
  ...connectRoutes,
  ...discoveryRoutes,
  ...oauthProviderRoutes,
  ...statusCallbackRoutes,
  ...logRoutes,
]
