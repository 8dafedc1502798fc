/** Folders on the wire. */
import { z } from 'zod'
import * as examples from '../../examples.ts'
import { documented, flag, text } from '../../values.ts'

export const folderView = z
  .object({
    name: z.string(),
    nb_messages: z.int(),
    nb_unseen_messages: z.int(),
    delimiter: z.string(),
    symbolic_name: z.string(),
    xlist_name: z.string(),
    resource_url: z.string(),
  })
  .meta({ id: 'Folder', examples: [examples.folder] })

/** One character that stands between the levels of the name, when that is not '/'. */
export const delimiter = documented(
  text.refine((value) => Array.from(value).length <= 1, 'expected one character'),
  {
    type: 'string',
    maxLength: 1,
    description: "the character between the levels of the folder's name; '/' when absent",
  },
).optional()

export const listQuery = z.object({
  include_names_only: flag.optional().meta({ description: '1 = only the names, without counts' }),
})
export const nameOnly = z.object({ name: z.string() }).meta({ examples: [{ name: 'INBOX' }] })
export const folderQuery = z.object({ delimiter })
export const folderPath = z.object({ id: z.string(), label: z.string(), folder: z.string() })
export const createAnswer = z
  .object({ success: z.boolean(), resource_url: z.string() })
  .meta({ examples: [{ success: true, resource_url: examples.urls.newFolder }] })
