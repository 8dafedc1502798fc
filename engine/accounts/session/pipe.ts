/** A bounded queue between the connection's reader and a consumer that asks for one value after the other. */

export interface Pipe<T> {
  /** Resolves when there is room; at once when the consumer has left, or when somebody else needs the line. */
  push(value: T): Promise<void>
  end(error?: unknown): void
  /** No more waiting for the consumer: somebody else needs the line, and may be the consumer itself. */
  open(): void
  values(): AsyncGenerator<T, void, undefined>
}

/** Enough that a consumer which writes to a store in batches seldom makes the server wait. */
const capacity = 64

interface State<T> {
  queue: T[]
  over: { readonly error?: unknown } | null
  unbounded: boolean
  left: boolean
  wakeProducer: (() => void) | null
  wakeConsumer: (() => void) | null
}

function wakeProducer(state: State<unknown>): void {
  state.wakeProducer?.()
  state.wakeProducer = null
}

async function* drain<T>(state: State<T>): AsyncGenerator<T, void, undefined> {
  try {
    for (;;) {
      const value = state.queue.shift()
      if (value !== undefined) {
        if (state.queue.length < capacity) wakeProducer(state)
        yield value
      } else if (state.over) {
        if ('error' in state.over) throw state.over.error
        return
      } else {
        await new Promise<void>((resolve) => (state.wakeConsumer = resolve))
        state.wakeConsumer = null
      }
    }
  } finally {
    state.left = true
    state.queue = []
    wakeProducer(state)
  }
}

export function createPipe<T>(): Pipe<T> {
  const state: State<T> = {
    queue: [],
    over: null,
    unbounded: false,
    left: false,
    wakeProducer: null,
    wakeConsumer: null,
  }
  return {
    async push(value) {
      if (state.left) return
      state.queue.push(value)
      state.wakeConsumer?.()
      if (state.queue.length < capacity || state.unbounded) return
      await new Promise<void>((resolve) => (state.wakeProducer = resolve))
    },
    end(error) {
      state.over ??= error === undefined ? {} : { error }
      wakeProducer(state)
      state.wakeConsumer?.()
    },
    open() {
      state.unbounded = true
      wakeProducer(state)
    },
    values: () => drain(state),
  }
}
