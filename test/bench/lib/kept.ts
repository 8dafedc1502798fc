/** Whether each mail was told once, and those of a mailbox in the order in which they were sent. */
import type { Arrival } from './arrivals.ts'

export interface Kept {
  readonly sent: number
  readonly lost: number
  readonly repeated: number
  /** Told after a message that was sent later to the same mailbox. */
  readonly outOfOrder: readonly Arrival[]
}

export function kept(mail: readonly Arrival[]): Kept {
  const byMailbox = Map.groupBy(mail, ({ mailbox }) => mailbox)
  const outOfOrder = [...byMailbox.values()].flatMap((own) => {
    const told = own.filter(({ toldAt }) => toldAt !== null).toSorted((a, b) => a.sentAt - b.sentAt)
    return told.filter(({ toldAt }, index) => (toldAt ?? 0) > (told[index + 1]?.toldAt ?? Infinity))
  })
  return {
    sent: mail.length,
    lost: mail.filter(({ told }) => told === 0).length,
    repeated: mail.filter(({ told }) => told > 1).length,
    outOfOrder,
  }
}
