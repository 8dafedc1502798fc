/** Name, colour and logo of the connect wizard, from the developer's record or the configuration. */
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import type { Config } from '../config.ts'
import { AppError } from '../errors.ts'
import { own } from '../own-property.ts'
import type { BrandRecord } from '../store/records.ts'

export interface Brand {
  /** null = the host of the callback_url. */
  readonly name: string | null
  readonly color: string
  /** Colour of text on `color`. */
  readonly ink: '#000000' | '#ffffff'
  /** A data: URL, or the https: URL of a developer's logo. */
  readonly logo: string | null
}

const usualColor = '#2457d6'
const mostLogoBytes = 100_000

const types: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.svg': 'image/svg+xml',
}

type Settings = Pick<Config, 'MAILROOM_WIZARD_NAME' | 'MAILROOM_WIZARD_COLOR' | 'MAILROOM_WIZARD_LOGO'>

/** The brand of the configuration. Throws `bad_request`, one line, for a logo that cannot be shown. */
export function openBrand(config: Settings): Brand {
  const color = config.MAILROOM_WIZARD_COLOR ?? usualColor
  const logo = config.MAILROOM_WIZARD_LOGO
  return {
    name: config.MAILROOM_WIZARD_NAME,
    color,
    ink: inkOn(color),
    logo: logo === null ? null : logo.startsWith('data:') ? checkedUrl(logo) : readLogo(logo),
  }
}

/** The developer's brand; the configuration fills in missing parts. */
export function brandOf(configured: Brand, developer: BrandRecord): Brand {
  const color = developer.color ?? configured.color
  const { name, logo } = configured
  return { name: developer.name ?? name, color, ink: inkOn(color), logo: developer.logo ?? logo }
}

/**
 * The origin of an https: URL without user or password, for the img-src of a Content-Security-Policy; null for any
 * other text. Hosts with * ; or , are refused, because a policy gives these characters another meaning.
 */
export function logoOrigin(text: string): string | null {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '') return null
  return /^https:\/\/[a-z0-9.-]+(:\d+)?$/.test(url.origin) ? url.origin : null
}

function refuse(problem: string, cause?: unknown): AppError {
  return new AppError('bad_request', `configuration: MAILROOM_WIZARD_LOGO: ${problem}`, { cause })
}

function checkedUrl(url: string): string {
  const type = /^data:([\w.+/-]+)[;,]/.exec(url)?.[1] ?? ''
  if (!Object.values(types).includes(type)) throw refuse('expected a data: URL of a picture')
  if (url.length > 2 * mostLogoBytes) throw refuse('longer than 200,000 characters')
  return url
}

function readLogo(path: string): string {
  const type = own(types, extname(path).toLowerCase())
  if (type === undefined) throw refuse(`${path} is no png, jpg, gif, webp or svg`)
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (cause) {
    throw refuse(`${path} cannot be read`, cause)
  }
  if (bytes.length > mostLogoBytes) throw refuse(`${path} is larger than 100 KB`)
  return `data:${type};base64,${bytes.toString('base64')}`
}

/** Black or white, whichever has the greater contrast: at least 4.5 on any colour (WCAG 2, 1.4.3). */
function inkOn(color: string): '#000000' | '#ffffff' {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  const light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
  return 1.05 / (light + 0.05) >= (light + 0.05) / 0.05 ? '#ffffff' : '#000000'
}
