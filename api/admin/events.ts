/** The steps and lines of one email account as server-sent events, for those who watch it. */
import { Readable } from 'node:stream'
import type { AccountNews, Engine } from '../../engine/index.ts'
import { eventStreamHeaders, StreamAnswer } from '../route.ts'

/** So that both ends notice when the other one has gone. */
const beatMs = 15_000
/** A client that takes nothing for so long that this many bytes wait is left. */
const mostWaiting = 262_144

/** `step` has a step of the account, `line` a line of its connections; without end. */
export function accountEvents({ accounts }: Engine, id: string, signal: AbortSignal): StreamAnswer {
  const events = new Readable({ read: () => undefined, highWaterMark: mostWaiting })
  const send = (text: string): void => {
    if (!events.destroyed && !events.push(text)) events.destroy()
  }
  const leave = accounts.listen(id, (news) => send(eventOf(news)))
  const beat = setInterval(() => send(':\n\n'), beatMs).unref()
  const end = (): void => void events.destroy()
  signal.addEventListener('abort', end, { once: true })
  events.once('close', () => {
    leave()
    clearInterval(beat)
    signal.removeEventListener('abort', end)
  })
  send(':\n\n')
  return new StreamAnswer(events, eventStreamHeaders)
}

function eventOf(news: AccountNews): string {
  const [name, data] = 'line' in news ? ['line', news.line] : ['step', { ...news.step, at: news.step.at / 1000 }]
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}
