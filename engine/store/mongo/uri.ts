/** What the URI says that the driver does not say, or finds wrong too late. */
import { AppError } from '../../errors.ts'

const shape = /^mongodb(?:\+srv)?:\/\/(?:[^/?]*@)?([^/?]*)(?:\/([^?]*))?/

/** A password with a / or a ? in it: what is taken for the host is its beginning, which must not be shown. */
const unencoded = /^mongodb(?:\+srv)?:\/\/[^/?@]*(?:\/[^?]*@|\?[^=&]*@)/

/** What no server takes: https://www.mongodb.com/docs/manual/reference/limits/#naming-restrictions */
const forbidden = /[/\\. "$*<>:|?\0#]/
const longestNameBytes = 63

export interface UriFacts {
  /** For the log, without credentials. */
  readonly host: string
  /** The database's name: `mailroom` unless the URI names one. */
  readonly name: string
}

/** AppError `bad_request`, one line without credentials, when host or database cannot be what they are written as. */
export function describeUri(uri: string): UriFacts {
  if (unencoded.test(uri)) throw wrong('a / or ? in the user name or the password has to be written %2F or %3F')
  const match = shape.exec(uri)
  const host = match?.[1] ?? 'the host'
  // the driver accepts these, and throws later where it cannot be caught
  if (match && host.split(',').some((one) => one === '' || one.startsWith(':'))) throw wrong('a host has no name')
  return { host, name: databaseName(match?.[2] ?? '') }
}

function databaseName(encoded: string): string {
  if (encoded === '') return 'mailroom'
  let name: string
  try {
    name = decodeURIComponent(encoded)
  } catch (cause) {
    throw wrong('the database name has a broken % sequence', cause)
  }
  if (forbidden.test(name))
    throw wrong(`a database name cannot have ${JSON.stringify(forbidden.exec(name)?.[0])} in it`)
  if (Buffer.byteLength(name) > longestNameBytes) {
    throw wrong(`a database name cannot be longer than ${longestNameBytes} bytes`)
  }
  return name
}

function wrong(words: string, cause?: unknown): AppError {
  return new AppError('bad_request', `MONGODB_URI: ${words}`, { cause })
}
