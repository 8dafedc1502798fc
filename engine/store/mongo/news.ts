/**
 * News between nodes, as numbered rows of `news` that a TTL index removes. The writer of a row also sends it to the
 * other nodes; a node that missed it reads the row at its next look. The next look also repeats failed writes and
 * failed listeners.
 */
import type { Collection } from 'mongodb'
import { toAppError } from '../../errors.ts'
import type { Logger } from '../../observe/log.ts'
import { createExclusiveByKey, withinTime } from '../../scheduling.ts'
import type { News, NumberedNews, SlotWork } from '../slots.ts'
import type { MongoContext } from './documents.ts'
import { count, type Member } from './members.ts'

interface NewsDoc extends NumberedNews {
  readonly by: string
  /** A date, for the TTL index. */
  readonly at: Date
}

export interface NewsDeps {
  readonly context: MongoContext
  readonly member: Member
  readonly log: Logger
}

type Listener = Pick<SlotWork, 'heard' | 'announceNews'>

/** Rows read again at each look: a row may be written after rows with higher numbers. */
const readAgain = 100
/** Longest wait for the listener of one row. */
const followMs = 2000

const newsId = (number: number): string => String(number).padStart(12, '0')

export class NewsRows {
  readonly #deps: NewsDeps
  readonly #rows: Collection<NewsDoc>
  /** Number of the last row read. */
  #last = 0
  /** By row id; each resolves when the listener is done. */
  readonly #read = new Map<string, Promise<void>>()
  readonly #inOrder = createExclusiveByKey()
  readonly #untold: News[] = []
  readonly #unfollowed: News[] = []

  constructor(deps: NewsDeps) {
    this.#deps = deps
    this.#rows = deps.context.collections.news as unknown as Collection<NewsDoc>
  }

  /** Rows up to this number are never read. */
  beginAt(number: number): void {
    this.#last = number
  }

  /** Never rejects. */
  async tell(news: News, listener: Listener | null): Promise<void> {
    this.#untold.push(news)
    try {
      const written = await this.write()
      if (written.length > 0) await listener?.announceNews(written)
    } catch (error) {
      this.#deps.log.warn({ ...news, err: toAppError(error) }, 'other nodes are told later')
    }
  }

  /** Writes the queued news; returns the written rows. */
  async write(): Promise<NumberedNews[]> {
    const { member, context } = this.#deps
    const told = this.#untold.splice(0)
    const written: NumberedNews[] = []
    try {
      while (told[0] !== undefined) {
        const { news } = await count(member.members, { news: 1 })
        const row = { _id: newsId(news), ...told[0] }
        await this.#rows.insertOne({ ...row, by: member.id, at: new Date(context.now()) })
        written.push(row)
        told.shift()
        // A look between the two commands has seen the number and no row: this one has it read again.
        await count(member.members, { news: 1 })
      }
      return written
    } finally {
      this.#untold.unshift(...told)
    }
  }

  /** Rows sent by another node. Resolves when the listener is done, also with rows that a look has read first. */
  async hear(rows: readonly NumberedNews[], listener: Listener | null): Promise<void> {
    for (const row of rows) await this.#followOnce(row, listener)
  }

  /** `last`: number of the newest row. */
  async read(last: number, listener: Listener | null): Promise<void> {
    await Promise.all(this.#unfollowed.splice(0).map((news) => this.#follow(news, listener)))
    if (last === this.#last) return
    const from = newsId(Math.max(0, this.#last - readAgain))
    const found = await this.#rows.find({ _id: { $gt: from }, by: { $ne: this.#deps.member.id } }).toArray()
    this.#last = last
    const numbers = new Set(found.map(({ _id }) => _id))
    for (const number of this.#read.keys()) if (!numbers.has(number)) this.#read.delete(number)
    await Promise.all(found.map((row) => this.#followOnce(row, listener)))
  }

  #followOnce({ _id, what, id }: NumberedNews, listener: Listener | null): Promise<void> {
    const following = this.#read.get(_id) ?? this.#follow({ what, id }, listener)
    this.#read.set(_id, following)
    return following
  }

  /** Never rejects. Slow work goes on after `followMs`, because the node's beat waits for this method. */
  async #follow(news: News, listener: Listener | null): Promise<void> {
    if (listener === null) return
    // In order per record, so that an older read of the record never wins over a newer one.
    const following = this.#inOrder(`${news.what} ${news.id}`, () => listener.heard(news))
    const noted = following.catch((error: unknown) => {
      this.#unfollowed.push(news)
      this.#deps.log.warn({ ...news, err: toAppError(error) }, 'news of another node not followed yet')
    })
    await withinTime(followMs, noted)
  }
}
