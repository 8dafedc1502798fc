/** resource_url of everything in the lite API: the client's base URL, and `::` percent-encoded. */
import type { AccountRecord, UserRecord } from '../../engine/index.ts'

const segment = encodeURIComponent

export interface LiteUrls {
  user(user: Pick<UserRecord, 'id'>): string
  account(account: Pick<AccountRecord, 'userId' | 'label'>): string
  /** `name` with '/' between its levels. */
  folder(account: Pick<AccountRecord, 'userId' | 'label'>, name: string): string
  /** Without a folder: the message wherever it lies. */
  message(account: Pick<AccountRecord, 'userId' | 'label'>, id: string, folder?: string): string
  webhook(webhook: { readonly userId: string | null; readonly id: string }): string
  token(token: string): string
  provider(key: string): string
  at(path: string): string
}

export function liteUrls(baseUrl: string): LiteUrls {
  const user = (id: string) => `${baseUrl}/lite/users/${id}`
  const account = (one: Pick<AccountRecord, 'userId' | 'label'>) =>
    `${user(one.userId)}/email_accounts/${segment(one.label)}`
  const folder = (one: Pick<AccountRecord, 'userId' | 'label'>, name: string) =>
    `${account(one)}/folders/${segment(name)}`
  return {
    user: ({ id }) => user(id),
    account,
    folder,
    message: (one, id, name) => `${name === undefined ? account(one) : folder(one, name)}/messages/${segment(id)}`,
    webhook: ({ userId, id }) =>
      userId === null ? `${baseUrl}/lite/webhooks/${id}` : `${user(userId)}/webhooks/${id}`,
    token: (token) => `${baseUrl}/lite/connect_tokens/${token}`,
    provider: (key) => `${baseUrl}/lite/oauth_providers/${segment(key)}`,
    at: (path) => `${baseUrl}${path}`,
  }
}

/** Seconds, as the API has times. */
export const seconds = (ms: number): number => Math.floor(ms / 1000)
