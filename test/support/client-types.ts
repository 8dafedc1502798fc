/** `npm run docs` writes client/schema.d.ts from the OpenAPI document; `--check` fails when it is stale. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript'
import { resourceRoutes } from '../../api/app.ts'
import { buildOpenApi } from '../../api/openapi.ts'

const file = join(import.meta.dirname, '../../client/schema.d.ts')

/** Without form bodies, the 2.0 API (deprecated), and the admin API (which asks for a token of its own). */
async function schema(): Promise<string> {
  const document = buildOpenApi(resourceRoutes.filter(({ auth }) => auth !== 'operator'))
  const json = JSON.stringify(document, (name, value: unknown) => {
    if (name === 'headers') return undefined
    const { 'application/json': asJson, ...others } = (value ?? {}) as Record<string, unknown>
    return asJson !== undefined && 'multipart/form-data' in others ? { 'application/json': asJson } : value
  })
  const types = await openapiTS(JSON.parse(json) as OpenAPI3, { excludeDeprecated: true })
  return `// Written by npm run docs.\n${astToString(types)}`
}

const text = await schema()
if (!process.argv.includes('--check')) writeFileSync(file, text)
else if (readFileSync(file, 'utf8') !== text) {
  process.stderr.write('client/schema.d.ts is stale: npm run docs writes it anew\n')
  process.exitCode = 1
}
