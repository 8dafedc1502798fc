/** The receiver as the tests of the whole service use it: all callbacks in one list, one behaviour for all paths. */
import { createReceiver, type Received } from './receiver.ts'
import type { Json } from './service.ts'

export { bodySignatureValid as bodySignatureFits, standardSignatureValid as headerSignatureFits } from './receiver.ts'

export interface Callback extends Omit<Received, 'at'> {
  /** performance.now() when the whole body was there. */
  readonly at: number
  /** The status that it was answered with; 0 = none. */
  readonly answered: number
}

/** The status to answer with; 'reset' closes the connection without an answer. */
export type Behaviour = (callback: { readonly path: string; readonly count: number }) => number | 'reset'

export interface CallbackReceiver {
  readonly url: string
  /** All that came, also those that were answered with an error. */
  readonly all: readonly Callback[]
  /** Those that were answered with 200. */
  accepted(): Callback[]
  behave(behaviour: Behaviour): void
  /** Called for each as it comes, before the answer. */
  onCallback(listener: (callback: Callback) => void): void
  close(): Promise<void>
}

export async function startReceiver(): Promise<CallbackReceiver> {
  const all: Callback[] = []
  let behaviour: Behaviour = () => 200
  let listener: (callback: Callback) => void = () => undefined
  const receiver = await createReceiver((request) => {
    const verdict = behaviour({ path: request.path, count: all.length })
    const callback = { ...request, at: performance.now(), answered: verdict === 'reset' ? 0 : verdict }
    all.push(callback)
    listener(callback)
    return verdict === 'reset' ? verdict : { status: verdict }
  })
  return {
    url: receiver.url(''),
    all,
    accepted: () => all.filter((callback) => callback.answered === 200),
    behave: (next) => (behaviour = next),
    onCallback: (next) => (listener = next),
    close: () => receiver.close(),
  }
}

/** A field of an object in the body, as an object. */
export function part(body: Json, name: string): Json {
  const value = body[name]
  if (typeof value !== 'object' || value === null) throw new Error(`${name} is missing in ${JSON.stringify(body)}`)
  return value as Json
}

export function subjectOf(callback: Callback): string {
  return String(part(callback.body, 'message_data')['subject'])
}
