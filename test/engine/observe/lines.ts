/** Lines of connections: as a real server sends them, and such that nothing can be saved of them. */
import { randomBytes } from 'node:crypto'

/** What Dovecot and Mailroom say to each other while a mailbox is watched, with numbers that grow. */
export function usualLines(count: number): string[] {
  const lines: string[] = []
  for (let turn = 1; lines.length < count; turn += 1) lines.push(...oneTurn(turn))
  return lines.slice(0, count)
}

const folders = ['Archive', 'Drafts', 'Junk', 'Sent', 'Trash', 'Projects/Mailroom', 'INBOX']

function oneTurn(turn: number): string[] {
  const tag = (500 + turn * 5).toString(36).toUpperCase()
  const [uid, validity] = [4711 + turn, 1_795_369_057]
  return [
    `C: ${tag} IDLE`,
    'S: + idling',
    `S: * ${uid - 40} EXISTS`,
    'S: * 1 RECENT',
    'C: DONE',
    `S: ${tag} OK Idle completed (${(turn * 1.377).toFixed(3)} + 0.000 + ${(turn * 1.376).toFixed(3)} secs).`,
    `C: ${tag}A UID FETCH ${uid}:* (UID FLAGS INTERNALDATE RFC822.SIZE BODYSTRUCTURE MODSEQ BODY.PEEK[HEADER.FIELDS (FROM)])`,
    `S: * ${uid - 40} FETCH (UID ${uid} FLAGS (\\Recent \\Seen) MODSEQ (${uid * 7}) INTERNALDATE "22-Nov-2026 14:30:05 +0000")`,
    `S: ${tag}A OK Fetch completed (0.00${turn % 9} + 0.000 secs).`,
    `C: ${tag}B LIST "" "*" RETURN (STATUS (MESSAGES UNSEEN UIDNEXT UIDVALIDITY HIGHESTMODSEQ) SPECIAL-USE CHILDREN)`,
    ...folders.flatMap((name, index) => [
      `S: * LIST (\\HasNoChildren) "/" ${name}`,
      `S: * STATUS ${name} (MESSAGES ${turn * (index + 1)} UIDNEXT ${uid + index} UIDVALIDITY ${validity + index} UNSEEN ${turn} HIGHESTMODSEQ ${uid * 9})`,
    ]),
    `S: ${tag}B OK List completed (0.0${(turn * 7) % 90} + 0.000 + 0.001 secs).`,
  ]
}

export function unlikeLines(count: number): string[] {
  return Array.from({ length: count }, () => `S: * OK ${randomBytes(69).toString('base64')}`)
}
