/** An operator's search over all developers by any id, name, address or URL; and the names that belong to ids. */
import { badParameter } from './errors.ts'
import { yieldToLoop } from './waits.ts'
import type { RequeueQuery, Store } from './store/port.ts'
import type {
  AccountRecord,
  DeveloperRecord,
  MessageRecord,
  OutboxState,
  UserRecord,
  WebhookRecord,
} from './store/records.ts'
import { foldCase } from './store/rows.ts'
import type { Webhooks } from './webhooks/index.ts'
import { bareReference } from './webhooks/match.ts'

export const foundKinds = ['account', 'user', 'developer', 'webhook', 'callback', 'message'] as const

export interface Found {
  readonly kind: (typeof foundKinds)[number]
  readonly id: string
  readonly name: string
  readonly detail: string
  /** The text names this record itself; otherwise the record only contains the text. */
  readonly exact: boolean
  /** Of a message and of a callback: the email account that it is of. */
  readonly accountId: string | null
}

interface Sources {
  readonly store: Store
  readonly webhooks: Pick<Webhooks, 'all'>
}

/** Of each kind; what is meant comes first. */
const mostFound = 20
/** Of those that are like it, which are looked at for the one that is meant. */
const mostLike = 200
const mostWords = 5

export interface FoundOfKind {
  readonly kind: Found['kind']
  readonly found: readonly Found[]
  /** Others of this kind that match, of those that were looked at. */
  readonly more: number
}

/** Kinds of which something is found, in their order. */
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

/** The text itself, and the ids of what it names. */
export async function idsMeant(sources: Sources, asked: string): Promise<readonly string[]> {
  const found = await recordsLike(sources, asked)
  return [asked, ...found.filter(({ exact }) => exact).map(({ id }) => id)]
}

/** All but messages. */
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
    // The user of an account is found by the account's address already.
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

const developersAtOnce = 500

async function developersLike({ developers }: Store, text: string): Promise<Found[]> {
  const found: Found[] = []
  for (let offset = 0; ; offset += developersAtOnce) {
    const page = await developers.list({ limit: developersAtOnce, offset })
    for (const developer of page) {
      const { id, apiKey } = developer
      const name = nameOfDeveloper(developer)
      const exact = [id, apiKey].includes(text) || foldCase(name) === foldCase(text)
      const like = exact || foldCase(name).includes(foldCase(text))
      if (like) found.push(one('developer', { id, name, detail: apiKey, exact }))
    }
    if (page.length < developersAtOnce) return found
    await yieldToLoop()
  }
}

async function webhooksLike({ store, webhooks }: Sources, text: string): Promise<Found[]> {
  const like = (await webhooks.all()).filter(({ id, callbackUrl }) => id === text || callbackUrl.includes(text))
  const meant = like.map((webhook) => ({ webhook, exact: [webhook.id, webhook.callbackUrl].includes(text) }))
  const some = mostExact(meant, mostLike)
  const name = await namesOf(store, { users: some.map(({ webhook }) => webhook.userId) })
  return some.map(({ webhook, exact }) => {
    const { id, callbackUrl, active } = webhook
    return one('webhook', {
      id,
      name: callbackUrl,
      detail: ownerOf(webhook, name) + (active ? '' : ', inactive'),
      exact,
    })
  })
}

/** Whose webhook it is: those of many users have one URL. */
export function ownerOf({ userId }: Pick<WebhookRecord, 'userId'>, name: (id: string) => string | null): string {
  return userId === null ? 'application-wide' : (name(userId) ?? userId)
}

function callbackFound({
  id,
  kind,
  event,
  state,
  accountId,
}: NonNullable<Awaited<ReturnType<Store['outbox']['get']>>>) {
  return one('callback', { id, name: event ?? kind, detail: state, exact: true }, accountId)
}

/** By our id or Message-ID, in all accounts. */
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

/** Names of developers and tokens, names or addresses of users, addresses of accounts, by id; null = it is gone. */
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

/** The messages of one account that are meant by an id or a Message-ID, or else by a part of the subject. */
export async function messagesMeant({ messages }: Store, accountId: string, asked: string, limit: number) {
  const named = await messages.findAll(accountId, bareReference(asked), limit)
  return named.length > 0 ? named : messages.list(accountId, { subject: asked.trim() }, { limit, offset: 0 })
}

export interface CallbackFilter {
  readonly developer?: string | undefined
  /** A whole id, or part of the address. */
  readonly account?: string | undefined
  /** A whole id, or part of the URL. */
  readonly webhook?: string | undefined
  /** Id of a callback or message, Message-ID, or part of the subject. */
  readonly text?: string | undefined
  readonly state?: OutboxState | undefined
  readonly from: number
  readonly until: number
}

/** Accounts or webhooks that one filter names: so many ids are half a megabyte of a query. */
const mostNamed = 20_000

/** `bad_request` when too many accounts or webhooks are meant. */
export async function callbacksLike({ store, webhooks }: Sources, filter: CallbackFilter): Promise<RequeueQuery> {
  const { developer, account, webhook, text, state, from, until } = filter
  const few = (name: string, those: readonly { readonly id: string }[]): readonly string[] => {
    if (those.length <= mostNamed) return those.map(({ id }) => id)
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
    ...{ createdFrom: from, createdUntil: until },
  }
  return text === undefined ? query : { ...query, ...(await callbacksNamed(store, query, text.trim())) }
}

/** Of callbacks that a subject is looked for in: the newest that match the other filters. */
const mostLooked = 2000
const lookedAtOnce = 200

async function callbacksNamed(store: Store, query: RequeueQuery, text: string): Promise<RequeueQuery> {
  if ((await store.outbox.get(text)) !== null) return { ids: [text] }
  const named = await messagesNamed(store, text)
  if (named.length > 0) return { messageId: named.map(({ id }) => id) }
  const messageId = new Set<string>()
  for (let offset = 0; offset < mostLooked; offset += lookedAtOnce) {
    const rows = await store.outbox.list(query, { limit: lookedAtOnce, offset })
    const ids = rows.flatMap((row) => row.messageId ?? [])
    for (const { id, subject } of await store.messages.several(ids))
      if (foldCase(subject).includes(foldCase(text))) messageId.add(id)
    if (rows.length < lookedAtOnce) break
    await yieldToLoop()
  }
  return { messageId: [...messageId] }
}
