/**
 * One connect token: what its record says of it, and the one try that may be under way.
 *
 *   unused   looks at the record and is left at once.
 *   open     TRY begins a try with a mailbox. A second TRY is not heard until the first has ended.
 *   trying   `attempt` logs in, claims the token and stores the account. A try that fails leads back to unused.
 *   used     an account was made, by this try or by another one at the same time: once, and for good.
 *   expired  24 hours have passed. A try that has claimed the token before is still let through.
 *   spent    as many tries have failed as there may be: for good, so that no password is guessed by a link.
 */
import { assign, initialTransition, setup } from 'xstate'
import { promiseActor } from './records.ts'

/** Tries with a mailbox that one token is good for. */
export const triesOfToken = 20

export interface ConnectTokenInput {
  readonly token: string
  readonly usedAt: number | null
  readonly expiresAt: number
  /** Tries that were begun before. */
  readonly tries: number
  readonly now: number
  /** Longest time of a try. */
  readonly deadlineMs: number
}

/** `usedAt`: the token was used then; null = the try has failed. */
export interface TryOutput {
  readonly usedAt: number | null
  /** Those that were begun by now, this one included. */
  readonly tries: number
  readonly at: number
}

const chart = setup({
  types: {
    context: {} as ConnectTokenInput,
    input: {} as ConnectTokenInput,
    events: {} as { readonly type: 'TRY'; readonly at: number },
    tags: {} as 'open' | 'trying' | 'used' | 'expired' | 'spent',
  },
  actors: { attempt: promiseActor<TryOutput, { readonly token: string }>('attempt') },
  delays: { deadline: ({ context }) => context.deadlineMs },
  guards: {
    isUsed: ({ context }) => context.usedAt !== null,
    isExpired: ({ context }) => context.expiresAt <= context.now,
    isSpent: ({ context }) => context.tries >= triesOfToken,
  },
})

const begin = chart.assign(({ context, event }) => ({ tries: context.tries + 1, now: event.at }))
const note = ({ usedAt, tries, at: now }: TryOutput) => ({ usedAt, tries, now })

export const connectTokenMachine = chart.createMachine({
  id: 'connectToken',
  context: ({ input }) => input,
  initial: 'unused',
  states: {
    unused: {
      always: [
        { guard: 'isUsed', target: 'used' },
        { guard: 'isExpired', target: 'expired' },
        { guard: 'isSpent', target: 'spent' },
        { target: 'open' },
      ],
    },
    open: { tags: 'open', on: { TRY: { target: 'trying', actions: begin } } },
    trying: {
      tags: 'trying',
      invoke: {
        id: 'attempt',
        src: 'attempt',
        input: ({ context: { token } }) => ({ token }),
        onDone: { target: 'unused', actions: assign(({ event }) => note(event.output)) },
        onError: 'unused',
      },
      after: { deadline: 'unused' },
    },
    used: { tags: 'used', type: 'final' },
    expired: { tags: 'expired', type: 'final' },
    spent: { tags: 'spent', type: 'final' },
  },
})

const ends = ['used', 'expired', 'spent'] as const

export type TokenLife = 'open' | (typeof ends)[number]

/** The state of a token by its record alone. */
export function tokenLife(input: ConnectTokenInput): TokenLife {
  const [snapshot] = initialTransition(connectTokenMachine, input)
  return ends.find((tag) => snapshot.hasTag(tag)) ?? 'open'
}
