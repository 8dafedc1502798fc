/** How a test plays a server that misbehaves. Hooks may be exchanged while the server runs. */
import type { Folder, User } from './mailbox.ts'

type Sent = Buffer | string | null

/** What a hook sees of a command. */
export interface HookCall {
  readonly connection: number
  readonly user: User | null
  readonly folder: Folder | null
  readonly tag: string
  /** 'LOGIN', 'UID FETCH', 'SELECT' … */
  readonly name: string
  /** The whole command, literals shown by their size. */
  readonly text: string
}

/** What the server does instead of running the command; every part is optional. */
export interface HookAnswer {
  /** Lines sent first, CRLF is added. */
  readonly lines?: readonly (string | Buffer)[]
  /** 'NO [LIMIT] Too many' … sent with the command's tag. */
  readonly tagged?: string
  /** The command is run as usual after `lines` (and `tagged` is ignored). */
  readonly proceed?: boolean
  /** Waits before anything of this is done. */
  readonly delayMs?: number
  /** The socket is closed afterwards: 'end' politely, 'reset' at once. */
  readonly close?: 'end' | 'reset'
}

export interface Hooks {
  /** IDLE tells nothing: 'late' = what happened is told when it ends, 'never' = NOOP and other commands tell it. */
  readonly silentIdle?: 'late' | 'never'
  /**
   * What the index needs of mail that is gone is still in a cache, as with Dovecot, where someone has asked for it.
   * 'headers' = and for its size, but not for its structure.
   */
  readonly cached?: true | 'headers'
  /** New mail is told by SELECT (and STATUS) alone, not by NOOP nor with any other command. */
  readonly newsBySelect?: true
  /** This connection hears nothing of what others do in its open folder, with no command, until it is false again. */
  readonly deaf?: (connection: number) => boolean
  /** The greeting line; null = says nothing. */
  readonly greeting?: (connection: number) => string | null
  /** undefined = runs as usual; {} = the command is swallowed: no answer ever. */
  readonly command?: (call: HookCall) => HookAnswer | undefined
  /**
   * Every response that goes out, with its CRLF and literals: something else instead, or null = it is dropped. A
   * promise holds it, and all that the connection sends after it. `call` = the command under way, IDLE too; null =
   * none.
   */
  readonly send?: (response: Buffer, call: HookCall | null) => Sent | Promise<Sent>
}
