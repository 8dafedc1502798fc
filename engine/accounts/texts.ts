/** Parts of many messages of the folder that is open, with few commands. */
import type { MessageRecord } from '../store/records.ts'
import { isAppError } from '../errors.ts'
import type { Session } from './session/index.ts'
import type { ManyParts, WantedParts } from './types.ts'

/** `uids`: by message id. Parts that the server refuses to give in this way are absent. */
export async function fetchTexts(
  session: Session,
  uids: ReadonlyMap<string, number>,
  wanted: readonly WantedParts[],
  maxBytes: number,
): Promise<ManyParts> {
  const found = new Map<string, ReadonlyMap<string, Buffer>>()
  for (const group of Map.groupBy(wanted, ({ sections }) => sections.join()).values()) {
    const [{ sections } = { sections: [] }] = group
    const messages = new Map(group.map(({ message }) => [uids.get(message.id) ?? 0, message]))
    if (sections.length === 0) continue
    const read = await session.fetchSections([...messages.keys()], sections, maxBytes).catch((error: unknown) => {
      if (!isAppError(error, 'server_refused') && !isAppError(error, 'not_found')) throw error
      return new Map<number, never>()
    })
    for (const [uid, parts] of read) {
      const message = messages.get(uid)
      const isAll = message !== undefined && parts.size === sections.length && areWhole(message, parts, maxBytes)
      if (isAll) found.set(message.id, parts)
    }
  }
  return found
}

/** As transferred; 0 = nothing was said. */
export function statedSize({ bodies, attachments }: MessageRecord, section: string): number {
  return [...bodies, ...attachments].find((part) => part.section === section)?.size ?? 0
}

/** Whether these parts, each cut at `maxBytes`, are no shorter than was said. */
export function areWhole(message: MessageRecord, parts: ReadonlyMap<string, Buffer>, maxBytes: number): boolean {
  return [...parts].every(([section, bytes]) => bytes.length >= Math.min(statedSize(message, section), maxBytes))
}
