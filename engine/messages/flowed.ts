/** format=flowed (RFC 3676) → text with whole paragraphs. */

interface Line {
  readonly depth: number
  readonly text: string
}

/** Quote marks counted, then one stuffed space taken away (§4.3-4.5). */
function readLine(line: string): Line {
  let depth = 0
  while (line[depth] === '>') depth++
  const text = line.slice(depth)
  return { depth, text: text.startsWith(' ') ? text.slice(1) : text }
}

function quoted(depth: number, text: string): string {
  if (depth === 0) return text
  return text === '' ? '>'.repeat(depth) : `${'>'.repeat(depth)} ${text}`
}

/**
 * Joins lines that end in a space with the next one of the same quote depth; `delSp` = that space was added for the fold alone.
 * `-- ` stays a line of its own. Lines end in LF alone, in and out. Linear.
 */
export function unflow(text: string, delSp: boolean): string {
  const result: string[] = []
  let paragraph: string[] = []
  let depth = 0
  const close = (): void => {
    if (paragraph.length > 0) result.push(quoted(depth, paragraph.join('')))
    paragraph = []
  }
  for (const raw of text.split('\n')) {
    const line = readLine(raw)
    if (line.depth !== depth || line.text === '-- ') close()
    depth = line.depth
    const flows = line.text.endsWith(' ') && line.text !== '-- '
    paragraph.push(flows && delSp ? line.text.slice(0, -1) : line.text)
    if (!flows) close()
  }
  close()
  return result.join('\n')
}
