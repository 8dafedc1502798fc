import tseslint from 'typescript-eslint'

/** Third-party clients with one owner file or folder each; everyone else sees our own interface. */
const owners = {
  imapflow: ['engine/accounts/session/**'],
  undici: ['engine/net/**'],
  mongodb: ['engine/store/mongo/**'],
  'node:sqlite': ['engine/store/sqlite/**'],
  xstate: ['machines/**', 'engine/accounts/**', 'engine/webhooks/**'],
  'p-queue': ['engine/accounts/lanes.ts'],
  koa: ['api/**'],
}

/** Imports run one way: main → api → engine/index → machines. */
const walls = {
  'machines/**': ['**/engine/**', '**/api/**', '**/test/**', '**/main.ts'],
  'engine/**': ['**/api/**', '**/test/**', '**/main.ts'],
  'api/**': ['**/machines/**', '**/test/**', '**/main.ts', { regex: '(^|/)engine/(?!index\\.ts$)' }],
  'main.ts': ['**/machines/**', '**/test/**'],
}

function forbiddenPackages(folder) {
  return Object.entries(owners)
    .filter(([, files]) => !files.some((file) => folder.startsWith(file.replace('/**', ''))))
    .map(([name]) => ({ name, message: `${name} has one owner: see architecture in README.` }))
}

const areas = [
  'machines/**',
  'engine/*.ts',
  'engine/accounts/**',
  'engine/webhooks/**',
  'engine/callbacks/**',
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

function wallOf(area) {
  const key = Object.keys(walls).find((wall) => area.startsWith(wall.replace('/**', '')))
  return (walls[key] ?? []).map((pattern) => ({
    ...(typeof pattern === 'string' ? { group: [pattern] } : pattern),
    message: 'imports run one way: main → api → engine/index → machines',
  }))
}

const importRules = areas.map((area) => ({
  files: [area],
  rules: {
    'no-restricted-imports': ['error', { paths: forbiddenPackages(area), patterns: wallOf(area) }],
  },
}))

const sessionOwner = {
  files: ['engine/accounts/session/**', 'engine/accounts/lanes.ts'],
  rules: { 'no-restricted-imports': ['error', { patterns: walls['engine/**'] }] },
}

export default tseslint.config(
  { ignores: ['node_modules', 'data', 'eslint.config.js'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'max-lines': ['error', { max: 400 }],
      'max-lines-per-function': ['error', { max: 40, skipBlankLines: true, skipComments: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
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
  ...importRules,
  sessionOwner,
)
