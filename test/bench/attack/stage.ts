/** What an attack is given. */
import type { Client } from '../../support/service.ts'

export interface AttackOrder {
  readonly url: string
  /** Of a developer. */
  readonly key: string
  readonly secret: string
  readonly seconds: number
  /** Path of an email account of the developer with very many stored messages. */
  readonly large: string
  /** A real mail server, where the developer has mailboxes of its own. */
  readonly dovecot: { readonly host: string; readonly port: number; readonly password: string }
}

export interface Stage extends AttackOrder {
  readonly client: Client
  readonly stop: AbortSignal
  /** Does `work` again and again; an error is an answer, too. */
  readonly repeat: (name: string, everyMs: number, work: () => Promise<unknown>) => Promise<void>
}

export type Attack = (stage: Stage) => Promise<void>
