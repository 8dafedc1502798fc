/** Small, ordinary messages, each with an id of its own. */

/** About 1 kB, the body included. `id` becomes the Message-ID's left side. */
export function benchMail(id: string, to: string, bodyBytes = 600): string {
  const line = 'The quick brown fox jumps over the lazy dog, again and again.\r\n'
  return [
    'From: Bench Sender <sender@bench.example>',
    `To: <${to}>`,
    `Subject: bench ${id}`,
    `Date: ${new Date().toUTCString()}`,
    `Message-ID: <${id}@bench.example>`,
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    '',
    line.repeat(Math.ceil(bodyBytes / line.length)),
  ].join('\r\n')
}

/** The id of benchMail from a Message-ID with or without angle brackets; null for other mail. */
export function benchId(messageId: unknown): string | null {
  return /^<?([^@<>]+)@bench\.example>?$/.exec(String(messageId))?.[1] ?? null
}
