/** Plays a server that has only the first `kept` bytes of a section, whatever its BODYSTRUCTURE says. */
export function shortSection(section: string, kept: number): (response: Buffer) => Buffer {
  const name = section.replaceAll('.', '\\.')
  const literal = new RegExp(`BODY\\[${name}\\]<(\\d+)> \\{(\\d+)\\}\\r\\n`)
  return (response) => {
    const text = response.toString('latin1')
    const match = literal.exec(text)
    if (match === null) return response
    const [all, from, size] = [match[0], Number(match[1]), Number(match[2])]
    const start = match.index + all.length
    const left = Math.max(0, Math.min(size, kept - from))
    const bytes = text.slice(start, start + left)
    const head = `BODY[${section}]<${from}> {${left}}\r\n`
    return Buffer.from(text.slice(0, match.index) + head + bytes + text.slice(start + size), 'latin1')
  }
}
