/** An empty value of a read's parameter is no value, whichever it is; of a write's it is the same in both versions. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { z } from 'zod'
import { isAppError } from '../../../engine/index.ts'
import type { Route } from '../../../api/route.ts'
import { resourceRoutes } from '../../../api/app.ts'
import { parse, readInput } from '../../../api/middleware/dispatch.ts'

type Values = Readonly<Record<string, unknown>>

function read(route: Route, query: z.ZodType, values: Values): unknown {
  return readInput({ route: { ...route, query }, parameters: {} }, values).query
}

suite('empty values of parameters that are read', () => {
  const reads = resourceRoutes.flatMap((route) => {
    const { query } = route
    return route.method === 'GET' && query instanceof z.ZodObject ? [{ route, query }] : []
  })

  test('are there in many routes', () => assert(reads.length > 20, `${reads.length}`))

  for (const { route, query } of reads) {
    const examples = { email: 'anna@example.com', expires: '1', signature: 'x', webhook_id: 'w' }
    const names = Object.keys(query.shape)
    const required: Values = Object.fromEntries(Object.entries(examples).filter(([name]) => names.includes(name)))
    test(`${route.path}: ${names.join(', ')}`, () => {
      for (const name of names) {
        const without = Object.fromEntries(Object.entries(required).filter(([other]) => other !== name))
        let wanted: unknown
        try {
          wanted = read(route, query, without)
        } catch {
          assert.throws(
            () => read(route, query, { ...without, [name]: '' }),
            (error) => isAppError(error, 'bad_request') && error.message === `${name}: is required`,
          )
          continue
        }
        assert.deepEqual(read(route, query, { ...without, [name]: '' }), wanted, name)
      }
    })
  }
})

suite('an empty value of a write that means nothing', () => {
  const writes = resourceRoutes.flatMap(({ method, path, body }) =>
    method !== 'GET' && body instanceof z.ZodObject ? [{ name: `${method} ${path}`, body }] : [],
  )

  test('is possible in many routes', () => assert(writes.length > 20, `${writes.length}`))

  for (const { name, body } of writes) {
    const shape: z.ZodRawShape = body.shape
    const optional = z.object(shape).partial()
    test(`is no value: ${name}`, () => {
      for (const [parameter, schema] of Object.entries(shape)) {
        const { success, data } = (schema as z.ZodType).safeParse('')
        const wanted = { ...(parse(optional, {}) as Values), ...(success ? { [parameter]: data } : {}) }
        assert.deepEqual(parse(optional, { [parameter]: '' }), wanted, parameter)
      }
    })
  }
})

suite('empty values of parameters that are written', () => {
  const named = new Map(resourceRoutes.map((route) => [`${route.method} ${route.path.replace('+}', '}')}`, route]))
  const pairs = resourceRoutes.flatMap((route) => {
    const lite = named.get(route.instead ?? '')
    return route.method === 'GET' || lite === undefined ? [] : [{ route, lite }]
  })
  const schemasOf = ({ query, body }: Route) => [query, body].filter((schema) => schema instanceof z.ZodObject)
  const parametersOf = (route: Route) =>
    Object.assign({}, ...schemasOf(route).map(({ shape }) => shape)) as z.ZodRawShape
  const outcome = (schema: unknown) => {
    const { success, data, error } = (schema as z.ZodType).safeParse('')
    return success ? { data } : { problem: error.issues[0]?.message }
  }

  test('are there in many routes', () => assert(pairs.length > 20, `${pairs.length}`))

  for (const { route, lite } of pairs) {
    const [own, others] = [parametersOf(route), parametersOf(lite)]
    const both = Object.keys(own).filter((name) => name in others)
    test(`${route.method} ${route.path}: ${both.join(', ')}`, () => {
      for (const name of both) assert.deepEqual(outcome(own[name]), outcome(others[name]), name)
    })
  }
})
