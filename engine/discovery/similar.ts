/** Detects misspelt domains of large providers, such as gmial.com. */
import { domainOf } from '../messages/addresses.ts'
import { providers } from './providers.ts'

const large =
  'gmail.com googlemail.com outlook.com hotmail.com live.com yahoo.com icloud.com aol.com gmx.de gmx.net web.de t-online.de'.split(
    ' ',
  )

/** The address with the domain that was probably meant; null = the domain is not misspelt. */
export function similarAddress(email: string): string | null {
  const domain = domainOf(email)
  if (providers.some(({ domains }) => domains.includes(domain))) return null
  const meant = large.find((one) => one.startsWith(`${domain}.`) || isOneStepFrom(one, domain))
  return meant === undefined ? null : email.slice(0, email.lastIndexOf('@') + 1) + meant
}

/** true when one character is missing, added or different, or two neighbours are swapped. */
function isOneStepFrom(one: string, other: string): boolean {
  if (Math.abs(one.length - other.length) > 1) return false
  let same = 0
  while (same < one.length && one[same] === other[same]) same += 1
  const [left, right] = [one.slice(same), other.slice(same)]
  const isSwapped = left[0] === right[1] && left[1] === right[0] && left.slice(2) === right.slice(2)
  return isSwapped || left.slice(1) === right.slice(1) || left.slice(1) === right || left === right.slice(1)
}
