/** The part of autocannon that is used here; it brings no types. */
declare module 'autocannon' {
  import type { EventEmitter } from 'node:events'

  interface Options {
    readonly url: string
    readonly connections: number
    /** Seconds. */
    readonly duration: number
    readonly headers: Readonly<Record<string, string>>
    readonly requests: readonly { readonly method: string; readonly path: string }[]
  }

  interface Result {
    readonly errors: number
    readonly timeouts: number
    readonly non2xx: number
    readonly requests: { readonly total: number }
    /** Seconds. */
    readonly duration: number
  }

  interface Instance extends EventEmitter, PromiseLike<Result> {
    /** Each answer: client, status, bytes, milliseconds. */
    on(event: 'response', listener: (client: unknown, status: number, bytes: number, ms: number) => void): this
  }

  export default function autocannon(options: Options): Instance
}
