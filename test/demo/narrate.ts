/** What the demo says: a step in plain words, the curl line that does the same, what came of it. */

export function say(text = ''): void {
  process.stdout.write(`${text}\n`)
}

let count = 0

export function step(words: string): void {
  say()
  say(`${++count}. ${words}`)
}

export function sameAs(line: string): void {
  say(`   $ ${line}`)
}

export function result(text: string): void {
  for (const line of text.split('\n')) say(`     ${line}`)
}

/** For a shell: quoted only where it must be. */
export function shell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** `curl -u key:secret URL -d a=1 …` */
export function curl(credentials: string, url: string, fields: Readonly<Record<string, unknown>> = {}): string {
  const data = Object.entries(fields).map(([name, value]) => `-d ${shell(`${name}=${String(value)}`)}`)
  return ['curl', '-u', shell(credentials), shell(url), ...data].join(' ')
}
