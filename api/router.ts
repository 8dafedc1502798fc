/**
 * Finds the route of a path as it is on the wire. Koa's own router decodes and redirects; a signature covers the path as it
 * was sent, and labels, folders and message ids arrive encoded or raw, so matching is ours:
 *
 * - a literal segment goes before a parameter; one trailing slash is dropped; nothing is ever redirected;
 * - `{folder+}` runs to the last 'messages' segment, to a final 'expunge' where a route has it, or to the end;
 * - `{message_id}` may hold raw slashes when it looks like a Message-ID (it holds an '@').
 */
import type { Auth, Method, Route } from './route.ts'
import { decodePathValue } from './wire.ts'

export interface Match {
  readonly route: Route
  /** Percent-decoded. */
  readonly parameters: Readonly<Record<string, string>>
}

/** Every method of one path. */
export interface Found {
  /** For the Allow header: 'GET, HEAD, POST, OPTIONS'. */
  readonly allow: string
  /** Of all its methods. */
  readonly auth: Auth
  /** null when the path has no such method. HEAD is answered by GET. Throws `bad_request` for bad percent-encoding. */
  match(method: string): Match | null
}

export interface Router {
  /** null when no route has this path. */
  find(path: string): Found | null
}

interface Entry {
  readonly route: Route
  readonly names: readonly string[]
}

interface Node {
  readonly literals: Map<string, Node>
  one: Node | null
  /** `{message_id}`: one segment, or several that look like a Message-ID. */
  spanning: Node | null
  folder: Node | null
  readonly entries: Map<string, Entry>
}

/** More raw slashes than this are in no Message-ID, and bound the search. */
const longestSpan = 16
const longestPath = 256

function newNode(): Node {
  return { literals: new Map(), one: null, spanning: null, folder: null, entries: new Map() }
}

export function createRouter(routes: readonly Route[]): Router {
  const root = newNode()
  for (const route of routes) add(root, route)
  return {
    find(path) {
      const segments = (path.length > 2 && path.endsWith('/') ? path.slice(1, -1) : path.slice(1)).split('/')
      if (segments.length > longestPath) return null
      const captured: string[] = []
      const node = walk(root, segments, 0, captured)
      return node === null ? null : found(node, captured)
    },
  }
}

function add(root: Node, route: Route): void {
  let node = root
  const names: string[] = []
  for (const segment of route.path.slice(1).split('/')) {
    const name = /^\{(\w+)\+?\}$/.exec(segment)?.[1]
    if (name === undefined) {
      node = child(node.literals, segment)
    } else {
      names.push(name)
      node = parameterChild(node, segment.endsWith('+}') ? 'folder' : name === 'message_id' ? 'spanning' : 'one')
    }
  }
  if (node.entries.has(route.method)) throw new Error(`two routes for ${route.method} ${route.path}`)
  node.entries.set(route.method, { route, names })
}

function child(literals: Map<string, Node>, segment: string): Node {
  const known = literals.get(segment)
  if (known !== undefined) return known
  const made = newNode()
  literals.set(segment, made)
  return made
}

function parameterChild(node: Node, kind: 'one' | 'spanning' | 'folder'): Node {
  const known = node[kind]
  if (known !== null) return known
  const made = newNode()
  node[kind] = made
  return made
}

/** Depth first, the more specific kind of segment first; leaves the raw values of the winning path in `captured`. */
function walk(node: Node, segments: readonly string[], at: number, captured: string[]): Node | null {
  const segment = segments[at]
  if (segment === undefined) return node.entries.size > 0 ? node : null
  const literal = node.literals.get(segment)
  const direct = literal === undefined ? null : walk(literal, segments, at + 1, captured)
  if (direct !== null) return direct
  if (node.one !== null && segment !== '') {
    const hit = take(node.one, segments, at, at + 1, captured)
    if (hit !== null) return hit
  }
  if (node.spanning !== null) {
    const hit = walkSpanning(node.spanning, segments, at, captured)
    if (hit !== null) return hit
  }
  return node.folder === null ? null : take(node.folder, segments, at, folderEnd(node.folder, segments, at), captured)
}

function walkSpanning(node: Node, segments: readonly string[], at: number, captured: string[]): Node | null {
  const last = Math.min(segments.length, at + longestSpan)
  for (let end = at + 1; end <= last; end += 1) {
    if (end > at + 1 && !segments.slice(at, end).some((piece) => /@|%40/.test(piece))) continue
    const hit = take(node, segments, at, end, captured)
    if (hit !== null) return hit
  }
  return null
}

function take(node: Node, segments: readonly string[], from: number, to: number, captured: string[]): Node | null {
  const raw = to === from + 1 ? segments[from] : segments.slice(from, to).join('/')
  if (raw === undefined || raw === '') return null
  captured.push(raw)
  const hit = walk(node, segments, to, captured)
  if (hit === null) captured.pop()
  return hit
}

function folderEnd(node: Node, segments: readonly string[], at: number): number {
  const final = segments.length - 1
  if (node.literals.has('expunge') && segments[final] === 'expunge' && final > at) return final
  const last = node.literals.has('messages') ? segments.lastIndexOf('messages') : -1
  return last > at ? last : segments.length
}

function found(node: Node, captured: readonly string[]): Found {
  return {
    get allow() {
      const methods: string[] = [...node.entries.keys()]
      if (node.entries.has('GET')) methods.splice(methods.indexOf('GET') + 1, 0, 'HEAD')
      return [...methods, 'OPTIONS'].join(', ')
    },
    auth: [...node.entries.values()].some(({ route }) => route.auth === 'developer') ? 'developer' : 'public',
    match(method) {
      const entry = node.entries.get(method === 'HEAD' ? ('GET' satisfies Method) : method)
      if (entry === undefined) return null
      const parameters: Record<string, string> = {}
      entry.names.forEach((name, index) => {
        parameters[name] = decodePathValue(name, captured[index] ?? '')
      })
      return { route: entry.route, parameters }
    },
  }
}
