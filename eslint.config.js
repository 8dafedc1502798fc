import regexp from 'eslint-plugin-regexp'
import tseslint from 'typescript-eslint'

/** Third-party clients with one owner file or folder each; everyone else sees our own interface. */
const owners = {
  imapflow: ['engine/accounts/session/**'],
  undici: ['engine/net/**'],
  'ipaddr.js': ['engine/net/**'],
  mongodb: ['engine/store/mongo/**'],
  'node:sqlite': ['engine/store/sqlite/**'],
  xstate: ['machines/**', 'engine/accounts/**', 'engine/connect/**', 'engine/webhooks/**'],
  'p-queue': ['engine/accounts/**', 'engine/webhooks/**'],
  re2js: ['engine/webhooks/**'],
  mailparser: ['engine/messages/**'],
  oauth4webapi: ['engine/oauth/**'],
  pino: ['engine/observe/**'],
  'prom-client': ['engine/observe/**'],
  '@opentelemetry': ['engine/observe/**'],
  koa: ['api/**'],
  '@koa/router': ['api/router.ts'],
  busboy: ['api/**'],
}

/** Imports run one way: main → api → engine/index → machines. */
const walls = {
  'engine/**': ['**/api/**', '**/test/**', '**/main.ts'],
  'api/**': ['**/machines/**', '**/test/**', '**/main.ts', { regex: '(^|/)engine/(?!index\\.ts$)' }],
  'main.ts': ['**/machines/**', '**/test/**'],
}

const areas = [
  'engine/*.ts',
  'engine/accounts/**',
  'engine/connect/**',
  'engine/webhooks/**',
  'engine/messages/**',
  'engine/discovery/**',
  'engine/oauth/**',
  'engine/secrets/**',
  'engine/net/**',
  'engine/observe/**',
  'engine/store/*.ts',
  'engine/store/port/**',
  'engine/store/records/**',
  'engine/store/sqlite/**',
  'engine/store/mongo/**',
  'api/**',
  'main.ts',
]

const covers = (pattern, area) => area.startsWith(pattern.replace('**', ''))

/** As patterns, so that a path inside of the package is caught too. */
function foreignPackages(area) {
  return Object.entries(owners)
    .filter(([, patterns]) => !patterns.some((pattern) => covers(pattern, area)))
    .map(([name]) => ({
      regex: `^${name.replaceAll('.', '\\.')}(/|$)`,
      message: `${name} has one owner: see docs/architecture.md.`,
    }))
}

function wallOf(area) {
  const key = Object.keys(walls).find((wall) => covers(wall, area))
  return (walls[key] ?? []).map((pattern) => ({
    ...(typeof pattern === 'string' ? { group: [pattern] } : pattern),
    message: 'imports run one way: main → api → engine/index → machines',
  }))
}

/**
 * A later entry replaces the rule of an earlier one as a whole: each is computed whole, and the owners that are smaller than
 * an area come after it.
 */
const smaller = [...new Set(Object.values(owners).flat())].filter((owner) => !areas.includes(owner))
const importRules = [...areas, ...smaller.filter((owner) => owner !== 'machines/**')].map((area) => ({
  files: [area],
  rules: { 'no-restricted-imports': ['error', { patterns: [...foreignPackages(area), ...wallOf(area)] }] },
}))

const pure = 'machines are pure: time, chance and effects come in from outside'

/** Machines may import xstate and each other, and reach for nothing of the world. */
const machineRules = {
  files: ['machines/**'],
  rules: {
    'no-restricted-imports': [
      'error',
      { patterns: [{ regex: '^(?!xstate$|\\./(?!.*\\.\\.))', message: 'machines import xstate and each other only' }] },
    ],
    'no-restricted-syntax': ['error', { selector: 'ImportExpression', message: pure }],
    'no-restricted-properties': [
      'error',
      { object: 'Date', property: 'now', message: pure },
      { object: 'Math', property: 'random', message: pure },
    ],
    'no-restricted-globals': [
      'error',
      ...'Date performance crypto process Buffer fetch setTimeout setInterval setImmediate globalThis global'
        .split(' ')
        .map((name) => ({ name, message: pure })),
    ],
  },
}

export default tseslint.config(
  {
    ignores: [
      'node_modules',
      'data',
      '.stryker',
      'eslint.config.js',
      'compile-cache.js',
      'client/schema.d.ts',
      'client/dist',
    ],
  },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'max-lines': ['error', { max: 400 }],
      'max-len': ['error', { code: 1000, comments: 120, ignoreUrls: true }],
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      // A quarter of the time of all rules; there are no enums (erasableSyntaxOnly), and hardly a class.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      // Factories return plain objects: their methods use no `this`.
      '@typescript-eslint/unbound-method': 'off',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unnecessary-condition': ['error', { allowConstantLoopConditions: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      'no-console': 'error',
    },
  },
  {
    files: ['test/**'],
    rules: {
      'max-lines-per-function': 'off',
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', name: ['test', 'suite', 'describe', 'it', 'before', 'after'], package: 'node:test' },
          ],
        },
      ],
    },
  },
  {
    // What strangers send meets these: none may need more than linear time.
    files: ['main.ts', 'engine/**', 'api/**', 'machines/**'],
    plugins: { regexp },
    rules: {
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      'regexp/no-super-linear-move': ['error', { report: 'potential' }],
    },
  },
  ...importRules,
  machineRules,
)
