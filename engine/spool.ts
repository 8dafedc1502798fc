/**
 * A whole message on its way to a mail server. Its size has to be known before its first byte is sent (RFC 9051 section
 * 6.3.12), and mail servers name wrong sizes: so it waits in a file. The file loses its name as soon as it is open, so
 * nothing of it is left when the process ends. A process that is killed between the two leaves an empty file, which the
 * next start removes.
 */
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, rmSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDataDir } from './data-dir.ts'
import { AppError } from './errors.ts'

/** What APPEND sends. */
export interface Literal {
  readonly size: number
  /** It holds a NUL, which only BINARY (RFC 3516) can send. */
  readonly hasNul: boolean
  read(): AsyncIterable<Buffer>
}

export interface Upload extends Literal {
  /** Held until the work is done: that may outlast the call that it is for. Rejects when nobody holds it any more. */
  holding<T>(work: () => Promise<T>): Promise<T>
}

/** Held until it is disposed of. */
export interface Spooled extends Upload, AsyncDisposable {
  /** SHA-256 of all its bytes. */
  readonly digest: string
  /** Its first bytes, at most 64 KiB. */
  readonly head: Buffer
}

interface SpoolOptions {
  /** MAILROOM_DATA_DIR */
  readonly directory: string
  /** Rejects with `too_large` past so many bytes. Infinity = what comes is taken. */
  readonly most: number
}

const pieceBytes = 64 * 1024

async function* piecesOf(file: FileHandle, size: number): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < size;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(pieceBytes, size - at)), { position: at })
    if (bytesRead === 0) throw new AppError('internal', `a spooled message ended after ${at} of ${size} bytes`)
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

async function onDisk<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new AppError('store_unavailable', `a message cannot be kept in MAILROOM_DATA_DIR: ${why}`, { cause })
  }
}

async function fill(file: FileHandle, source: AsyncIterable<Buffer>, most: number): Promise<Spooled> {
  const hash = createHash('sha256')
  const head: Buffer[] = []
  let [size, headBytes, hasNul] = [0, 0, false]
  for await (const chunk of source) {
    size += chunk.length
    if (size > most) throw new AppError('too_large', `message: larger than ${most} bytes`, { details: { limit: most } })
    hash.update(chunk)
    hasNul ||= chunk.includes(0)
    if (headBytes < pieceBytes) {
      const piece = Buffer.from(chunk.subarray(0, pieceBytes - headBytes))
      head.push(piece)
      headBytes += piece.length
    }
    // appendFile writes all of it; write may write less
    await onDisk(() => file.appendFile(chunk))
  }
  let holders = 1
  const leave = async (): Promise<void> => {
    holders -= 1
    if (holders === 0) await file.close()
  }
  return {
    ...{ size, hasNul, digest: hash.digest('hex'), head: Buffer.concat(head) },
    read: () => piecesOf(file, size),
    async holding(work) {
      if (holders === 0) throw new AppError('timeout', 'the call that the message came with has ended')
      holders += 1
      return work().finally(leave)
    },
    [Symbol.asyncDispose]: leave,
  }
}

/** Of one message, while it has a name. */
export const spoolPath = (directory: string): string => join(directory, `spool-${randomBytes(12).toString('hex')}`)
const spoolName = /^spool-[0-9a-f]{24}$/

/** Removes the names of files that a killed process left. Another process reads on what it has open. */
export function removeSpools(directory: string): void {
  for (const name of namesIn(directory)) if (spoolName.test(name)) rmSync(join(directory, name), { force: true })
}

/** None where it is no directory, or cannot be read: who needs it says so. */
function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

/** Takes in the whole source. Rejects with the source's own error, too. */
export async function spool(source: AsyncIterable<Buffer>, { directory, most }: SpoolOptions): Promise<Spooled> {
  await onDisk(() => makeDataDir(directory))
  const path = spoolPath(directory)
  const file = await onDisk(() => open(path, 'wx+', 0o600))
  try {
    // Another process that starts may have removed it already.
    await onDisk(() => rm(path, { force: true }))
    return await fill(file, source, most)
  } catch (error) {
    await file.close()
    throw error
  }
}

const [carriageReturn, lineFeed] = [0x0d, 0x0a]

/** Mail programs save messages with LF alone; mail servers want CRLF (RFC 5322 section 2.3), and some refuse LF. */
export async function* withCrlf(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let before = 0
  for await (const chunk of source) {
    const pieces: Buffer[] = []
    let from = 0
    for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, at + 1)) {
      if ((at === 0 ? before : chunk[at - 1]) === carriageReturn) continue
      pieces.push(chunk.subarray(from, at), Buffer.from('\r'))
      from = at
    }
    before = chunk.at(-1) ?? before
    yield pieces.length === 0 ? chunk : Buffer.concat([...pieces, chunk.subarray(from)])
  }
}
