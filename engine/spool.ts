/**
 * Spools a message to a file before its APPEND, whose literal begins with the size (RFC 9051 section 6.3.12); the sizes
 * that mail servers report are not reliable. The file is unlinked as soon as it is open, so it disappears with the
 * process. A process killed between the two leaves an empty file, which the next start removes.
 */
import { createHash, randomBytes } from 'node:crypto'
import { globSync, rmSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDataDir } from './data-dir.ts'
import { AppError } from './errors.ts'

/** The literal of an APPEND. */
export interface Literal {
  readonly size: number
  /** Contains a NUL, which only BINARY (RFC 3516) can send. */
  readonly hasNul: boolean
  read(): AsyncIterable<Buffer>
}

export interface Upload extends Literal {
  /** Keeps the file open until the work is done, even after the end of the call. Rejects when the file is closed. */
  holding<T>(work: () => Promise<T>): Promise<T>
}

/** An open spool file; disposing of it closes the file. */
export interface Spooled extends Upload, AsyncDisposable {
  /** SHA-256 of all bytes. */
  readonly digest: string
  /** The first bytes, at most 64 KiB. */
  readonly head: Buffer
}

interface SpoolOptions {
  /** MAILROOM_DATA_DIR */
  readonly directory: string
  /** Limit in bytes; a larger message rejects with `too_large`. */
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
    // appendFile writes the whole chunk; write may write less.
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

/** Path of a new spool file. */
export const spoolPath = (directory: string): string => join(directory, `spool-${randomBytes(12).toString('hex')}`)
const spoolName = /^spool-[0-9a-f]{24}$/

/** Unlinks the spool files in the directory. A process that has one open reads on. */
export function removeSpools(directory: string): void {
  // Finds nothing when the directory cannot be read; a later use of it reports that.
  for (const name of globSync('spool-*', { cwd: directory }))
    if (spoolName.test(name)) rmSync(join(directory, name), { force: true })
}

/** Writes the whole source to a spool file. Rejects also with an error of the source. */
export async function spool(source: AsyncIterable<Buffer>, { directory, most }: SpoolOptions): Promise<Spooled> {
  await onDisk(() => makeDataDir(directory))
  const path = spoolPath(directory)
  const file = await onDisk(() => open(path, 'wx+', 0o600))
  try {
    // Another process that starts may have unlinked the file already.
    await onDisk(() => rm(path, { force: true }))
    return await fill(file, source, most)
  } catch (error) {
    await file.close()
    throw error
  }
}

const [carriageReturn, lineFeed] = [0x0d, 0x0a]

/** Turns LF into CRLF (RFC 5322 section 2.3): mail programs save messages with LF, and some mail servers refuse it. */
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
