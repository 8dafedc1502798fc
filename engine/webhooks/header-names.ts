/** Names of header fields as callbacks have them: one spelling of each, however the sender wrote it. */

/** Abbreviations within registered names, such as Message-ID, MIME-Version and DKIM-Signature. */
const capitals = new Set('arc bimi dkim id md5 mime mmhs mt pics sio spf tls vbr'.split(' '))

/** `name` in lower case: each word begins with a capital letter, abbreviations are in capitals. */
export function canonicalName(name: string): string {
  const words = name.split('-')
  return words
    .map((word) => (capitals.has(word) ? word.toUpperCase() : word.charAt(0).toUpperCase() + word.slice(1)))
    .join('-')
}
