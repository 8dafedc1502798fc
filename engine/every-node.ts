/**
 * Questions and news between nodes, as JSON over net/peers.ts. A question for state that only each node has (actors,
 * figures) goes to all nodes at once, this one included; the answer names the nodes that did not answer in time.
 */
import { text } from 'node:stream/consumers'
import manifest from '../package.json' with { type: 'json' }
import type { Accounts } from './accounts/index.ts'
import type { Config } from './config.ts'
import type { Peers } from './net/peers.ts'
import { type History, latencies, type Metrics } from './observe/metrics.ts'
import type { Store } from './store/port.ts'
import type { OutboxRecord } from './store/records.ts'
import type { NumberedNews } from './store/slots.ts'
import type { ToldUses, Uses } from './uses.ts'
import type { Webhooks } from './webhooks/index.ts'

interface Sources {
  readonly config: Pick<Config, 'MAILROOM_ROLE'>
  readonly store: Pick<Store, 'nodes'>
  readonly peers: Pick<Peers, 'call' | 'tell'>
  readonly uses: Pick<Uses, 'heard'>
  readonly metrics: Metrics
  readonly history: History
  readonly accounts: Pick<Accounts, 'facts' | 'hosts'>
  readonly webhooks: Pick<Webhooks, 'facts' | 'waits' | 'resending'>
}

/** A question is a POST to this path plus the question's name. */
export const questionPath = '/ask/'
/** Asks a node to look at the database now. */
export const lookPath = `${questionPath}look`
const answerMs = 2000

export interface Answers<T> {
  readonly answers: readonly { readonly address: string | null; readonly answer: T }[]
  /** Addresses of the nodes that did not answer. */
  readonly silent: string[]
}

type Ids = readonly string[] | undefined

/** The answers of this node alone. */
function createQuestions({ config, store: { nodes }, uses, metrics, history, accounts, webhooks }: Sources) {
  return {
    look: () => void nodes.look(),
    /** Resolves when the listeners of the news are done. */
    follow: (news: readonly NumberedNews[]) => nodes.hear(news),
    uses: (told: ToldUses) => uses.heard(told),
    /** Actors of these accounts, or of all; below of webhooks and bare URLs. */
    accounts: (ids: Ids) => accounts.facts(ids),
    webhooks: (ids: Ids) => webhooks.facts(ids),
    logins: (hosts: readonly string[]) => hosts.map((host) => accounts.hosts.logins(host)),
    /** The reason why each callback waits; null = another node owns it, or it is finished. */
    waits: (rows: readonly OutboxRecord[]) =>
      rows.map((row) => (nodes.owns(row.userId ?? row.developerId) ? webhooks.waits(row) : null)),
    resending: () => webhooks.resending(),
    metrics: () => metrics.registry.getMetricsAsJSON(),
    figures: async () => ({
      version: manifest.version,
      role: config.MAILROOM_ROLE,
      startedAt: performance.timeOrigin,
      accounts: accounts.facts().length,
      samples: history.samples(),
      latencies: await latencies(metrics),
    }),
  }
}

type Questions = ReturnType<typeof createQuestions>
type Answer<K extends keyof Questions> = Awaited<ReturnType<Questions[K]>>

type Telling = {
  [K in 'look' | 'follow' | 'uses']: readonly [name: K, ...input: Parameters<Questions[K]>]
}['look' | 'follow' | 'uses']

export type EveryNode = ReturnType<typeof createEveryNode>

export function createEveryNode(sources: Sources) {
  const { store, peers } = sources
  const questions = createQuestions(sources)
  const answerTo = async <K extends keyof Questions>(name: K, input: unknown): Promise<Answer<K>> =>
    (questions[name] as (given: unknown) => Answer<K> | Promise<Answer<K>>)(input)
  const askOne = async (address: string, name: string, input: unknown): Promise<unknown> => {
    const body = Buffer.from(JSON.stringify(input ?? null))
    const signal = AbortSignal.timeout(answerMs)
    const headers = ['content-type', 'application/json']
    const answer = await peers.call(address, { method: 'POST', path: questionPath + name, headers, body, signal })
    const said = await text(answer.body)
    if (answer.status !== 200) throw new Error(`the node at ${address} answers ${answer.status}`)
    return JSON.parse(said)
  }
  return {
    /** Tells the other nodes. Returns whether all have answered. Never rejects. */
    async tell(...[name, input]: Telling): Promise<boolean> {
      const body = input === undefined ? undefined : Buffer.from(JSON.stringify(input))
      const telling = store.nodes.others().map((address) => peers.tell(address, questionPath + name, body))
      return (await Promise.all(telling)).every((status) => status === 200)
    },
    /** Asks all nodes. This node's answer comes first; rejects when it fails. */
    async ask<K extends keyof Questions>(name: K, ...[input]: Parameters<Questions[K]>): Promise<Answers<Answer<K>>> {
      const others = store.nodes.others().map((address) =>
        askOne(address, name, input).then(
          (answer) => ({ address, answer: answer as Answer<K> }),
          () => address,
        ),
      )
      const answers = [{ address: store.nodes.address(), answer: await answerTo(name, input) }]
      const silent: string[] = []
      for (const one of await Promise.all(others)) {
        if (typeof one === 'string') silent.push(one)
        else answers.push(one)
      }
      return { answers, silent }
    },
    /** Answers another node's question as JSON; null = this version does not know the question. */
    async answer(path: string, input: Buffer | null): Promise<string | null> {
      const name = path.slice(questionPath.length)
      if (!Object.hasOwn(questions, name)) return null
      const given: unknown = input === null ? null : JSON.parse(input.toString())
      return JSON.stringify((await answerTo(name as keyof Questions, given ?? undefined)) ?? null)
    },
  }
}
