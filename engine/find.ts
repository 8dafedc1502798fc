/** Search for operators over all developers by id, name, address or URL, and the names of ids. */
import { badParameter } from './errors.ts'
import { pagesOf } from './store/keyed.ts'
import { yieldToLoop } from './scheduling.ts'
import type { RequeueQuery, Store } from './store/port.ts'
import type { AccountRecord, DeveloperRecord, MessageRecord, OutboxRecord } from './store/records.ts'
import type { OutboxState, UserRecord, WebhookRecord } from './store/records.ts'
import { foldCase } from './store/rows.ts'
import type { Webhooks } from './webhooks/index.ts'
import { bareReference } from './webhooks/match.ts'

export const foundKinds = ['account', 'user', 'developer', 'webhook', 'callback', 'message'] as const

export interface Found {
  readonly kind: (typeof foundKinds)[number]
  readonly id: string
  readonly name: string
  readonly detail: string
  /** The text is the record's id, name, address or URL; otherwise the record only contains the text. */
  readonly exact: boolean
  /** The email account of a message or a callback. */
  readonly accountId: string | null
}

interface Sources {
  readonly store: Store
  readonly webhooks: Pick<Webhooks, 'all'>
}

/** Results of one kind. */
const mostFound = 20
/** Records of one kind that are searched for an exact one. */
const mostLike = 200
const mostWords = 5

export interface FoundOfKind {
  readonly kind: Found['kind']
  readonly found: readonly Found[]
  /** Further matches of this kind among the searched records. */
  readonly more: number
}

/** The results of each kind with results, exact ones first. */
export async function find(sources: Sources, asked: string): Promise<readonly FoundOfKind[]> {
  const text = asked.trim()
  const found = await recordsLike(sources, text)
  const messages = found.some(({ exact }) => exact) ? [] : await messagesNamed(sources.store, text)
  return foundKinds.flatMap((kind) => {
    const all = [...found, ...messages].filter((each) => each.kind === kind)
    const more = Math.max(0, all.length - mostFound)
    return all.length === 0 ? [] : [{ kind, found: mostExact(all, mostFound), more }]
  })
}

/** The text itself, and the ids of the records that it names exactly. */
export async function idsMeant(sources: Sources, asked: string): Promise<readonly string[]> {
  const found = await recordsLike(sources, asked)
  return [asked, ...found.filter(({ exact }) => exact).map(({ id }) => id)]
}

/** Results of all kinds but `message`. */
async function recordsLike({ store, webhooks }: Sources, text: string): Promise<readonly Found[]> {
  const [accounts, users, developers, hooks, callback] = await Promise.all([
    accountsLike(store, text),
    usersLike(store, text),
    developersLike(store, text),
    webhooksLike({ store, webhooks }, text),
    store.outbox.get(text),
  ])
  const ofAccounts = new Set(accounts.filter(({ found: { exact } }) => exact).map(({ userId }) => userId))
  return [
    ...accounts.map((account) => account.found),
    // Not the user of an exact account: the account's address has found it.
    ...users.filter(({ id, exact }) => id === text || !exact || !ofAccounts.has(id)),
    ...developers,
    ...hooks,
    ...(callback === null ? [] : [callbackFound(callback)]),
  ]
}

function mostExact<T extends Pick<Found, 'exact'>>(all: readonly T[], most: number): T[] {
  return all.toSorted((left, right) => Number(right.exact) - Number(left.exact)).slice(0, most)
}

function one(kind: Found['kind'], of: Omit<Found, 'kind' | 'accountId'>, accountId: string | null = null): Found {
  return { kind, accountId, ...of }
}

type AccountFound = { readonly found: Found } & Pick<AccountRecord, 'userId'>

async function accountsLike({ accounts }: Store, text: string): Promise<AccountFound[]> {
  const places = await accounts.places({ text }, mostLike)
  const known = await accounts.several(places.map(({ id }) => id))
  return known.map(({ id, email, label, server, userId }) => {
    const exact = [id, label].includes(text) || foldCase(email) === foldCase(text)
    return { found: one('account', { id, name: email, detail: server, exact }), userId }
  })
}

async function usersLike({ users }: Store, text: string): Promise<Found[]> {
  const words = text.split(/\s+/).slice(0, mostWords)
  const [byId, alike] = await Promise.all([users.several([text]), users.search(words, mostLike)])
  return [...byId, ...alike].map((user) => {
    const { id, emailAddresses } = user
    const exact = id === text || emailAddresses.map(foldCase).includes(foldCase(text))
    return one('user', { id, name: nameOfUser(user), detail: emailAddresses.join(', '), exact })
  })
}

async function developersLike(store: Store, text: string): Promise<Found[]> {
  const found: Found[] = []
  for await (const page of pagesOf(store.developers.page)) {
    for (const developer of page) {
      const { id, apiKey } = developer
      const name = nameOfDeveloper(developer)
      const exact = [id, apiKey].includes(text) || foldCase(name) === foldCase(text)
      const like = exact || foldCase(name).includes(foldCase(text))
      if (like) found.push(one('developer', { id, name, detail: apiKey, exact }))
    }
    await yieldToLoop()
  }
  return found
}

async function webhooksLike({ store, webhooks }: Sources, text: string): Promise<Found[]> {
  const like = (await webhooks.all()).filter(({ id, callbackUrl }) => id === text || callbackUrl.includes(text))
  const meant = like.map((webhook) => ({ webhook, exact: [webhook.id, webhook.callbackUrl].includes(text) }))
  const some = mostExact(meant, mostLike)
  const name = await namesOf(store, { users: some.map(({ webhook }) => webhook.userId) })
  return some.map(({ webhook, exact }) => {
    const { id, callbackUrl, active } = webhook
    const detail = ownerOf(webhook, name) + (active ? '' : ', inactive')
    return one('webhook', { id, name: callbackUrl, detail, exact })
  })
}

/** Name of the webhook's owner; webhooks of many users may have one URL. */
export function ownerOf({ userId }: Pick<WebhookRecord, 'userId'>, name: (id: string) => string | null): string {
  return userId === null ? 'application-wide' : (name(userId) ?? userId)
}

function callbackFound({ id, kind, event, state, accountId }: OutboxRecord): Found {
  return one('callback', { id, name: event ?? kind, detail: state, exact: true }, accountId)
}

/** Messages with this id or Message-ID, in all accounts. */
async function messagesNamed({ messages, accounts }: Store, text: string): Promise<Found[]> {
  const name = bareReference(text)
  if (/\s/.test(name)) return []
  const [byId, named] = await Promise.all([messages.several([name]), messages.everywhere(name, mostFound)])
  const all = [...byId, ...named]
  const owners = await accounts.several(all.map(({ accountId }) => accountId))
  const emails = new Map(owners.map(({ id, email }) => [id, email]))
  return all.map(({ id, subject, accountId }: MessageRecord) => {
    const detail = emails.get(accountId) ?? ''
    return one('message', { id, name: subject || '(no subject)', detail, exact: true }, accountId)
  })
}

export const nameOfDeveloper = ({ name, apiKey }: Pick<DeveloperRecord, 'name' | 'apiKey'>): string => name || apiKey

function nameOfUser({ firstName, lastName, emailAddresses, id }: UserRecord): string {
  return `${firstName} ${lastName}`.trim() || emailAddresses[0] || id
}

type Ids = readonly (string | null)[]

/** Looks up the name of a developer, token, user or account by its id; null = the record is gone. */
export async function namesOf(
  { developers, users, accounts, operators }: Pick<Store, 'developers' | 'users' | 'accounts' | 'operators'>,
  ids: { readonly developers?: Ids; readonly users?: Ids; readonly accounts?: Ids; readonly tokens?: Ids },
): Promise<(id: string | null) => string | null> {
  const read = <T>(of: Ids = [], several: (some: readonly string[]) => Promise<readonly T[]>) => {
    const some = [...new Set(of.filter((id) => id !== null))]
    return some.length === 0 ? [] : several(some)
  }
  const [makers, people, mailboxes, tokens] = await Promise.all([
    read(ids.developers, developers.several),
    read(ids.users, users.several),
    read(ids.accounts, accounts.several),
    read(ids.tokens, operators.list),
  ])
  const names = new Map([
    ...makers.map((each) => [each.id, nameOfDeveloper(each)] as const),
    ...people.map((each) => [each.id, nameOfUser(each)] as const),
    ...mailboxes.map((each) => [each.id, each.email] as const),
    ...tokens.map((each) => [each.id, each.name] as const),
  ])
  return (id) => (id === null ? null : (names.get(id) ?? null))
}

/** Messages of one account with this id or Message-ID, or else with this text in the subject. */
export async function messagesMeant({ messages }: Store, accountId: string, asked: string, limit: number) {
  const named = await messages.findAll(accountId, bareReference(asked), limit)
  return named.length > 0 ? named : messages.list(accountId, { subject: asked.trim() }, { limit, offset: 0 })
}

export interface CallbackFilter {
  readonly developer?: string | undefined
  /** An id, or part of the address. */
  readonly account?: string | undefined
  /** An id, or part of the URL. */
  readonly webhook?: string | undefined
  /** Id of a callback or message, Message-ID, or part of the subject. */
  readonly text?: string | undefined
  readonly state?: OutboxState | undefined
  readonly from: number
  readonly until: number
}

/** Accounts or webhooks of one filter: their ids make half a megabyte of a query. */
const mostNamed = 20_000

/** `bad_request` when too many accounts or webhooks match. */
export async function callbacksLike({ store, webhooks }: Sources, filter: CallbackFilter): Promise<RequeueQuery> {
  const { developer, account, webhook, text, state, from, until } = filter
  const few = (name: string, found: readonly { readonly id: string }[]): readonly string[] => {
    if (found.length <= mostNamed) return found.map(({ id }) => id)
    throw badParameter(name, `more than ${mostNamed} match: give more of it, or a developer`)
  }
  const accounts =
    account === undefined
      ? undefined
      : await store.accounts.places({ text: account, developerId: developer }, mostNamed + 1)
  const meant = ({ id, callbackUrl, developerId }: WebhookRecord): boolean =>
    (id === webhook || callbackUrl.includes(webhook ?? '')) && [developerId, undefined].includes(developer)
  const hooks = webhook === undefined ? undefined : (await webhooks.all()).filter(meant)
  const query: RequeueQuery = {
    ...(developer === undefined ? {} : { developerId: developer }),
    ...(accounts && { accountId: few('account', accounts) }),
    ...(hooks && { webhookId: few('webhook', hooks) }),
    ...(state === undefined ? {} : { states: [state] }),
    createdFrom: from,
    createdUntil: until,
  }
  return text === undefined ? query : { ...query, ...(await callbacksNamed(store, query, text.trim())) }
}

/** Callbacks whose subject is compared: the newest that match the other filters. */
const mostCompared = 2000
const comparedAtOnce = 200

async function callbacksNamed(store: Store, query: RequeueQuery, text: string): Promise<RequeueQuery> {
  if ((await store.outbox.get(text)) !== null) return { ids: [text] }
  const named = await messagesNamed(store, text)
  if (named.length > 0) return { messageId: named.map(({ id }) => id) }
  const messageId = new Set<string>()
  for (let offset = 0; offset < mostCompared; offset += comparedAtOnce) {
    const rows = await store.outbox.list(query, { limit: comparedAtOnce, offset })
    const ids = rows.flatMap((row) => row.messageId ?? [])
    for (const { id, subject } of await store.messages.several(ids))
      if (foldCase(subject).includes(foldCase(text))) messageId.add(id)
    if (rows.length < comparedAtOnce) break
    await yieldToLoop()
  }
  return { messageId: [...messageId] }
}
