/**
 * Signed download links: whoever has one may read one attachment of one message until it expires, without any other
 * authentication. HMAC-SHA256 over all that the link names; the key is the developer's secret, set apart for this use by the
 * label, so a link is worth nothing once the secret has changed.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { AppError } from '../../../engine/index.ts'

export interface LinkTarget {
  readonly accountId: string
  readonly messageId: string
  /** Attachment index. */
  readonly attachment: number
}

const label = 'mailroom/download-link/v1'

/** Path and query of a link; `expiresAt` in milliseconds. */
export function signedPath(secret: string, target: LinkTarget, expiresAt: number): string {
  const expires = Math.ceil(expiresAt / 1000)
  const { accountId, messageId, attachment } = target
  return `/downloads/${accountId}/${messageId}/${attachment}?expires=${expires}&signature=${signature(secret, target, expires)}`
}

/** Throws `forbidden` for a wrong signature, and for a right one that has expired. */
export function checkLink(
  secret: string,
  target: LinkTarget,
  link: { readonly expires: number; readonly signature: string },
  now: number,
): void {
  const expected = Buffer.from(signature(secret, target, link.expires))
  const given = Buffer.from(link.signature)
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw invalidLink()
  if (link.expires * 1000 <= now)
    throw new AppError('forbidden', 'the download link has expired; ask for a new one with as_link=1')
}

export function invalidLink(): AppError {
  return new AppError('forbidden', 'the download link is not valid')
}

function signature(secret: string, { accountId, messageId, attachment }: LinkTarget, expires: number): string {
  const key = createHmac('sha256', secret).update(label).digest()
  return createHmac('sha256', key)
    .update(JSON.stringify([accountId, messageId, attachment, expires]))
    .digest('base64url')
}
