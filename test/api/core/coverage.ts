/** An interface row by row: each operation is served, and is in the OpenAPI document with every parameter. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { resourceRoutes } from '../../../api/app.ts'
import { buildOpenApi, type Operation } from '../../../api/openapi.ts'

/** Method, path, and every parameter that is not in the path. */
export type Row = readonly [method: string, path: string, parameters: string]

export const document = buildOpenApi(resourceRoutes)

const words = (text: string): string[] => text.split(' ').filter((word) => word !== '')

/** `fields`: name of a schema → the fields that it has. Prints the list. */
export function coverage(
  title: string,
  tables: Readonly<Record<string, readonly Row[]>>,
  fields: Readonly<Record<string, string>>,
): void {
  suite(title, () => {
    const served = new Set(resourceRoutes.map(({ method, path }) => `${method} ${path.replaceAll('+}', '}')}`))

    const parametersOf = (operation: Operation): Set<string> => {
      const schema = operation.requestBody?.content['application/json']?.schema as { properties?: object } | undefined
      const inBody = Object.keys(schema?.properties ?? {})
      return new Set([...operation.parameters.map(({ name }) => name), ...inBody])
    }

    for (const [name, rows] of Object.entries(tables)) {
      suite(name, () => {
        for (const [method, path, parameters] of rows) {
          test(`${method} ${path}`, (t) => {
            t.diagnostic(parameters === '' ? 'no parameters' : parameters)
            assert(served.has(`${method} ${path}`), 'is not in api/routes.ts')
            const operation = document.paths[path]?.[method.toLowerCase()]
            assert(operation !== undefined, 'is not in the OpenAPI document')
            const known = parametersOf(operation)
            assert.deepEqual(
              words(parameters).filter((parameter) => !known.has(parameter)),
              [],
              'parameters missing',
            )
            const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter)
            assert.deepEqual(
              operation.parameters.filter(({ in: place }) => place === 'path').map((parameter) => parameter.name),
              inPath,
            )
          })
        }
      })
    }

    for (const [name, wanted] of Object.entries(fields)) {
      test(`${name} has ${wanted}`, () => {
        const schemas = document.components['schemas'] as Readonly<Record<string, { readonly properties?: object }>>
        const known = Object.keys(schemas[name]?.properties ?? {})
        assert.deepEqual(
          words(wanted).filter((field) => !known.includes(field)),
          [],
        )
      })
    }

    test('no operation has another’s name', () => {
      const names = Object.values(document.paths).flatMap((operations) =>
        Object.values(operations).map(({ operationId }) => operationId),
      )
      assert.equal(new Set(names).size, names.length)
    })
  })
}
