/** Answers of the system routes. */
import { z } from 'zod'

export const health = z.object({ status: z.literal('ok') }).meta({ id: 'Health', examples: [{ status: 'ok' }] })

/** An OpenAPI document is a schema of its own; only its outline is promised here. */
export const openApiOutline = z
  .object({ openapi: z.string(), paths: z.record(z.string(), z.unknown()) })
  .meta({ examples: [{ openapi: '3.1.0', paths: {} }] })
