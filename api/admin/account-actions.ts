/** What operators do to an email account. Each answers its row afterwards; `not_found` for an unknown id. */
import type { z } from 'zod'
import { AppError, type Engine, folderName, notFound } from '../../engine/index.ts'
import { findAccount } from './accounts.ts'
import { presentAccount, type AccountRow } from './rows.ts'
import type { checkView } from './views.ts'

export type CheckOutcome = z.input<typeof checkView>

async function rowOf(engine: Engine, id: string): Promise<AccountRow> {
  return presentAccount(await findAccount(engine, id), engine.accounts.view(id))
}

/** Gives up the session and the back-off, and connects now. `conflict` while it is paused. */
export async function reconnectAccount(engine: Engine, id: string): Promise<AccountRow> {
  const account = await findAccount(engine, id)
  if (account.paused) throw new AppError('conflict', `email account ${id} is paused: resume it first`)
  engine.accounts.wake(id)
  return rowOf(engine, id)
}

export async function pauseAccount(engine: Engine, id: string): Promise<AccountRow> {
  await engine.accounts.pause(id)
  return rowOf(engine, id)
}

export async function resumeAccount(engine: Engine, id: string): Promise<AccountRow> {
  await engine.accounts.resume(id)
  return rowOf(engine, id)
}

/** A login beside the account's own, now. */
export async function checkAccount(engine: Engine, id: string): Promise<CheckOutcome> {
  const { failure } = await engine.accounts.checkNow(id)
  const account = await rowOf(engine, id)
  return { success: failure === null, failure: failure?.failure ?? null, message: failure?.message ?? null, account }
}

/** Compares a folder with the mail server from end to end. By the name that the API shows, or the server's own. */
export async function readFolderAnew(engine: Engine, id: string, name: string): Promise<AccountRow> {
  await findAccount(engine, id)
  const folders = await engine.store.folders.list(id)
  const folder = folders.find((one) => folderName(one) === name) ?? folders.find(({ path }) => path === name)
  if (folder === undefined) throw notFound('folder', name)
  await engine.accounts.readAnew(id, folder.path)
  return rowOf(engine, id)
}
