/** List parameters → a query of the index. */
import type { FolderRecord, MessageQuery } from '../../../engine/index.ts'
import type { ListParameters } from './schema.ts'

export function messageQueryOf(query: ListParameters, folder: FolderRecord | null): MessageQuery {
  return {
    ...(folder === null ? {} : { folderId: folder.id }),
    ...(query.subject === undefined ? {} : { subject: query.subject }),
    ...addressFilters(query),
    ...(query.date_after === undefined ? {} : { sentFrom: query.date_after }),
    ...(query.date_before === undefined ? {} : { sentUntil: query.date_before + 999 }),
    order: query.sort_order ?? 'desc',
  }
}

const addressParameters = ['email', 'to', 'from', 'cc', 'bcc'] as const

function addressFilters(query: ListParameters): Pick<MessageQuery, (typeof addressParameters)[number]> {
  return Object.fromEntries(
    addressParameters.flatMap((name) =>
      query[name] === undefined || query[name].length === 0 ? [] : [[name, query[name]]],
    ),
  )
}
