/** An email account in words: why it is in its state and since when, what happens next, and what its folders lack. */
import type { Config } from '../config.ts'
import { AppError } from '../errors.ts'
import { folderName } from '../messages/names.ts'
import { noActor } from '../observe/metrics.ts'
import type { ActorView } from '../observe/steps.ts'
import type { AccountRecord, FolderRecord } from '../store/records.ts'
import { conditionOf } from '../store/rows.ts'
import { retryAt } from './sync.ts'
import { refusedIn } from './write.ts'
import type { FolderLooks } from './types.ts'

/** Adds a full stop, unless the words end with one, as messages of mail servers do. */
export const sentence = (words: string): string => (/[.!?]$/.test(words) ? words : `${words}.`)

/** 2026-11-22 14:30:00 UTC. `at`: milliseconds since 1970. */
export function utc(at: number): string {
  return `${new Date(at).toISOString().replace('T', ' ').slice(0, 19)} UTC`
}

const states: Readonly<Record<string, string>> = {
  [noActor]: 'It has no actor: the service is starting or ending.',
  dead: 'Its actor ended by a fault of the service and is started again.',
  paused: 'An operator has paused it.',
  queued: 'It waits for its turn to log in at the mail server.',
  connecting: 'It is logging in at the mail server.',
  syncing: 'It is reading its mailbox.',
  watching: 'It is connected and hears of new mail.',
}

interface Sources {
  readonly accounts: {
    view(accountId: string): ActorView | null
    looks(accountId: string): FolderLooks | null
    readonly hosts: { pace(host: string): number | null }
  }
}

export function explainAccount({ accounts }: Sources, account: AccountRecord) {
  const view = accounts.view(account.id)
  const state = view?.state ?? noActor
  const lastError = (view ?? account.resume).lastError
  const attempt = view?.attempt ?? account.resume.attempt
  const failed = lastError === null ? [] : [failureOf(account, lastError, attempt)]
  const held = account.status === 'DISABLED' ? ['The account is DISABLED.'] : []
  const own = states[state]
  return {
    ...{ state, failure: lastError?.class ?? null },
    why: [...(own === undefined ? [] : [own]), ...held, ...failed].join(' ') || 'Nothing is known yet.',
    since: conditionOf(account).since,
    next: nextOf(view, state, accounts.hosts.pace(account.server.toLowerCase())),
  }
}

function failureOf(
  { server }: AccountRecord,
  { class: failure, message, at }: NonNullable<ActorView['lastError']>,
  attempt: number,
): string {
  const times = attempt > 1 ? `, for the ${ordinal(attempt)} time in a row` : ''
  return sentence(`The last failure at ${server} was at ${utc(at)} (${failure})${times}: ${message}`)
}

/** `pace`: of its host, as an operator has set it. */
function nextOf(view: ActorView | null, state: string, pace: number | null): string {
  if (view?.next) return `It ${view.next.what} at ${utc(view.next.at)}.`
  if (state === 'watching') return 'It stays connected.'
  if (state === 'queued' && pace === 0)
    return 'Nothing, until its host is freed: an operator has stopped the logins to it.'
  if (state === 'queued' && pace !== null)
    return `It logs in when its turn comes: an operator has slowed its host down to ${pace} logins a minute.`
  if (state === 'queued')
    return 'It logs in when its turn comes: so many log in at a time, and a host has so many logins a minute.'
  if (state === 'paused') return 'Nothing, until it is resumed.'
  return 'Nothing by itself.'
}

function ordinal(number: number): string {
  const teen = number % 100 > 10 && number % 100 < 14
  const ending = teen ? undefined : (['th', 'st', 'nd', 'rd'] as const)[number % 10]
  return `${number}${ending ?? 'th'}`
}

/** `conflict` while it is paused, throttled or dead: it is not connected at once. */
export function checkReconnect({ id, paused }: AccountRecord, view: ActorView | null): void {
  if (paused) throw new AppError('conflict', `email account ${id} is paused: resume it first`)
  // A throttled account keeps to the time of its mail server, a dead actor to that of its next start.
  const state = view !== null && hasThrottledLogin(view) ? 'throttled' : view?.state
  if (state === 'throttled' || state === 'dead')
    throw new AppError('conflict', `email account ${id} is ${state}. ${nextOf(view, state, null)}`)
}

/** Beside the open session: a new one would have to wait as long, and the open one would be gone. */
function hasThrottledLogin({ tags, lastError, next }: ActorView): boolean {
  return tags.includes('held') && lastError?.class === 'throttled' && (next?.at ?? 0) > Date.now()
}

/** A message that the mail server does not give, in the words that an operator reads. */
export interface QuarantinedMessage {
  readonly folder: string
  readonly uid: number
  readonly reason: string
  /** ms since 1970, in the past when it is due: it is tried when its folder is read next. */
  readonly nextTryAt: number
}

const mostQuarantined = 200

/** The messages that wait to be asked for again, in the order of their tries; at most the first 200. */
export function quarantineOf(config: Config, folders: readonly FolderRecord[]): QuarantinedMessage[] {
  const all = folders.flatMap((folder) => {
    const { cursor } = folder
    if (cursor === null) return []
    return refusedIn(cursor).map((uid, place) => ({
      folder: folderName(folder),
      uid,
      reason: cursor.refusals?.[uid] ?? '',
      nextTryAt: retryAt(config, cursor, place),
    }))
  })
  return all.sort((one, other) => one.nextTryAt - other.nextTryAt).slice(0, mostQuarantined)
}

const mostFolders = 20

/** Of a mail that is not in the index: what may keep it from being there. */
export function explainAbsence(sources: Sources, account: AccountRecord, folders: readonly FolderRecord[]): string[] {
  const { why, next } = explainAccount(sources, account)
  const { accounts } = sources
  const looks = accounts.looks(account.id)
  const since = accounts.view(account.id)?.since
  const watched = looks === null || since === undefined ? [] : [`INBOX is caught up, and watched since ${utc(since)}.`]
  const first =
    account.resume.initialSyncAt === null ? ['Its first sync is not complete: older mail is still read.'] : []
  const ofFolders = folders
    .filter(({ selectable }) => selectable)
    .flatMap((folder) => absenceFrom(folder, looks !== null))
  return [`${why} ${next}`, ...first, ...watched, ...lookWords(looks), ...ofFolders.slice(0, mostFolders)]
}

function lookWords(looks: FolderLooks | null): string[] {
  if (looks === null) return []
  const { until, nextAt } = looks
  const known = until > 0 && Number.isFinite(until)
  return [
    known
      ? `What came into the other folders before ${utc(until)} is in the index.`
      : 'The other folders have not all been looked at since it is watched.',
    ...(nextAt > 0 && Number.isFinite(nextAt) ? [`They are looked at again at ${utc(nextAt)} at the latest.`] : []),
  ]
}

function absenceFrom(folder: FolderRecord, isWatched: boolean): string[] {
  const name = folderName(folder)
  const { cursor, failures, parkedUntil } = folder
  const parked = parkedUntil !== null && parkedUntil > Date.now()
  const words = parked
    ? [`${name} was refused ${failures} times in a row: it is tried again at ${utc(parkedUntil)}.`]
    : []
  if (cursor === null) return [...words, `${name} was not opened yet.`]
  const { syncedAt, comparedAt, backfillBelow } = cursor
  const { length: refused } = refusedIn(cursor)
  return [
    ...words,
    ...(backfillBelow > 1 ? [`${name}: its older mail is still being read.`] : []),
    ...(refused > 0 ? [`${name}: the mail server did not give ${refused} messages; they are asked for again.`] : []),
    ...(name === 'INBOX' && isWatched
      ? []
      : [`${name} was read last at ${utc(syncedAt ?? comparedAt)}: what lay there then is in the index.`]),
  ]
}
