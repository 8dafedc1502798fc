/** A browser without a script, for the pages of the connect wizard: it keeps cookies and sends forms as they are. */

export interface Shown {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Path, or whole address of another site; null = no redirect. */
  readonly location: string | null
}

export type Visitor = ReturnType<typeof createVisitor>

export function createVisitor(base: string, headers: Readonly<Record<string, string>> = {}) {
  const cookies = new Map<string, string>()
  let last = ''
  /** Of the last form: a page in another tab has it still. */
  let known = ''
  const ask = async (path: string, init: RequestInit = {}): Promise<Shown> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(new URL(path, base), {
      redirect: 'manual',
      ...init,
      headers: { accept: 'text/html', ...headers, cookie, ...(init.headers as Record<string, string>) },
    })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const text = await answer.text()
    if (text !== '') last = text
    return { status: answer.status, headers: answer.headers, text, location: answer.headers.get('location') }
  }
  const csrf = (): string => (known = /name="csrf" value="([^"]+)"/.exec(last)?.[1] ?? known)
  return {
    cookies,
    ask,
    /** Follows redirects, and the refreshes of a page that waits. */
    async open(path: string): Promise<Shown> {
      let shown = await ask(path)
      for (let n = 0; n < 300; n += 1) {
        const wait = /http-equiv="refresh" content="2; url=([^"]+)"/.exec(shown.text)?.[1]
        const next = shown.location ?? wait
        if (next === undefined) return shown
        if (wait !== undefined) await new Promise((resolve) => setTimeout(resolve, 50))
        shown = await ask(next)
      }
      throw new Error(`${path} leads nowhere`)
    },
    /** The form of the page that was shown last. */
    send: (path: string, values: Readonly<Record<string, string>>): Promise<Shown> =>
      ask(path, { method: 'POST', body: new URLSearchParams({ csrf: csrf(), ...values }) }),
  }
}

/** Where a page without a script goes on to. */
export function onwardOf({ text }: Shown): string | null {
  const url = /http-equiv="refresh" content="1; url=([^"]+)"/.exec(text)?.[1]
  return url?.replaceAll('&amp;', '&') ?? null
}
