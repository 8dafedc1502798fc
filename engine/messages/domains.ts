/** The domain of an address, for filters and domain lists. */
import { domainToASCII, domainToUnicode } from 'node:url'

/** Characters of a domain that are looked at. */
const maxLength = 255

/** The part after the last `@`, lower-cased, without a trailing dot; '' when there is none. */
export function domainOf(email: string): string {
  const at = email.lastIndexOf('@')
  if (at < 0) return ''
  const domain = email.slice(at + 1).toLowerCase()
  return domain.endsWith('.') ? domain.slice(0, -1) : domain
}

/** A lower-case domain as given and, when it is internationalised, in both spellings: bücher.example and xn--bcher-kva.example. */
export function domainSpellings(domain: string): string[] {
  if (domain.length > maxLength || !/[^\u0000-\u007f]|xn--/.test(domain)) return [domain]
  const spellings = new Set([domain, domainToASCII(domain), domainToUnicode(domain)])
  return [...spellings].filter((spelling) => spelling !== '')
}

function withParents(domain: string): string[] {
  const labels = domain.split('.')
  return labels.map((_, from) => labels.slice(from).join('.'))
}

/**
 * The domain of an address and its parents, lower-cased, longest first: 'mail.example.com', 'example.com', 'com'. An
 * internationalised domain is listed in both spellings (bücher.example and xn--bcher-kva.example), so a filter may use either.
 * [] for an address without a domain.
 */
export function domainsOf(email: string): string[] {
  const domain = domainOf(email).slice(0, maxLength)
  if (domain === '') return []
  return [...new Set(domainSpellings(domain).flatMap(withParents))]
}
