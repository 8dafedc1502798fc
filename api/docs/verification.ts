/** How a receiver checks a callback, as a module that runs as it is: the tests run it on callbacks that were really sent. */
export const verification = `import { createHmac, timingSafeEqual } from 'node:crypto'

function same(left, right) {
  const [a, b] = [Buffer.from(left), Buffer.from(right)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** timestamp, token and signature of the parsed body. */
export function bodyIsSigned({ timestamp, token, signature }, apiSecret) {
  const digest = createHmac('sha256', apiSecret).update(\`\${timestamp}\${token}\`).digest('hex')
  return same(digest, String(signature))
}

/** Standard Webhooks. secret: 'whsec_…' of the webhook, or your API secret. */
export function headersAreSigned(headers, rawBody, secret) {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : secret
  const signed = \`\${headers['webhook-id']}.\${headers['webhook-timestamp']}.\${rawBody}\`
  const digest = createHmac('sha256', key).update(signed).digest('base64')
  return String(headers['webhook-signature']).split(' ').some((one) => same(one, \`v1,\${digest}\`))
}`
