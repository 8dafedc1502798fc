/** A command whose link was renewed before the command began is given once more, to the link that is there then. */
import { notBegun } from '../link.ts'

export function onceMore<A extends unknown[], T>(command: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
  return async (...args) => {
    try {
      return await command(...args)
    } catch (error) {
      if (!notBegun(error)) throw error
      return command(...args)
    }
  }
}
