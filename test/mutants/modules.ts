/**
 * The modules whose tests are themselves tested, and the test files that speak for each: fast ones (no Dovecot, no
 * MongoDB), the fastest first, since a mutant is shown to one file after the other until a test fails.
 */
export interface Module {
  readonly mutate: readonly string[]
  readonly tests: readonly string[]
}

export const modules = {
  machines: {
    mutate: ['machines/*.ts'],
    tests: [
      'test/machines/backoff.test.ts',
      'test/machines/connect-token.machine.test.ts',
      'test/machines/account.machine.test.ts',
      'test/machines/account.failures.test.ts',
      'test/machines/webhook.machine.test.ts',
      'test/machines/inspect.test.ts',
    ],
  },
  address: { mutate: ['engine/net/address.ts'], tests: ['test/engine/address.test.ts'] },
  seal: { mutate: ['engine/secrets/seal.ts'], tests: ['test/engine/seal.test.ts'] },
  oauth1: {
    mutate: ['api/oauth1.ts'],
    tests: [
      'test/api/core/oauth1-verifier.test.ts',
      'test/api/core/oauth1-header.test.ts',
      'test/api/core/oauth1-body.test.ts',
      'test/api/core/oauth1.test.ts',
    ],
  },
  match: {
    mutate: ['engine/webhooks/match.ts', 'engine/webhooks/patterns.ts'],
    tests: [
      'test/engine/webhooks/patterns.test.ts',
      'test/engine/webhooks/verdicts.test.ts',
      'test/engine/webhooks/match.test.ts',
    ],
  },
  lanes: {
    mutate: ['engine/webhooks/delivery-queue.ts', 'engine/accounts/link.ts'],
    tests: [
      'test/engine/webhooks/delivery-queue.test.ts',
      'test/engine/lanes.test.ts',
      'test/engine/accounts/link.test.ts',
    ],
  },
  turns: {
    mutate: ['engine/fair-queue.ts', 'engine/accounts/login-limiter.ts'],
    tests: ['test/engine/fair-queue.test.ts', 'test/engine/login-limiter.test.ts'],
  },
  plan: {
    mutate: ['engine/accounts/plan.ts'],
    tests: ['test/engine/accounts/plan.test.ts', 'test/engine/accounts/plan-old.test.ts'],
  },
  identity: { mutate: ['engine/accounts/identity.ts'], tests: ['test/engine/messages/identity.test.ts'] },
  compare: {
    mutate: ['engine/accounts/compare.ts'],
    tests: ['test/engine/accounts/compare.long.test.ts', 'test/engine/accounts/odd-answers.test.ts'],
  },
  steps: {
    mutate: ['engine/store/steps.ts'],
    tests: [
      'test/store/contact-steps.test.ts',
      'test/store/steps.test.ts',
      'test/store/sqlite.test.ts',
      'test/store/token-retention.test.ts',
    ],
  },
} as const satisfies Readonly<Record<string, Module>>
