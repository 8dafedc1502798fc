/**
 * Loaded before each test file of a mutant run: random tests draw the same values in each run, and end with the first
 * failure.
 */
import fc from 'fast-check'

fc.configureGlobal({ seed: 20_240_229, endOnFailure: true })
