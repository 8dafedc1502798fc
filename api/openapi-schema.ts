/** zod → JSON Schema for OpenAPI 3.1: zod's own output, with `documented` parameters in their plain spelling and named schemas apart. */
import { z } from 'zod'
import { wireSchemas } from './values.ts'

export type Json = Record<string, unknown>

/** Collects schemas with a `.meta({ id })` under components.schemas. */
export interface SchemaPrinter {
  readonly named: Json
  print(schema: z.ZodType): Json
}

const localReference = '#/$defs/'
const sharedReference = '#/components/schemas/'

export function createSchemaPrinter(): SchemaPrinter {
  const named: Json = {}
  return {
    named,
    print(schema) {
      // Input on both sides: what is on the wire goes in to a request's schema, and is checked by going in to a response's.
      const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', override })
      const { $defs = {}, ...rest } = json as Json & { $defs?: Json }
      delete rest.$schema
      for (const [name, definition] of Object.entries($defs)) named[name] = withSharedReferences(definition)
      return withSharedReferences(rest) as Json
    },
  }
}

type Printed = { readonly zodSchema: z.core.$ZodType; readonly jsonSchema: Json }

function override(printed: Printed): void {
  withoutSafeBounds(printed.jsonSchema)
  useDocumented(printed)
  keepExamples(printed)
}

/** zod drops the examples of what it transforms, since it takes them for those of the result; ours are what a client sends. */
function keepExamples({ zodSchema, jsonSchema }: Printed): void {
  const examples = z.globalRegistry.get(zodSchema)?.examples
  if (examples !== undefined) jsonSchema.examples = examples
}

/** What JavaScript can count to is no property of the API. */
function withoutSafeBounds(schema: Json): void {
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
}

function useDocumented({ zodSchema, jsonSchema }: Printed): void {
  const wire = wireSchemas.get(zodSchema as z.ZodType)?.wire
  if (wire === undefined) return
  const { description } = jsonSchema
  for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key)
  Object.assign(jsonSchema, wire, description === undefined ? {} : { description })
}

function withSharedReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSharedReferences)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' && typeof inner === 'string' ? shared(inner) : withSharedReferences(inner),
    ]),
  )
}

function shared(reference: string): string {
  return reference.startsWith(localReference) ? sharedReference + reference.slice(localReference.length) : reference
}
