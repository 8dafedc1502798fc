/** Headers of what a stranger wrote and we answer as bytes: a browser is to save it, never to show or run it on our origin. */
import { transliterate } from '../../../engine/index.ts'

/** `type` as the mail says; X-Content-Type-Options is on every answer. */
export function fileHeaders(type: string, name: string): Readonly<Record<string, string>> {
  return {
    'Content-Type': /^[\w.+-]+\/[\w.+-]+$/.test(type) ? type : 'application/octet-stream',
    'Content-Disposition': `attachment; filename="${transliterate(name)}"`,
    'Content-Security-Policy': "sandbox; default-src 'none'",
  }
}
