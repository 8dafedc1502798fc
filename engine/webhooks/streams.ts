/** Live changes for the event stream: who listens to which accounts. A listener that throws is dropped. */
import { toAppError } from '../errors.ts'
import type { Logger } from '../observe/log.ts'

export interface Streams {
  subscribe(accountIds: readonly string[], listener: (accountId: string) => void): () => void
  tell(accountId: string): void
}

export function createStreams(log: Logger): Streams {
  const listeners = new Map<string, Set<(accountId: string) => void>>()

  function leave(accountId: string, listener: (accountId: string) => void): void {
    const own = listeners.get(accountId)
    own?.delete(listener)
    if (own?.size === 0) listeners.delete(accountId)
  }

  return {
    subscribe(accountIds, listener) {
      // One subscription is one function object, so that the same listener may subscribe twice.
      const own = (accountId: string) => listener(accountId)
      for (const id of accountIds) listeners.set(id, (listeners.get(id) ?? new Set()).add(own))
      return () => {
        for (const id of accountIds) leave(id, own)
      }
    },
    tell(accountId) {
      for (const listener of [...(listeners.get(accountId) ?? [])]) {
        try {
          listener(accountId)
        } catch (error) {
          leave(accountId, listener)
          log.error({ accountId, err: toAppError(error) }, 'a listener of the event stream failed')
        }
      }
    },
  }
}
