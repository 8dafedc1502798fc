/** Changes on the wire. */
import { z } from 'zod'
import * as examples from '../../examples.ts'
import { limitOf, text } from '../../values.ts'

export const changeView = z
  .object({
    id: z.string().meta({ description: 'the same for the same event, however often it is read' }),
    sequence: z.int().meta({ description: '1, 2, 3 … per email account, without gaps' }),
    timestamp: z.int(),
    account_id: z.string(),
    label: z.string(),
    event: z.enum(['received', 'sent', 'draft', 'folder_added', 'folder_removed', 'flags_changed', 'deleted']),
    first: z.boolean().meta({ description: "the message's first event" }),
    message_id: z.string(),
    folder: z.string(),
    uid: z.int(),
    flags: z.array(z.string()),
    folders: z.array(z.string()).meta({ description: 'of the message right after the event' }),
    resource_url: z.string(),
  })
  .meta({ id: 'Change', examples: [examples.change] })

export const changesQuery = z.object({
  since: text.optional().meta({
    description:
      'cursor of an earlier answer; absent = from the oldest change that is kept, `now` = what is new from here on',
    examples: ['now'],
  }),
  limit: limitOf(100, 1000),
})

export const changesAnswer = z
  .object({
    changes: z.array(changeView),
    cursor: z.string(),
    more: z.boolean().meta({ description: 'there are more right now' }),
    gap: z.boolean().meta({ description: 'changes after the cursor are not kept any more' }),
  })
  .meta({ examples: [{ changes: [examples.change], cursor: 'eyJhIjoxMDQyfQ', more: false, gap: false }] })

export const userPath = z.object({ id: z.string() })
