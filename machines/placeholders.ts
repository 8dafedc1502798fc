/**
 * Stand-ins for the actors that engine/ supplies with `machine.provide({ actors })`. The charts name them by string key
 * and know their types only. A chart that is started without its actors fails through its own error paths, with these
 * words.
 */
import { fromCallback, fromPromise, type EventObject } from 'xstate'

export function promiseActor<TOutput, TInput>(name: string) {
  return fromPromise<TOutput, TInput>(() => Promise.reject(new Error(`actor "${name}" is not provided`)))
}

export function callbackActor<TReceived extends EventObject, TInput>(name: string) {
  return fromCallback<TReceived, TInput>(() => {
    throw new Error(`actor "${name}" is not provided`)
  })
}
