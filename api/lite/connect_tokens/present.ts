/** Connect tokens from records to the wire. */
import type { z } from 'zod'
import type { AccountRecord, ConnectTokenRecord, UserRecord } from '../../../engine/index.ts'
import type { Call } from '../../route.ts'
import { liteUrls, seconds } from '../urls.ts'
import { presentUser } from '../users/present.ts'
import type { tokenView } from './schema.ts'

type TokenView = z.input<typeof tokenView>

/** The first page of the wizard: public, good as long as the token. */
export function redirectUrl(call: Pick<Call, 'baseUrl' | 'developer'>, token: string): string {
  return `${call.baseUrl}/connect/${token}?developer_key=${encodeURIComponent(call.developer.apiKey)}`
}

/** Users and accounts of all tokens are read once each, however many tokens there are. */
export async function presentTokens(call: Call, tokens: readonly ConnectTokenRecord[]): Promise<TokenView[]> {
  const { store } = call.engine
  const ids = [...new Set(tokens.flatMap(({ userId }) => userId ?? []))]
  const users = await Promise.all(ids.map((id) => store.users.get(call.developer.id, id)))
  const accounts = Map.groupBy(await store.accounts.listByUsers(ids), ({ userId }) => userId)
  const byId = new Map(users.flatMap((user) => (user === null ? [] : [[user.id, user] as const])))
  return tokens.map((token) => {
    const user = token.userId === null ? undefined : byId.get(token.userId)
    return presentToken(call, token, user, user === undefined ? [] : (accounts.get(user.id) ?? []))
  })
}

function presentToken(
  call: Call,
  token: ConnectTokenRecord,
  user: UserRecord | undefined,
  accounts: readonly AccountRecord[],
): TokenView {
  const urls = liteUrls(call.baseUrl)
  const account = accounts.find(({ id }) => id === token.accountId)
  return {
    token: token.token,
    account_lite: true,
    created: seconds(token.createdAt),
    used: token.usedAt === null ? 0 : seconds(token.usedAt),
    expires: token.usedAt === null ? seconds(token.expiresAt) : false,
    callback_url: token.callbackUrl,
    ...optional('email', token.email ?? (token.usedAt === null ? null : account?.email)),
    first_name: token.firstName ?? '',
    last_name: token.lastName ?? '',
    ...optional('status_callback_url', token.statusCallbackUrl),
    browser_redirect_url: redirectUrl(call, token.token),
    ...optional('serverLabel', account?.label),
    ...(token.usedAt === null
      ? {}
      : { ...optional('email_account_id', account?.label), ...usedBy(user, accounts, urls) }),
    resource_url: urls.token(token.token),
  }
}

function usedBy(user: UserRecord | undefined, accounts: readonly AccountRecord[], urls: ReturnType<typeof liteUrls>) {
  return user === undefined ? {} : { user: presentUser(user, accounts, urls) }
}

function optional<K extends string>(key: K, value: string | null | undefined): Partial<Record<K, string>> {
  return value === null || value === undefined ? {} : ({ [key]: value } as Record<K, string>)
}
