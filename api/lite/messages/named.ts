/** What turns out to be gone on the mail server is a 404 like every other: with the id or the name that the caller wrote. */
import { isAppError, notFound } from '../../../engine/index.ts'

export interface Names {
  readonly message: string
  /** The folder that the caller named, and what the server calls it. */
  readonly folder?: { readonly name: string; readonly path: string }
}

export async function asNamed<T>({ message, folder }: Names, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!isAppError(error, 'not_found')) throw error
    const { kind, id } = error.details
    const meant = folder !== undefined && kind === 'folder' && folder.path === id
    throw meant ? notFound('folder', folder.name) : notFound('message', message)
  }
}
