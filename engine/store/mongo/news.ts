/**
 * News between nodes, as numbered rows of `news` that go by themselves. News that cannot be written down, or followed,
 * now are at the next look.
 */
import type { Collection } from 'mongodb'
import { toAppError } from '../../errors.ts'
import type { Logger } from '../../observe/log.ts'
import type { News, SlotWork } from '../slots.ts'
import type { MongoContext } from './documents.ts'
import { count, type Member } from './members.ts'

interface NewsDoc extends News {
  readonly _id: string
  readonly by: string
  /** A date, for the TTL index. */
  readonly at: Date
}

interface Deps {
  readonly context: MongoContext
  readonly member: Member
  readonly log: Logger
}

type Listener = Pick<SlotWork, 'heard' | 'announceNews'>

/** News that were given a number before, and are written after others. */
const readAgain = 100

const newsId = (number: number): string => String(number).padStart(12, '0')

export class NewsRows {
  readonly #deps: Deps
  readonly #rows: Collection<NewsDoc>
  /** Number of the last news that were read. */
  #last = 0
  #read = new Set<string>()
  readonly #untold: News[] = []
  readonly #unfollowed: News[] = []

  constructor(deps: Deps) {
    this.#deps = deps
    this.#rows = deps.context.collections.news as unknown as Collection<NewsDoc>
  }

  /** Older news are not read. */
  beginAt(number: number): void {
    this.#last = number
  }

  /** Never rejects. */
  async tell(news: News, listener: Listener | null): Promise<void> {
    this.#untold.push(news)
    try {
      if (await this.write()) await listener?.announceNews()
    } catch (error) {
      this.#deps.log.warn({ ...news, err: toAppError(error) }, 'other nodes are told later')
    }
  }

  /** Writes down all that others have yet to be told. false: nothing. */
  async write(): Promise<boolean> {
    const { member, context } = this.#deps
    const told = this.#untold.splice(0)
    const isAny = told.length > 0
    try {
      while (told[0] !== undefined) {
        const { news } = await count(member.members, { news: 1 })
        await this.#rows.insertOne({ _id: newsId(news), ...told[0], by: member.id, at: new Date(context.now()) })
        told.shift()
      }
      return isAny
    } finally {
      this.#untold.unshift(...told)
    }
  }

  /** `last`: number of the newest ones. */
  async read(last: number, listener: Listener | null): Promise<void> {
    for (const news of this.#unfollowed.splice(0)) await this.#follow(news, listener)
    if (last === this.#last) return
    const from = newsId(Math.max(0, this.#last - readAgain))
    const found = await this.#rows.find({ _id: { $gt: from }, by: { $ne: this.#deps.member.id } }).toArray()
    this.#last = last
    const fresh = found.filter(({ _id }) => !this.#read.has(_id))
    this.#read = new Set(found.map(({ _id }) => _id))
    for (const { what, id } of fresh) await this.#follow({ what, id }, listener)
  }

  /** Never rejects. */
  async #follow(news: News, listener: Listener | null): Promise<void> {
    await listener?.heard(news).catch((error: unknown) => {
      this.#unfollowed.push(news)
      this.#deps.log.warn({ ...news, err: toAppError(error) }, 'news of another node not followed yet')
    })
  }
}
