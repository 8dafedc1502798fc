/** Answers of the system routes. */
import { z } from 'zod'

export const health = z.object({ status: z.literal('ok') }).meta({ id: 'Health', examples: [{ status: 'ok' }] })

const site = 'https://mail.example.com'

export const rootView = z
  .object({ name: z.string(), version: z.string(), docs: z.string(), openapi: z.string(), health: z.string() })
  .meta({
    examples: [
      {
        name: 'Mailroom',
        version: '0.1.0',
        docs: `${site}/docs`,
        openapi: `${site}/openapi.json`,
        health: `${site}/healthz`,
      },
    ],
  })

/** An OpenAPI document is a schema of its own; only its outline is promised here. */
export const openApiOutline = z
  .object({ openapi: z.string(), paths: z.record(z.string(), z.unknown()) })
  .meta({ examples: [{ openapi: '3.1.0', paths: {} }] })
