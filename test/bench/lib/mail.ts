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

const domain = 'bench.example'

/**
 * Mail as mailboxes hold it, 1 to 3 kB: every second one with an HTML part and a file, all with two Received fields, in
 * threads of four. `index` counts within the series.
 */
export function variedMail(series: string, index: number, to: string): string {
  const id = (of: number): string => `<${series}-${of}@${domain}>`
  const root = index - (index % 4)
  const thread = Array.from({ length: index - root }, (_, step) => id(root + step))
  const hop = (by: number): string =>
    `Received: from relay${by}.${domain} (relay${by}.${domain} [192.0.2.${by}])\r\n\tby mx.${domain} (Postfix) with ESMTPS id 4Q${index}X${by}\r\n\tfor <${to}>; Mon, 21 Nov 2022 07:0${by}:00 +0000 (UTC)`
  const head = [
    ...[1, 2].map(hop),
    `From: "Sender ${index % 50}" <sender${index % 50}@${domain}>`,
    `To: "Reader, the" <${to}>, Team <team@${domain}>`,
    `Cc: =?UTF-8?Q?J=C3=BCrgen?= <juergen@${domain}>`,
    `Subject: ${index === root ? '' : 'Re: '}Order =?UTF-8?B?TsK6IA==?= ${root} of series ${series}`,
    `Date: ${new Date(Date.UTC(2026, 0, 1) + index * 60_000).toUTCString().replace('GMT', '+0000')}`,
    `Message-ID: ${id(index)}`,
    ...(thread.length === 0 ? [] : [`In-Reply-To: ${thread.at(-1)}`, `References: ${thread.join('\r\n ')}`]),
    'MIME-Version: 1.0',
  ]
  const text = 'The quick brown fox jumps over the lazy dog, again and again.\r\n'.repeat(8)
  if (index % 2 === 0) return [...head, 'Content-Type: text/plain; charset=utf-8', '', text].join('\r\n')
  const part = (boundary: string, type: string, body: string): string =>
    `--${boundary}\r\nContent-Type: ${type}\r\n\r\n${body}\r\n`
  const texts = `${part('inner', 'text/plain; charset=utf-8', text)}${part('inner', 'text/html; charset=utf-8', `<p>${text}</p>`)}--inner--\r\n`
  const file = 'application/pdf; name="order.pdf"\r\nContent-Disposition: attachment; filename="order.pdf"'
  const body = `${part('outer', 'multipart/alternative; boundary=inner', texts)}${part('outer', file, text)}--outer--\r\n`
  return [...head, 'Content-Type: multipart/mixed; boundary=outer', '', body].join('\r\n')
}

/** The id of benchMail from a Message-ID with or without angle brackets; null for other mail. */
export function benchId(messageId: unknown): string | null {
  return /^<?([^@<>]+)@bench\.example>?$/.exec(String(messageId))?.[1] ?? null
}
