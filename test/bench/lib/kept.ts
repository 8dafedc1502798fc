/** Whether each mail was told once, and those of a mailbox in the order in which they were sent. */
import type { Arrival } from './arrivals.ts'

export interface Kept {
  readonly sent: number
  readonly lost: number
  readonly repeated: number
  readonly outOfOrder: number
}

export function kept(mail: readonly Arrival[]): Kept {
  const byMailbox = Map.groupBy(mail, ({ mailbox }) => mailbox)
  const late = [...byMailbox.values()].flatMap((own) => {
    const told = own.toSorted((a, b) => a.sentAt - b.sentAt).map(({ toldAt }) => toldAt ?? Infinity)
    return told.filter((at, index) => at < (told[index - 1] ?? 0))
  })
  return {
    sent: mail.length,
    lost: mail.filter(({ told }) => told === 0).length,
    repeated: mail.filter(({ told }) => told > 1).length,
    outOfOrder: late.length,
  }
}
