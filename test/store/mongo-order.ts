/**
 * Whether an index of ours gives a query its order, told from filter, order and keys alone: no server has to say it.
 */
import type { Document } from 'mongodb'
import type { CollectionName } from '../../engine/store/mongo/documents.ts'
import { indexes } from '../../engine/store/mongo/schema.ts'

type Key = readonly [field: string, direction: number]

/** A filter's conditions by field, those of $and and $elemMatch too; an $or is one of its own, which no keys bound. */
function conditionsOf(filter: Document): Map<string, unknown> {
  const found = new Map<string, unknown>()
  const add = (field: string, condition: unknown): void => {
    if (!found.has(field)) found.set(field, condition)
  }
  for (const [field, condition] of Object.entries(filter)) {
    const match = (condition as Document | null)?.['$elemMatch'] as Document | undefined
    if (field === '$and')
      for (const part of condition as Document[]) conditionsOf(part).forEach((one, name) => add(name, one))
    else if (match) for (const [part, one] of Object.entries(match)) add(`${field}.${part}`, one)
    else add(field, condition)
  }
  return found
}

/** One value, or some of them, whose rows are merged in order. */
function isPoint(condition: unknown): boolean {
  if (typeof condition !== 'object' || condition === null) return true
  return Object.keys(condition).every((operator) => operator === '$in' || operator === '$eq')
}

/**
 * Whether the rows that these keys lead to come in the order that is asked for: first keys of which the filter names
 * points, then those of the order, all in its directions or all against them. Answers the fields of the filter that the
 * keys do not bound, each of which is compared row by row; null = not in this order.
 */
function unbounded(
  keys: readonly Key[],
  conditions: ReadonlyMap<string, unknown>,
  sort: readonly Key[],
): string[] | null {
  const end = keys.findIndex(([field]) => !conditions.has(field) || !isPoint(conditions.get(field)))
  const points = keys.slice(0, end === -1 ? keys.length : end)
  const rest = keys.slice(points.length)
  // a field of which there is one value puts nothing in order
  const wanted = sort.filter(([field]) => typeof (conditions.get(field) ?? {}) === 'object')
  const turn = wanted.length === 0 ? 1 : (wanted[0]?.[1] ?? 1) * (rest[0]?.[1] ?? 1)
  const ordered = wanted.every(([field, direction], at) => rest[at]?.[0] === field && rest[at][1] * turn === direction)
  if (!ordered || (points.length === 0 && !conditions.has(rest[0]?.[0] ?? ''))) return null
  const bounded = new Set([...points, ...rest.slice(0, Math.max(1, wanted.length))].map(([field]) => field))
  return [...conditions.keys()].filter((field) => !bounded.has(field))
}

/** Whether the filter names rows by their id: they are few, whatever their order. */
export function namesRows({ filter = {} }: Document): boolean {
  const id = (filter as Document)['_id'] as unknown
  return id !== undefined && isPoint(id)
}

/**
 * For each index that gives the order: the fields of the filter that it leaves to be compared row by row. Empty = no
 * index does, and the server has to read everything before it can answer the first row.
 */
export function orderedBy({ find, filter = {}, sort = {} }: Document): string[][] {
  const conditions = conditionsOf(filter as Document)
  // one row at most has any order
  if (typeof conditions.get('_id') === 'string') return [[]]
  const own = indexes[find as CollectionName].filter(({ partialFilterExpression = {} }) =>
    Object.keys(partialFilterExpression).every((field) => conditions.has(field)),
  )
  const keys = [...own.map(({ key }) => Object.entries(key) as [string, number][]), [['_id', 1]] as [string, number][]]
  const wanted = Object.entries(sort as Record<string, number>)
  return keys.flatMap((key) => {
    const rest = unbounded(key, conditions, wanted)
    return rest === null ? [] : [rest]
  })
}
