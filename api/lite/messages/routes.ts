/** All of EA/messages and EA/folders/{folder}/messages. */
import type { Route } from '../../route.ts'
import { attachmentRoutes } from './attachments.ts'
import { messageFlagRoutes } from './flags.ts'
import { messageListRoutes } from './list.ts'
import { messageMoveRoutes } from './move.ts'
import { messagePartRoutes } from './parts.ts'

export const messageRoutes: readonly Route[] = [
  ...messageListRoutes,
  ...messagePartRoutes,
  ...messageFlagRoutes,
  ...messageMoveRoutes,
  ...attachmentRoutes,
]
