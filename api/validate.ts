/** Raw parameters → what the route's schemas say. The first thing wrong is told, by the parameter's name. */
import type { z } from 'zod'
import { badParameter } from '../engine/index.ts'
import type { Exchange } from './exchange.ts'
import type { Match } from './router.ts'
import type { Input } from './route.ts'

export type AnyInput = Input<z.ZodType, z.ZodType, z.ZodType>

/**
 * Query and body schemas both see all values, the body's over the query's: parameters of a write may come in either. What is read
 * takes no empty value: such a parameter is not given. In a write it is a value, which often removes something.
 */
export function readInput({ route, parameters }: Match, values: Exchange['values']): AnyInput {
  const { path, query, body } = route.request
  return {
    path: parse(path, parameters),
    query: parse(query, route.method === 'GET' ? withoutEmpty(values) : values),
    body: parse(body, values),
  }
}

function withoutEmpty(values: Exchange['values']): Exchange['values'] {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''))
}

function parse(schema: z.ZodType | undefined, values: Readonly<Record<string, unknown>>): unknown {
  if (schema === undefined) return values
  const result = schema.safeParse(values)
  if (result.success) return result.data
  const issue = result.error.issues[0]
  const name = issue?.path.map(String).join('.') ?? ''
  const absent = issue !== undefined && isAbsent(values, issue.path)
  throw badParameter(
    name === '' ? 'parameters' : name,
    absent ? 'is required' : lowered(issue?.message ?? 'is invalid'),
  )
}

function isAbsent(values: Readonly<Record<string, unknown>>, path: readonly PropertyKey[]): boolean {
  const [first] = path
  return typeof first === 'string' && path.length === 1 && values[first] === undefined
}

/** zod begins its own messages with a capital; ours follow `<parameter>: `. */
function lowered(message: string): string {
  return message.replace(/^Invalid input: /, '').replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase())
}
