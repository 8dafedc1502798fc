/** What turns out to be gone on the mail server is a 404 like every other: with the id or the name that the caller wrote. */
import { isAppError, notFound } from '../../../engine/index.ts'

export interface Names {
  readonly message: string
  readonly folder?: string
}

export async function asNamed<T>({ message, folder }: Names, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!isAppError(error, 'not_found')) throw error
    throw error.details['kind'] === 'folder' && folder !== undefined
      ? notFound('folder', folder)
      : notFound('message', message)
  }
}
