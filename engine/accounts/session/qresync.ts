/**
 * QRESYNC (RFC 7162), which imapflow does not know: the server names the UIDs that have vanished from the open folder,
 * so that nobody compares the UIDs of the whole folder. The VANISHED modifier (§3.2.6) asks for them, in the UID FETCH
 * that asks for changed flags anyway; SELECT with QRESYNC would send those flags a second time. While QRESYNC is
 * enabled, each EXPUNGE comes as VANISHED.
 */
import { atom, type ImapResponse, type Wire } from './below.ts'
import { refusalOf } from './line.ts'
import { text } from './responses.ts'
import { countOf, uidsOfSet } from './uids.ts'

/** After more vanished UIDs, the UIDs of the folder are compared. */
const mostNamed = 10_000

/**
 * Must come before SELECT (RFC 7162 §3.1). QRESYNC enables CONDSTORE too. The answer is not read: iCloud names nothing
 * in it and has enabled the extension.
 */
export async function enableModseqs(wire: Wire): Promise<void> {
  if (!wire.capabilities.has('ENABLE')) return
  for (const extension of ['QRESYNC', 'CONDSTORE']) {
    if (!wire.capabilities.has(extension)) continue
    try {
      const { next } = await wire.exec('ENABLE', [atom(extension)])
      next()
      return
    } catch (error) {
      if (refusalOf(error) === null) throw error
    }
  }
}

interface Vanished {
  readonly set: string
  /** VANISHED (EARLIER): the response answers a command of ours, and lowers no count. */
  readonly isEarlier: boolean
}

/** null when the response names no UIDs. */
export function readVanished({ attributes = [] }: ImapResponse): Vanished | null {
  const [, earlier, set] =
    /^(\(EARLIER\) )?(\d{1,10}(?::\d{1,10})?(?:,\d{1,10}(?::\d{1,10})?)*)$/i.exec(text(attributes[0]) ?? '') ?? []
  return set === undefined ? null : { set, isEarlier: earlier !== undefined }
}

/** The UIDs that the server has named as vanished since the last `take`. */
export function createNamed() {
  let sets: string[] = []
  let count = 0
  const clear = (): void => {
    sets = []
    count = 0
  }
  return {
    add(set: string): void {
      count += countOf(set, null)
      if (count <= mostNamed) sets.push(set)
    },
    clear,
    /** Empty after too many UIDs. */
    take(): number[] {
      const all = count > mostNamed ? [] : sets.flatMap(uidsOfSet)
      clear()
      return all
    },
  }
}
