/**
 * Probes the usual hosts of a domain's IMAP server: `imap.<domain>`, `mail.<domain>`, the domain itself and its mail
 * exchangers. A host is found when it sends an IMAP greeting and has a valid certificate for its name. The probe sends
 * no login.
 */
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type CheckedAddress, pinned, resolveGuarded } from '../net/address.ts'
import type { Lookup } from '../net/names.ts'
import type { Settings } from './providers.ts'

/** Resolves with the settings of the first host that is found, or []. Rejects after the time is over. */
export type HostProbe = (domain: string, exchanges: readonly string[]) => Promise<Settings[]>

interface ProbeOptions {
  /** true = private addresses are probed too (MAILROOM_ALLOW_PRIVATE). */
  readonly allowPrivate: boolean
  readonly lookup?: Lookup
  readonly ports?: { readonly tls: number; readonly startTls: number }
  /** A certificate authority in PEM that replaces Node's. */
  readonly ca?: string
  readonly timeoutMs?: number
}

const mostExchanges = 2
const longestLine = 1000

export function createHostProbe(options: ProbeOptions): HostProbe {
  const { timeoutMs = 5000 } = options
  return async (domain, exchanges) => {
    const ended = new AbortController()
    const late = AbortSignal.timeout(timeoutMs)
    const signal = AbortSignal.any([ended.signal, late])
    const hosts = new Set([`imap.${domain}`, `mail.${domain}`, domain, ...exchanges.slice(0, mostExchanges)])
    const probes = [...hosts].map((host) => probeHost(host, { ...options, timeoutMs }, signal).catch(() => null))
    try {
      for (const probe of probes) {
        const found = await probe
        if (found !== null) return [found]
      }
      late.throwIfAborted()
      return []
    } finally {
      ended.abort()
    }
  }
}

type HostOptions = ProbeOptions & { readonly timeoutMs: number }

async function probeHost(server: string, options: HostOptions, signal: AbortSignal): Promise<Settings | null> {
  const { ports = { tls: 993, startTls: 143 }, timeoutMs } = options
  const addresses = await resolveGuarded(server, { ...options, signal })
  // A firewall that drops packets to the first port must leave time for the second.
  const half = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs / 2)])
  const usual = { server, oauth: false, username: '%EMAILADDRESS%', documentation: [] }
  const secure = { ...usual, port: ports.tls, useSsl: true }
  if (await greets(secure, addresses, options, half).catch(() => false)) return secure
  const upgraded = { ...usual, port: ports.startTls, useSsl: false }
  return (await greets(upgraded, addresses, options, signal)) ? upgraded : null
}

async function greets(
  { server, port, useSsl }: Settings,
  addresses: readonly CheckedAddress[],
  { ca }: ProbeOptions,
  signal: AbortSignal,
): Promise<boolean> {
  signal.throwIfAborted()
  const tcp = connectTcp({ host: server, port, lookup: pinned(addresses), autoSelectFamily: true, signal })
  tcp.on('error', () => undefined)
  const secured = async (): Promise<Socket> => {
    const tls = connectTls({ socket: tcp, servername: server, rejectUnauthorized: true, ...(ca ? { ca } : {}) })
    tls.on('error', () => undefined)
    await once(tls, 'secureConnect', { signal })
    return tls
  }
  try {
    if (useSsl) return /^\* (?:OK|PREAUTH)\b/i.test(await readLine(await secured()))
    // PREAUTH without TLS rules STARTTLS out (RFC 9051 §7.1.4).
    if (!/^\* OK\b/i.test(await readLine(tcp))) return false
    tcp.write('a STARTTLS\r\n')
    // Bytes after the response were injected (RFC 9051 §11.1).
    if (!/^a OK\b[^\n]*\n$/i.test(await readLine(tcp))) return false
    await secured()
    return true
  } finally {
    tcp.destroy()
  }
}

/** Returns the server's first line, with bytes that came with it. Rejects when the connection closes. */
function readLine(socket: Socket): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let text = ''
  const read = (chunk: Buffer): void => {
    text += chunk.toString('latin1')
    if (text.includes('\n') || text.length > longestLine) resolve(text)
  }
  const close = (): void => reject(new Error('the server closed the connection'))
  socket.on('data', read).once('close', close)
  return promise.finally(() => socket.off('data', read).off('close', close))
}
