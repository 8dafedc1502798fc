/**
 * Collections, indexes, migrations, and the facts in `meta`. Collections and indexes are made at each start. errors.ts
 * knows duplicate keys by index name, so a changed index gets a new name and a migration. Migrations are idempotent,
 * since a start may die in the middle of one. A released migration is never edited; a new one is added.
 *
 * Sharding: `{accountId: 'hashed'}` on folders, messages, changes and outbox; the rest stays on one shard, where its
 * unique indexes hold.
 */
import type { Db, IndexDescription } from 'mongodb'
import type { Logger } from '../../observe/log.ts'
import { splitContact } from '../contacts.ts'
import { checkVersion, type FactName, type Facts } from '../facts.ts'
import { noCounts } from '../folder-counts.ts'
import { areWide, messageKeys, mostAddressKeys } from '../rows.ts'
import { sharedSlot, slotOf } from '../slots.ts'
import { contactDoc } from './contacts.ts'
import { beginning, insertMissing, openCollections } from './documents.ts'
import type { CollectionName, Collections, KeyDoc } from './documents.ts'
import { hasCode } from './errors.ts'
import { countRows } from './folders.ts'

/** An index over ascending fields. */
function index(name: string, fields: string, options: Omit<IndexDescription, 'key' | 'name'> = {}) {
  return { name, key: Object.fromEntries(fields.split(' ').map((field) => [field, 1] as const)), ...options }
}

/** The condition of a partial index: rows with a value in the field, which is `least` or more. */
function withField(field: string, least: string | number) {
  return { partialFilterExpression: { [field]: { $gte: least } } }
}

/** Callbacks with a URL: every kind but `message`. */
const notices = withField('url', '')

export const indexes: Readonly<Record<CollectionName, readonly IndexDescription[]>> = {
  developers: [index('developers_by_key', 'apiKey', { unique: true })],
  users: [
    index('users_of_developer', 'developerId createdAt _id'),
    index('users_by_address', 'developerId addressKeys createdAt _id'),
  ],
  accounts: [
    index('accounts_of_user_by_label', 'userId label', { unique: true }),
    index('accounts_of_user', 'userId createdAt _id'),
    index('accounts_by_address', 'developerId emailKey'),
    index('accounts_of_server', 'server developerId _id'),
    index('accounts_by_condition', 'resume.condition.is resume.condition.since'),
    index('accounts_by_status', 'developerId status userId'),
    index('accounts_of_slot', 'slot _id'),
  ],
  folders: [index('folders_of_account', 'accountId path')],
  messages: [
    index('messages_of_account', 'accountId live sentAt _id'),
    index('messages_by_key', 'accountId keys live sentAt _id'),
    index('messages_by_place', 'accountId placements.folderId placements.uid'),
    index('messages_of_message_id', 'accountId emailMessageId live sentAt _id'),
    index('messages_of_hosted_id', 'accountId hostedMessageId live sentAt _id', withField('hostedMessageId', '')),
    index('messages_gone', 'accountId goneAt _id', withField('goneAt', beginning)),
  ],
  changes: [
    index('changes_by_seq', 'accountId seq', { unique: true }),
    index('changes_of_message', 'accountId messageId seq'),
    index('changes_by_age', 'at _id'),
  ],
  webhooks: [
    index('webhooks_of_owner', 'developerId userId createdAt _id'),
    index('webhooks_of_user', 'userId createdAt _id'),
    index('webhooks_of_slot', 'slot _id'),
  ],
  scans: [index('scans_of_account', 'accountId'), index('scans_of_webhook', 'webhookId')],
  outbox: [
    index('outbox_pending', 'state channelId lane createdAt seq _id accountId', {
      partialFilterExpression: { state: 'pending' },
    }),
    index('outbox_of_developer', 'developerId createdAt _id'),
    index('outbox_of_webhook', 'webhookId state createdAt _id'),
    index('outbox_of_account', 'accountId createdAt _id'),
    index('outbox_by_age', 'createdAt _id state'),
    index('outbox_of_message', 'messageId createdAt _id'),
    index('outbox_of_user', 'userId'),
    // Few among very many rows of kind `message`.
    index('outbox_notices_of_developer', 'developerId kind createdAt _id', notices),
    index('outbox_notices_of_account', 'accountId kind createdAt _id', notices),
    index('outbox_notices_of_webhook', 'webhookId kind createdAt _id', notices),
    index('outbox_finished', 'finishedAt _id', withField('finishedAt', beginning)),
  ],
  contacts: [
    index('contacts_of_user', 'userId id accountId'),
    index('contacts_of_user_by_total', 'userId totalCount id'),
    index('contacts_of_user_by_direct', 'userId directCount id'),
    index('contacts_of_user_by_indirect', 'userId indirectCount id'),
  ],
  tokens: [
    index('tokens_of_developer', 'developerId createdAt _id'),
    index('tokens_of_user', 'developerId userId createdAt _id'),
    index('tokens_of_account', 'developerId accountId createdAt _id'),
    index('tokens_by_user', 'userId'),
    index('tokens_by_account', 'accountId'),
    index('tokens_expire', 'goesAt', { expireAfterSeconds: 0 }),
  ],
  operators: [],
  settings: [],
  providers: [index('providers_of_developer', 'developerId createdAt consumerKey')],
  nonces: [index('nonces_expire', 'expiresAt', { expireAfterSeconds: 0 })],
  calls: [
    index('calls_of_developer', 'developerId at _id'),
    index('calls_of_user', 'developerId userId at _id'),
    index('calls_by_age', 'at _id'),
  ],
  audit: [index('audit_by_age', 'at _id'), index('audit_of_target', 'target at _id')],
  removals: [],
  nodes: [],
  slots: [],
  news: [index('news_expire', 'at', { expireAfterSeconds: 600 })],
  meta: [],
}

const slowMs = 2000
const progressMs = 5000

/** Building an index may take minutes: `patient` is a database of a client without a deadline. */
export async function createIndexes(db: Db, patient: Db, log: Logger): Promise<void> {
  const started = performance.now()
  const found = await db.listCollections({}, { nameOnly: true }).toArray()
  const there = new Set(found.map(({ name }) => name))
  const names = Object.keys(indexes) as CollectionName[]
  for (const [position, name] of names.entries()) {
    if (!there.has(name)) await createCollection(db, name)
    if (indexes[name].length > 0) await createIndexesOf(name, `${position + 1}/${names.length}`, patient, log)
  }
  const ms = Math.round(performance.now() - started)
  const made = Object.values(indexes).flat().length
  log.info({ collections: names.length, indexes: made, ms }, 'collections and indexes ready')
}

async function createIndexesOf(name: CollectionName, step: string, patient: Db, log: Logger): Promise<void> {
  const begun = performance.now()
  const facts = () => {
    return { collection: name, indexes: indexes[name].length, step, ms: Math.round(performance.now() - begun) }
  }
  const progress = setInterval(() => log.info(facts(), 'indexes are being made'), progressMs)
  try {
    await patient.collection(name).createIndexes([...indexes[name]])
  } finally {
    clearInterval(progress)
  }
  if (performance.now() - begun > slowMs) log.info(facts(), 'indexes made')
}

const namespaceExists = new Set([48])

/** Another node may create the collection at the same time. */
async function createCollection(db: Db, name: string): Promise<void> {
  try {
    await db.createCollection(name)
  } catch (error) {
    if (!hasCode(error, namespaceExists)) throw error
  }
}

export interface Migration {
  readonly name: string
  up(db: Db): Promise<void>
}

/** The schema of commit 6e85fa0. */
const oldest = 3

/** Migration n leads from version 3 + n to 4 + n. */
export const migrations: readonly Migration[] = [
  { name: 'counts of folders, and whether each is complete', up: addFolderFacts },
  { name: 'contacts by email account', up: splitContacts },
  { name: 'slots of accounts, webhooks and callbacks', up: addSlots },
  { name: 'folded keys of messages to thousands of people', up: foldKeys },
]

const rowsAtOnce = 200

/** Counts the placements of each folder without counts. */
async function addFolderFacts(db: Db): Promise<void> {
  const collections = openCollections(db)
  const { folders } = collections
  for (;;) {
    const uncounted = folders.find({ counts: { $exists: false } })
    const some = await uncounted.limit(rowsAtOnce).toArray()
    if (some.length === 0) return
    const accounts = new Set(some.map(({ accountId }) => accountId))
    const ids = some.map(({ _id }) => _id)
    const counted = await countRows({ collections }, [...accounts], ids)
    const updates = some.map(({ _id, accountId, cursor }) => {
      const completeAt = cursor !== null && cursor.backfillBelow <= 1 ? cursor.comparedAt : null
      const $set = { counts: counted.get(_id) ?? noCounts, completeAt }
      return { updateOne: { filter: { _id, accountId }, update: { $set } } }
    })
    await folders.bulkWrite(updates, { ordered: false })
  }
}

/** Contacts without `accountId` become one contact per email account. A repeat splits the remaining ones. */
async function splitContacts(db: Db): Promise<void> {
  const { contacts, accounts } = openCollections(db)
  for (let after = ''; ;) {
    const old = { _id: { $gt: after }, accountId: { $exists: false } }
    const docs = await contacts.find(old).sort({ _id: 1 }).limit(rowsAtOnce).toArray()
    const last = docs.at(-1)
    if (last === undefined) return dropIndexes(db, 'contacts', summedIndexes)
    const owners = await accounts
      .find({ userId: { $in: [...new Set(docs.map(({ userId }) => userId))] } }, { projection: { userId: 1 } })
      .sort({ createdAt: -1, _id: -1 })
      .toArray()
    const oldest = new Map(owners.map(({ _id, userId }) => [userId, _id]))
    const parts = docs.flatMap(({ _id, applied, ...contact }) =>
      splitContact({ ...contact, id: _id }, oldest.get(contact.userId) ?? null).map((part) => {
        const own = `${part.accountId} `
        return contactDoc(
          part,
          applied.filter((key) => key.startsWith(own)).map((key) => key.slice(own.length)),
        )
      }),
    )
    await insertMissing(contacts, parts)
    await contacts.deleteMany({ _id: { $in: docs.map(({ _id }) => _id) } })
    after = last._id
  }
}

const summedIndexes = ['contacts_by_total', 'contacts_by_direct', 'contacts_by_indirect', 'contacts_of_account']

/** Gives accounts, webhooks and callbacks the slot of their user, else of their developer. Keeps existing slots. */
async function addSlots(db: Db): Promise<void> {
  await db.collection('webhooks').updateMany({ ...withoutSlot, userId: null }, { $set: { slot: sharedSlot } })
  await addSlotsOf(db, 'users', ['accounts', 'webhooks', 'outbox'], (userId) => ({ userId }))
  await addSlotsOf(db, 'developers', ['outbox'], (developerId) => ({ developerId, userId: null }))
}

const withoutSlot = { slot: { $exists: false } }

async function addSlotsOf(
  db: Db,
  owners: CollectionName,
  collections: readonly CollectionName[],
  ownedBy: (id: string) => object,
): Promise<void> {
  for (let after = ''; ;) {
    const behind = db.collection<KeyDoc>(owners).find({ _id: { $gt: after } }, { projection: { _id: 1 } })
    const ids = (await behind.sort({ _id: 1 }).limit(rowsAtOnce).toArray()).map(({ _id }) => _id)
    if (ids.length === 0) return
    const updates = ids.map((id) => {
      return { updateMany: { filter: { ...withoutSlot, ...ownedBy(id) }, update: { $set: { slot: slotOf(id) } } } }
    })
    for (const name of collections) await db.collection(name).bulkWrite(updates, { ordered: false })
    after = ids.at(-1) ?? ''
  }
}

const indexMissing = new Set([26, 27])

async function dropIndexes(db: Db, collection: CollectionName, names: readonly string[]): Promise<void> {
  for (const name of names) {
    await db
      .collection(collection)
      .dropIndex(name)
      .catch((error: unknown) => {
        if (!hasCode(error, indexMissing)) throw error
      })
  }
}

/** Brings the schema up to date. AppError `bad_request`, one line, when this Mailroom does not know it. */
export async function migrate(
  db: Db,
  { collections }: { readonly collections: Collections },
  log: Logger,
  steps: readonly Migration[] = migrations,
): Promise<void> {
  const newest = oldest + steps.length
  const stored = await collections.meta.findOne({ _id: 'schema' })
  const version = typeof stored?.version === 'number' ? stored.version : newest
  checkVersion('the database', version, { oldest, newest })
  for (const [offset, step] of steps.slice(version - oldest).entries()) {
    const started = performance.now()
    await step.up(db)
    await setVersion(collections, version + offset + 1)
    const ms = Math.round(performance.now() - started)
    log.info({ step: step.name, version: version + offset + 1, ms }, 'database migrated')
  }
  if (!stored) await setVersion(collections, newest)
}

/** Never lowers the version: another node may have raised it further. */
async function setVersion({ meta }: Collections, version: number): Promise<void> {
  await meta.updateOne({ _id: 'schema' }, { $max: { version } }, { upsert: true })
}

/** Whether the schema is up to date, or newer. */
export async function isCurrent({ meta }: Collections): Promise<boolean> {
  const stored = await meta.findOne({ _id: 'schema' })
  return typeof stored?.version === 'number' && stored.version >= oldest + migrations.length
}

/** Whether a Mailroom has ever used the database. Writes nothing. */
export async function isStore({ meta }: Collections): Promise<boolean> {
  return (await meta.findOne({ _id: 'schema' })) !== null
}

/** The field of each fact's document. */
const factFields: Readonly<Record<FactName, string>> = { identity: 'id', served: 'id', copy: 'note', slots: 'count' }

export function openFacts({ meta }: Pick<Collections, 'meta'>): Facts {
  return {
    read: async (name) => {
      const value = (await meta.findOne({ _id: name }))?.[factFields[name]]
      return typeof value === 'string' ? value : null
    },
    save: async (name, value) => {
      if (value === null) await meta.deleteOne({ _id: name })
      else await meta.updateOne({ _id: name }, { $set: { [factFields[name]]: value } }, { upsert: true })
    },
  }
}

/** Writes one document. Rejects also when the database has no space for `room` more bytes. */
export async function probeWrite({ meta }: Collections, room: number, now: () => number): Promise<void> {
  // A bulk has a deadline even when the database reads no bytes (withDeadline in documents.ts).
  const save = (padding: string) =>
    meta.bulkWrite([
      { updateOne: { filter: { _id: 'probe' }, update: { $set: { at: now(), padding } }, upsert: true } },
    ])
  if (room > 0) await save('.'.repeat(room))
  await save('')
}

/** Gives each live message with `mostAddressKeys` or more the folded ones. */
async function foldKeys(db: Db): Promise<void> {
  const { messages } = openCollections(db)
  const wide = { live: true, [`keys.${mostAddressKeys}`]: { $exists: true } }
  for await (const doc of messages.find(wide, { batchSize: 1 })) {
    // A start that died has done some messages.
    if (areWide(doc.keys)) continue
    const keys = messageKeys(doc)
    // A command of the killed start may still arrive: the version lets one of the two through.
    const { _id, accountId, v } = doc
    await messages.updateOne({ _id, accountId, v }, { $set: { keys }, $inc: { v: 1 } })
  }
}
