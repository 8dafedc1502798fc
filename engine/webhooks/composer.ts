/** What a row's callback says and which keys sign it: looks up webhook, account, message and developer, each remembered for a while. */
import { LRUCache } from 'lru-cache'
import type { Sealer } from '../secrets/seal.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord, OutboxRecord } from '../store/records.ts'
import { urlCallbackBody } from '../callbacks/body.ts'
import { folderNamer } from '../messages/names.ts'
import { type Composed, type PayloadDeps, composeMessage } from './payload.ts'
import { sampleCallback } from './sample.ts'
import { openSecrets, validSecrets } from './secrets.ts'
import type { SigningKeys } from './sign.ts'
import { type Targets, lookUpThread } from './targets.ts'

export interface Composer {
  compose(row: OutboxRecord): Promise<Composed>
  /** null = the developer is gone. */
  keysOf(row: Pick<OutboxRecord, 'developerId' | 'webhookId'>): Promise<SigningKeys | null>
  /** The user's accounts changed or went. */
  forget(userId: string): void
}

export interface ComposerDeps {
  readonly store: Pick<Store, 'accounts' | 'messages' | 'developers' | 'folders'>
  readonly sealer: Sealer
  readonly targets: Targets
  readonly payload: PayloadDeps
}

const rememberedMs = 30_000

/** What the callbacks of one account have in common. */
interface Owner {
  readonly account: AccountRecord
  readonly folderName: (path: string) => string
}

export function createComposer(deps: ComposerDeps): Composer {
  const owners = new LRUCache<string, Owner>({ max: 2000, ttl: rememberedMs })
  const secrets = new LRUCache<string, string>({ max: 1000, ttl: rememberedMs })

  async function ownerOf(id: string): Promise<Owner | null> {
    const known = owners.get(id)
    if (known !== undefined) return known
    const [account, folders] = await Promise.all([deps.store.accounts.get(id), deps.store.folders.list(id)])
    if (account === null) return null
    const owner = { account, folderName: folderNamer(folders) }
    owners.set(id, owner)
    return owner
  }

  async function apiSecretOf(developerId: string): Promise<string | null> {
    const known = secrets.get(developerId)
    if (known !== undefined) return known
    const developer = await deps.store.developers.get(developerId)
    if (developer === null) return null
    const secret = deps.sealer.open(developer.sealedSecret, developer.id)
    secrets.set(developerId, secret)
    return secret
  }

  return {
    async compose(row) {
      if (row.kind === 'message') return composeRow(deps, row, ownerOf)
      return row.kind === 'test' ? composeTest(deps, row) : composeUrl(row)
    },
    async keysOf({ developerId, webhookId }) {
      const apiSecret = await apiSecretOf(developerId)
      return apiSecret === null ? null : { apiSecret, webhookSecrets: webhookSecrets(deps, webhookId) }
    },
    forget(userId) {
      for (const [id, { account }] of owners.entries()) if (account.userId === userId) owners.delete(id)
    },
  }
}

function webhookSecrets({ targets, sealer, payload }: ComposerDeps, webhookId: string | null): string[] {
  const webhook = webhookId === null ? undefined : targets.get(webhookId)?.webhook
  if (webhook === undefined) return []
  return validSecrets(openSecrets(sealer, webhook.id, webhook.sealedSecrets), payload.now()).map((one) => one.secret)
}

function composeUrl(row: OutboxRecord): Composed {
  if (row.url === null || row.url === '') return { kind: 'skip', reason: 'no URL to call' }
  return { kind: 'send', url: row.url, body: urlCallbackBody(row), texts: null }
}

function composeTest({ targets, payload }: ComposerDeps, row: OutboxRecord): Composed {
  const webhook = row.webhookId === null ? undefined : targets.get(row.webhookId)?.webhook
  if (webhook === undefined) return { kind: 'skip', reason: 'the webhook was removed' }
  return { kind: 'send', url: webhook.callbackUrl, ...sampleCallback(webhook, payload) }
}

async function composeRow(
  deps: ComposerDeps,
  row: OutboxRecord,
  ownerOf: (id: string) => Promise<Owner | null>,
): Promise<Composed> {
  const target = row.webhookId === null ? null : deps.targets.get(row.webhookId)
  if (target === null) return { kind: 'skip', reason: 'the webhook was removed' }
  if (!target.webhook.active) return { kind: 'skip', reason: 'the webhook is paused' }
  const owner = await ownerOf(row.accountId ?? '')
  if (owner === null) return { kind: 'skip', reason: 'the email account was removed' }
  const { account } = owner
  const message = await deps.store.messages.get(account.id, row.messageId ?? '')
  if (message === null) return { kind: 'skip', reason: 'the message is no longer in the index' }
  const { webhook, matcher } = target
  const thread = () => lookUpThread(deps.store, target, message)
  return composeMessage(deps.payload, { ...owner, row, webhook, matcher, message, thread })
}
